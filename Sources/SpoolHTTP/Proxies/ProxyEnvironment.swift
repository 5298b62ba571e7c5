import Foundation
import Spool

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The proxies that environment variables specify, with the same names and meaning as for curl (curl(1), ENVIRONMENT).
///
/// This type does not perform I/O. For an `http` URL, only `http_proxy` in lower case counts, because clients of a
/// server may set `HTTP_PROXY` (as with CGI). `all_proxy` applies to both schemes.
struct ProxyEnvironment: Sendable {
    /// A proxy for requests.
    struct Proxy: Sendable, Hashable {
        enum Kind: Sendable, Hashable {
            /// An HTTP proxy: it accepts `http` requests, and `CONNECT` for `https` (RFC 9110 §9.3.6).
            case http
            /// SOCKS 5, which resolves names itself (RFC 1928).
            case socks
        }

        var kind: Kind
        var host: String
        var port: Int
        /// The value of `Proxy-Authorization`, if the variable contains a user.
        var authorization: String?
    }

    private let variables: [String: String]

    init(_ variables: [String: String]) { self.variables = variables }

    /// Returns the proxy for `url`; `nil` if the URL is requested without a proxy.
    ///
    /// - Throws: ``UpstreamError`` with code `other` for an unusable proxy. The message does not contain the user or
    ///   the password.
    func proxy(for url: URL) throws(UpstreamError) -> Proxy? {
        let names = (url.isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
        guard let name = names.first(where: { variables[$0] != nil }), let text = variables[name], !text.isEmpty,
            let host = url.host(percentEncoded: false)
        else { return nil }
        let exceptions = variables["no_proxy"] ?? variables["NO_PROXY"] ?? ""
        guard !ProxyExceptions(exceptions).contain(host) else { return nil }
        guard let proxy = Self.parse(text) else {
            throw UpstreamError(
                .other, "\(url.nameForMessages) can't be requested: \(name) does not specify an HTTP or SOCKS 5 proxy")
        }
        return proxy
    }

    /// Parses `[scheme://][user:password@]host[:port]`. The default scheme is `http`, and the default port is 1080.
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
        // AsyncHTTPClient does not support SOCKS with a password.
        guard kind == .http || authorization == nil else { return nil }
        return Proxy(
            kind: kind, host: host.trimmingCharacters(in: ["[", "]"]), port: url.port ?? 1080,
            authorization: authorization)
    }
}

/// The hosts that are contacted without a proxy, as curl parses `no_proxy`.
///
/// The list is separated by commas or spaces. A name also matches all of its subdomains. An address may be a block
/// (`10.0.0.0/8`, `fe80::/10`). A single `*` matches every host.
struct ProxyExceptions {
    private let isAll: Bool
    private let entries: [Substring]

    init(_ text: String) {
        isAll = text == "*"
        entries = text.split { ", \t\n".contains($0) }
    }

    func contain(_ host: String) -> Bool {
        if isAll { return true }
        let name = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
        if let address = IPAddress(name) { return entries.contains { matches(address, $0) } }
        let trimmed = Self.trimmed(name)
        return entries.contains { matches(trimmed, $0) }
    }

    private func matches(_ name: String, _ entry: Substring) -> Bool {
        var entry = Self.trimmed(entry)
        if entry.hasPrefix(".") { entry.removeFirst() }
        return !entry.isEmpty && (name == entry || name.hasSuffix("." + entry))
    }

    private func matches(_ address: IPAddress, _ entry: Substring) -> Bool {
        AddressBlock(entry)?.contains(address) ?? false
    }

    /// Returns the name in lower case, without the dot of a fully qualified name.
    private static func trimmed(_ name: Substring) -> String {
        let name = name.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}
