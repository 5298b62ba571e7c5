#if Proxy
import HTTPTypes
import SpoolHTTP

/// Who may ask the server for what: the hosts that it is known by, the token, the pages that may change something.
///
/// Pure: it reads a request's head and the client's address.
struct AccessRules: Sendable {
    /// A request that was let in.
    struct Admitted: Sendable, Hashable {
        /// The target without a token in its path.
        var target: String
        /// The prefix that the client's own paths have: `/~TOKEN`, or nothing.
        var prefix: String
        /// The server's own token, which no origin may see, in whatever field it stands.
        var secret: String?
    }

    /// The secret that every request must have; nil if none has to.
    var token: String?
    /// Names by which clients may know the server, in lower case, beside addresses in figures and `localhost`.
    var serverNames: Set<String>

    init(token: String?, serverNames: [String]) {
        self.token = token
        self.serverNames = Set(serverNames.map { $0.lowercased() })
    }

    /// Lets a request in.
    ///
    /// - Throws: `RequestFailure`: 400 for a host that can't be read; 421 for one that the server is not known by, so that no
    ///   page reaches it by a name of its own that leads here (DNS rebinding); 401 without the token.
    func admit(_ head: RequestHead) throws(RequestFailure) -> Admitted {
        try checkHost(head)
        guard let token else { return Admitted(target: head.target, prefix: "") }
        if let rest = withoutToken(head.target, token) {
            return Admitted(target: rest, prefix: "/~" + token, secret: token)
        }
        // The first is for a client that has an Authorization of its own for the origin.
        for name in ["proxy-authorization", "authorization"] as [StaticString] {
            for value in head.fields.values(name) where isBearer(value, token) {
                return Admitted(target: head.target, prefix: "", secret: token)
            }
        }
        throw RequestFailure(401, "this server wants its token, as the first part of the path or as Bearer")
    }

    private func checkHost(_ head: RequestHead) throws(RequestFailure) {
        // Only HTTP/1.0 may leave it out, and no browser speaks that.
        guard let text = head.host else { return }
        let name: String
        do {
            name = try HostAndPort(text[...]).host
        } catch {
            throw RequestFailure(400, "the request's Host can't be read: \(error)")
        }
        // No name server has a say in what these mean.
        if IPAddress(host: name) != nil || name == "localhost" || name.hasSuffix(".localhost") { return }
        if serverNames.contains(name) { return }
        throw RequestFailure(421, "this server is not known by the name that was asked for; it can be told one")
    }

    private func withoutToken(_ target: String, _ token: String) -> String? {
        guard target.hasPrefix("/~") else { return nil }
        let path = target.dropFirst(2)
        let end = path.firstIndex { $0 == "/" || $0 == "?" } ?? path.endIndex
        guard ConstantTime.areEqual(path[..<end].utf8, token.utf8) else { return nil }
        let rest = path[end...]
        return rest.hasPrefix("/") ? String(rest) : "/" + rest
    }

    private func isBearer(_ value: String, _ token: String) -> Bool {
        guard value.prefix(7).lowercased() == "bearer " else { return false }
        return ConstantTime.areEqual(value.dropFirst(7).drop { $0 == " " }.utf8, token.utf8)
    }

    /// Whether a page may have this request change something: none that says where it is from and is not of this server.
    ///
    /// A browser names the page's origin in each request that can change something (the Fetch standard, §3.2); a page in a
    /// sandbox, or of no address, says `null`, and may change nothing.
    func mayChange(_ head: RequestHead) -> Bool {
        for value in head.fields.values("origin") {
            guard let host = head.host, value.lowercased() == "http://" + host.lowercased() else { return false }
        }
        if let site = head.fields["sec-fetch-site"], site != "same-origin", site != "none" { return false }
        return true
    }
}
extension String {
    /// The address of `[::1]`; anything else as it is.
    var trimmingBrackets: String { hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self }
}
#endif
