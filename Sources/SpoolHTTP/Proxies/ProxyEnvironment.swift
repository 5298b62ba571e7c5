import Foundation
import Spool

/// Says which proxy the environment names for a URL, with curl's variables and their meaning (curl(1), ENVIRONMENT).
///
/// Pure. For an `http` URL only `http_proxy` in lower case counts, since a server may let its clients set `HTTP_PROXY`
/// (as CGI does); `all_proxy` is for both schemes.
struct ProxyEnvironment: Sendable {
    /// A proxy that requests go by.
    struct Proxy: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            /// Speaks HTTP: takes `http` requests as they are, and `CONNECT` for `https` (RFC 9110 §9.3.6).
            case http
            /// SOCKS 5, which looks names up itself (RFC 1928).
            case socks
        }

        var kind: Kind
        var host: String
        var port: Int
        /// `Proxy-Authorization`, if the variable names a user.
        var authorization: String?
    }

    private let variables: [String: String]

    init(_ variables: [String: String]) { self.variables = variables }

    /// The proxy for `url`; nil for none.
    ///
    /// - Throws: ``UpstreamError`` with code `failed` for one that can't be used; its sentence has no user or password.
    func proxy(for url: URL) throws(UpstreamError) -> Proxy? {
        let names = (url.isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
        guard let name = names.first(where: { variables[$0] != nil }), let text = variables[name], !text.isEmpty,
            let host = url.host(percentEncoded: false)
        else { return nil }
        let exceptions = variables["no_proxy"] ?? variables["NO_PROXY"] ?? ""
        guard !ProxyExceptions(exceptions).contain(host) else { return nil }
        guard let proxy = Self.parse(text) else {
            throw UpstreamError(
                .failed, "\(url.nameForMessages) can't be asked: \(name) names no proxy over HTTP or SOCKS 5")
        }
        return proxy
    }

    /// Reads `[scheme://][user:password@]host[:port]`; the scheme is `http` by default and the port 1080.
    private static func parse(_ text: String) -> Proxy? {
        let text = text.contains("://") ? text : "http://" + text
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
            let host = url.host(percentEncoded: false), !host.isEmpty, (1...65535).contains(url.port ?? 1080)
        else { return nil }
        let kind: Proxy.Kind
        switch scheme {
        case "http": kind = .http
        case "socks5", "socks5h": kind = .socks
        default: return nil
        }
        let authorization = url.separatingCredentials.authorization
        // AsyncHTTPClient knows no SOCKS with a password.
        guard kind == .http || authorization == nil else { return nil }
        return Proxy(
            kind: kind, host: host.trimmingCharacters(in: ["[", "]"]), port: url.port ?? 1080,
            authorization: authorization)
    }
}
