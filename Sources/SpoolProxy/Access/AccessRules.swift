#if Proxy
import HTTPTypes
import SpoolHTTP
import SpoolStreams

/// The access control of the server: the host names that it accepts, its token, and the web pages that may send
/// requests with side effects.
///
/// This type only makes decisions, based on the head of a request.
struct AccessRules: Sendable {
    /// A request that is allowed.
    struct Admitted: Sendable, Hashable {
        /// The target, without a token in its path.
        var target: String
        /// The prefix of the client's own paths: `/~TOKEN`, or an empty string.
        var prefix: String
        /// The server's own token and the operator's token, which must not be sent to an origin in any field.
        var secrets: [String] = []
        /// The configured host names of the server, in lower case. Names that are always accepted are omitted.
        var serverNames: Set<String> = []
    }

    /// The secret that every request must contain, or `nil` if none is required.
    var token: String?
    /// The accepted host names in lower case, in addition to IP addresses and `localhost`.
    var serverNames: Set<String>
    /// The origins of the web pages whose requests are accepted without a token, or `nil` if requests from all pages
    /// are accepted.
    var pages: Set<String>?

    /// The operator's token, or `nil` if the server has none.
    var operatorToken: String?

    private var secrets: [String] { [token, operatorToken].compactMap { $0 } }

    init(token: String?, serverNames: [String], pages: [String]? = nil, operatorToken: String? = nil) {
        self.token = token
        self.operatorToken = operatorToken
        self.serverNames = Set(serverNames.map { $0.lowercased() })
        self.pages = pages.map { Set($0) }
    }

    /// Allows or rejects a request.
    ///
    /// A web page can reach the server under the page's own host name if that name resolves to the server's address
    /// (DNS rebinding). Therefore, only known names are accepted.
    ///
    /// - Throws: `RequestFailure` with status 400 for an invalid host, or 421 for an unknown host name. The status is
    ///   401 if the token is missing, and 403 for a request from a web page that is not allowed.
    func admit(_ head: RequestHead) throws(RequestFailure) -> Admitted {
        try checkHost(head)
        guard let token else {
            try checkPage(head)
            return try admitted(head.target)
        }
        if let rest = withoutToken(head.target, token) { return try admitted(rest, prefix: "/~" + token) }
        // `Proxy-Authorization` is for clients that send `Authorization` to the origin.
        for name in ["proxy-authorization", "authorization"] as [StaticString] {
            for value in head.fields.values(name) where isBearer(value, token) { return try admitted(head.target) }
        }
        throw RequestFailure(401, "a token is required: /~TOKEN at the start of the path, or a Bearer token")
    }

    /// Returns the allowed request for a target. The target is sent to the origin, so it must not contain a secret.
    private func admitted(_ target: String, prefix: String = "") throws(RequestFailure) -> Admitted {
        for secret in secrets where ["~", "%7E", "%7e"].contains(where: { target.contains($0 + secret) }) {
            throw RequestFailure(400, "the token may appear only at the start of the path")
        }
        return Admitted(target: target, prefix: prefix, secrets: secrets, serverNames: serverNames)
    }

    /// Checks the host of a request.
    ///
    /// - Throws: `RequestFailure` with status 400 for an invalid host, or 421 for an unknown host name.
    func checkHost(_ head: RequestHead) throws(RequestFailure) {
        // Only HTTP/1.0 allows a request without a host, and browsers do not use HTTP/1.0.
        guard let text = head.host else { return }
        let name: String
        do {
            name = try HostAndPort(text[...]).host
        } catch {
            throw RequestFailure(400, "invalid Host field: \(error)")
        }
        // Name servers do not resolve these hosts, so DNS rebinding is not possible.
        if IPAddress(host: name) != nil || name == "localhost" || name.hasSuffix(".localhost") { return }
        if serverNames.contains(name) { return }
        throw RequestFailure(421, "unknown host name in the request; add it to the server names (--server-name)")
    }

