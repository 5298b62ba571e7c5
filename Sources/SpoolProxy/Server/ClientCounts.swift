#if Proxy
import Synchronization

/// The number of connections from each client, and of concurrent requests from each client that a trusted proxy
/// identifies.
///
/// A load balancer uses one connection for several clients in turn, so their requests are counted instead. IPv6 clients
/// are counted by network.
final class ClientCounts: Sendable {
    private let limit: Int
    /// See ``ProxyClient/network``.
    private let networks = Mutex<[String: Int]>([:])

    /// - Parameter limit: The maximum number of connections, and of concurrent requests, for each client.
    init(limit: Int) { self.limit = limit }

    /// Counts a connection or request, unless its client has reached the limit.
    ///
    /// - Returns: `false` if the client has reached the limit. Otherwise, call ``remove(_:)`` when the connection or
    ///   the request ends.
    func add(_ client: ProxyClient) -> Bool {
        guard client.isLimited else { return true }
        let network = client.network
        return networks.withLock { networks in
            let count = networks[network, default: 0]
            guard count < limit else { return false }
            networks[network] = count + 1
            return true
        }
    }

    /// Removes a connection or request that was added earlier.
    func remove(_ client: ProxyClient) {
        guard client.isLimited else { return }
        let network = client.network
        networks.withLock { networks in
            let count = (networks[network] ?? 1) - 1
            networks[network] = count > 0 ? count : nil
        }
    }
}
#endif
