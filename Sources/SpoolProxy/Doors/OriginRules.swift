#if Proxy
import HTTPTypes
import SpoolHTTP

/// Which origins may be asked, and how a request is known that has been here before.
struct OriginRules: Sendable {
    private let patterns: [HostPattern]
    /// This server's name in `Via` and `CDN-Loop`, which no other has.
    private let mark: String
    /// The port that the server listens on, once it does.
    private let ownPort: OwnPort

    init(allowedHosts: [String], mark: String, ownPort: OwnPort) {
        patterns = allowedHosts.compactMap { HostPattern($0) }
        self.mark = mark
        self.ownPort = ownPort
    }

    /// Checks an origin by its name; its addresses are checked where they are connected to.
    ///
    /// - Parameter isOwn: Whether the server stands for it.
    /// - Throws: `RequestFailure` with status 403.
    func check(_ url: OriginURL, for client: ProxyClient, isOwn: Bool) throws(RequestFailure) {
        if isOwn { return }
        if url.effectivePort == ownPort.value, isThisMachine(url.host) {
            throw RequestFailure(403, "this server does not ask itself")
        }
        if !patterns.isEmpty {
            guard patterns.contains(where: { $0.matches(url.host, port: url.effectivePort) }) else {
                throw RequestFailure(403, "\(url.authority) is not among the origins that may be asked")
            }
            return
        }
        if !client.isLoopback, isThisMachine(url.host) || IPAddress(host: url.host)?.isSpecial ?? false {
            throw RequestFailure(
                403, "\(url.authority) is not on the internet, and only this machine's clients may ask it")
        }
    }

    private func isThisMachine(_ host: String) -> Bool {
        let host = host.hasSuffix(".") ? String(host.dropLast()) : host
        return host == "localhost" || host.hasSuffix(".localhost")
            || IPAddress(host: host).map { $0.isLoopback || $0.isUnspecified } ?? false
    }

    /// - Throws: `RequestFailure` with status 508 for a request that this server sent.
    func checkLoop(_ fields: RequestFields) throws(RequestFailure) {
        for value in fields.values("cdn-loop") + fields.values("via") where value.contains(mark) {
            throw RequestFailure(508, "the request has come back to this server")
        }
    }

    /// Appends this server to the nodes that a request has passed, so that a loop is detected.
    ///
    /// The entries of other nodes are preserved. Otherwise two servers that are each other's origin would not detect
    /// the loop (RFC 8586 §3, RFC 9110 §7.6.3).
    func addTrace(to fields: inout HTTPFields) {
        fields.append(HTTPField(name: .via, value: "1.1 " + mark))
        if let name = HTTPField.Name("CDN-Loop") { fields.append(HTTPField(name: name, value: mark)) }
    }
}
#endif
