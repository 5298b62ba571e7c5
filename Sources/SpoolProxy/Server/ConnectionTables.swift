#if Proxy
import NIOCore
import NIOPosix
import Synchronization

/// All connections of a server, in one table for each event loop, and their total number.
final class ConnectionTables: Sendable {
    private struct Counts {
        var all = 0
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let tables: [ObjectIdentifier: NIOLoopBoundBox<ConnectionTable>]
    private let limits: ProxyLimits
    private let counts = Mutex(Counts())

    init(_ group: MultiThreadedEventLoopGroup, limits: ProxyLimits) {
        self.limits = limits
        let clients = ClientCounts(limit: limits.maximumConnectionsPerClient)
        var tables: [ObjectIdentifier: NIOLoopBoundBox<ConnectionTable>] = [:]
        for loop in group.makeIterator() {
            tables[ObjectIdentifier(loop)] = NIOLoopBoundBox.makeBoxSendingValue(
                ConnectionTable(clients: clients), eventLoop: loop)
        }
        self.tables = tables
    }

    /// The number of connections beyond the limit that receive a response with the reason for the rejection. Further
    /// connections are closed immediately.
    private static let rejectedLimit = 16

    /// Adds a connection. Call it on the connection's event loop.
    func accept(_ channel: any Channel, for service: ProxyService) throws {
        let all = counts.withLock { counts in
            counts.all += 1
            return counts.all
        }
        channel.closeFuture.whenComplete { _ in self.closed() }
        // A rejected connection needs a descriptor until its client has read the reason.
        guard all <= limits.maximumConnections + Self.rejectedLimit else { return channel.close(promise: nil) }
        guard let table = tables[ObjectIdentifier(channel.eventLoop)] else { return }
        let client = service.trustedProxies.client(at: channel.remoteAddress)
        let connection = ProxyConnection(service: service, client: client, table: table.value)
        try channel.pipeline.syncOperations.addHandler(connection)
        if all > limits.maximumConnections { connection.reject() }
    }

    private func closed() {
        let waiting = counts.withLock { counts in
            counts.all -= 1
            return counts.all == 0 ? counts.waiting.take() : nil
        }
        waiting?.resume()
    }

    /// Starts checking the deadlines.
    func start() {
        for table in tables.values {
            table.eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
                table.value.check(now: .now())
            }
        }
    }

    /// Closes all connections.
    func abort() {
        for table in tables.values { table.eventLoop.execute { table.value.abort() } }
    }

    /// Closes idle connections now, busy ones after their response, and all of them after `limit`.
    func end(within limit: Duration) async {
        for table in tables.values { table.eventLoop.execute { table.value.stop() } }
        let aborting = Task {
            try await ContinuousClock().sleep(for: limit)
            abort()
        }
        await withCheckedContinuation { continuation in
            let isOver = counts.withLock { counts in
                guard counts.all > 0 else { return true }
                counts.waiting = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
        aborting.cancel()
    }
}

/// The connections of one event loop. Their deadlines are checked once a second.
///
/// A timer for each connection would cost more than the checks.
final class ConnectionTable {
    private var connections: [ObjectIdentifier: ProxyConnection] = [:]
    /// The buffers that these connections share.
    let buffers = HitBuffers()
    /// The connections and requests of each client.
    let clients: ClientCounts

    init(clients: ClientCounts = ClientCounts(limit: .max)) { self.clients = clients }

    func insert(_ connection: ProxyConnection) { connections[ObjectIdentifier(connection)] = connection }

    func remove(_ connection: ProxyConnection) { connections[ObjectIdentifier(connection)] = nil }

    /// Closes the connections whose deadlines have passed, and releases unused memory.
    func check(now: NIODeadline) {
        buffers.releaseUnused()
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
