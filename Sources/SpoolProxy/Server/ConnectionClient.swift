#if Proxy

/// The client of one connection. The type counts the connection, or its requests, against the client's limit.
///
/// A connection counts against the limit of the client that opened it, or that a PROXY protocol header identifies. If a
/// trusted proxy uses the connection for several clients, each request counts against the limit of the client that its
/// fields identify.
struct ConnectionClient: ~Copyable {
    /// The client at the other end, or the client that a PROXY protocol header identifies.
    private(set) var client: ProxyClient
    /// Whether the fields of each request identify its client.
    private var readsForwarding: Bool
    private var isCounted = false
    /// The client of the running request, if the request counts against its limit.
    private var requester: ProxyClient?
    private let proxies: TrustedProxies
    private let counts: ClientCounts

    init(_ client: ProxyClient, _ proxies: TrustedProxies, _ counts: ClientCounts) {
        self.client = client
        self.proxies = proxies
        self.counts = counts
        readsForwarding = client.kind == .trustedProxy
    }

    /// Whether the connection starts with a PROXY protocol header.
    var hasHeader: Bool { readsForwarding && proxies.usesProxyProtocol }

    /// Sets the client of the connection to the one that its header identifies. If the header does not identify a
    /// client, the load balancer remains the client.
    mutating func introduce(_ header: ProxyProtocolHeader) {
        if let address = header.client { client = proxies.client(named: address) }
        readsForwarding = header.client != nil && client.kind == .trustedProxy
    }

    /// Counts the connection. Returns `false` if the client has too many connections.
    mutating func admit() -> Bool {
        isCounted = counts.add(client)
        return isCounted
    }

    /// Counts a request, if its fields identify its client.
    ///
    /// - Returns: The client, and the reason if the request is rejected.
    mutating func start(_ head: RequestHead) -> (client: ProxyClient, rejection: RequestFailure?) {
        guard readsForwarding else { return (client, nil) }
        do {
            let asking = try proxies.client(of: head.fields, from: client)
            guard counts.add(asking) else { return (asking, Self.tooManyRequests) }
            requester = asking
            return (asking, nil)
        } catch {
            return (client, error)
        }
    }

    /// Stops counting the running request.
    mutating func endRequest() {
        if let requester = requester.take() { counts.remove(requester) }
    }

    /// Stops counting the connection and its request, because the connection is closed.
    mutating func end() {
        endRequest()
        if isCounted { counts.remove(client) }
        isCounted = false
    }

    static let tooManyConnections = RequestFailure(503, "too many connections are open", retryAfter: 5)
    private static let tooManyRequests = RequestFailure(
        503, "too many requests from this client are in progress", retryAfter: 5)
}
#endif
