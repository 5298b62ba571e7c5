#if Proxy
import NIOCore

/// The connections of one event loop, which looks at their deadlines once a second: a timer for each would cost more than
/// all that they wait for.
final class ConnectionTable {
    private var connections: [ObjectIdentifier: ProxyConnection] = [:]

    func insert(_ connection: ProxyConnection) { connections[ObjectIdentifier(connection)] = connection }

    func remove(_ connection: ProxyConnection) { connections[ObjectIdentifier(connection)] = nil }

    /// Ends what has taken too long.
    func check(now: NIODeadline) {
        for connection in Array(connections.values) { connection.check(now: now) }
    }

    func stop() {
        for connection in Array(connections.values) { connection.stop() }
    }

    func abort() {
        for connection in Array(connections.values) { connection.abort() }
    }
}
#endif