    /// Checks the web page that sent a request.
    ///
    /// Any page can make a browser send a request to this machine, even though the page can't read the response. The
    /// server could then forward the request to a device in the local network. Browsers state in `Sec-Fetch-Site`
    /// whether a page from another origin sent the request (Fetch Metadata, §2.3), and players do not send that field.
    /// Media elements do not send `Origin`, so the origin of their page is read from `Referer`.
    ///
    /// - Throws: `RequestFailure` with status 403.
    private func checkPage(_ head: RequestHead) throws(RequestFailure) {
        guard let pages, !pages.contains("*"), Self.isFromOtherPage(head.fields) else { return }
        let page = head.fields["origin"] ?? head.fields["referer"].map(Self.origin)
        guard page.map(pages.contains) == true else {
            throw RequestFailure(
                403,
                "a web page from another origin sent the request; to allow it, add its origin (--cors-origin)")
        }
    }

    /// Returns whether a web page from another origin sent a request, according to the browser.
    static func isFromOtherPage(_ fields: RequestFields) -> Bool {
        fields.values("sec-fetch-site").contains { $0 != "same-origin" && $0 != "none" }
    }

    /// Returns the origin of a URL: `scheme://host:port`.
    private static func origin(of url: String) -> String {
        guard let authority = url.firstRange(of: "://")?.upperBound else { return "" }
        return String(url[..<(url[authority...].firstIndex { "/?#".contains($0) } ?? url.endIndex)])
    }

    private func withoutToken(_ target: String, _ token: String) -> String? {
        guard let path = Self.afterTilde(target[...]) else { return nil }
        let end = path.firstIndex { $0 == "/" || $0 == "?" } ?? path.endIndex
        guard Secret.areEqual(path[..<end].utf8, token.utf8) else { return nil }
        let rest = path[end...]
        return rest.hasPrefix("/") ? String(rest) : "/" + rest
    }

    /// Returns the text after `/~` at the start of a path, or `nil` if the path does not start with `/~`.
    ///
    /// `/%7E` is the same path (RFC 3986 §6.2.2.2), and some clients encode the tilde.
    static func afterTilde(_ path: Substring) -> Substring? {
        for start in ["/~", "/%7E", "/%7e"] where path.hasPrefix(start) { return path.dropFirst(start.count) }
        return nil
    }

    private func isBearer(_ value: String, _ token: String) -> Bool {
        guard value.prefix(7).lowercased() == "bearer " else { return false }
        return Secret.areEqual(value.dropFirst(7).drop { $0 == " " }.utf8, token.utf8)
    }

    /// Returns whether a request is allowed to have side effects. For a request from a web page, the result is `true`
    /// only if this server sent the page.
    ///
    /// A browser sends the origin of the page with each request that can have effects (Fetch standard, §3.2). For a
    /// page without an origin, or in a sandbox, it sends `null`, and the result is `false`.
    func mayChange(_ head: RequestHead) -> Bool {
        for value in head.fields.values("origin") {
            guard let host = head.host, value.lowercased() == "http://" + host.lowercased() else { return false }
        }
        return !Self.isFromOtherPage(head.fields)
    }
}

/// The secrets in the server's URLs.
enum Secret {
    /// Returns a new secret of 128 random bits, in characters that are allowed in a path.
    static func random() -> String {
        (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
    }

    /// Returns whether two secrets are equal.
    ///
    /// The duration of the comparison depends only on the lengths, so that it does not reveal how many bytes of a guess
    /// are correct.
    static func areEqual(_ one: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
        guard one.count == other.count else { return false }
        var difference: UInt8 = 0
        for (a, b) in zip(one, other) { difference |= a ^ b }
        return difference == 0
    }
}

extension String {
    /// The address between the brackets of `[::1]`, or the unchanged string.
    var trimmingBrackets: String { hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self }
}
#endif
