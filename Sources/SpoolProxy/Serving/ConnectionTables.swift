#if Proxy
import NIOCore
import NIOPosix
import Synchronization

/// All connections of a server: one table for each event loop, and how many there are in all and of each client.
final class ConnectionTables: Sendable {
    private struct Counts {
        var all = 0
        var clients: [String: Int] = [:]
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let tables: [ObjectIdentifier: NIOLoopBoundBox<ConnectionTable>]
    private let limits: ProxyLimits
    private let counts = Mutex(Counts())

    init(_ group: MultiThreadedEventLoopGroup, limits: ProxyLimits) {
        self.limits = limits
        var tables: [ObjectIdentifier: NIOLoopBoundBox<ConnectionTable>] = [:]
        for loop in group.makeIterator() {
            tables[ObjectIdentifier(loop)] = NIOLoopBoundBox.makeBoxSendingValue(ConnectionTable(), eventLoop: loop)
        }
        self.tables = tables
    }

    /// How many connections beyond the limit are told that they are.
    private static let turnedAway = 16

    /// How many connections are open.
    var count: Int { counts.withLock { $0.all } }

    /// Takes a connection in; on its event loop.
    func accept(_ channel: any Channel, for service: ProxyService) throws {
        let client = ProxyClient(channel.remoteAddress)
        let (isAdmitted, isHeard) = counts.withLock { counts in
            let own = counts.clients[client.text, default: 0]
            counts.all += 1
            counts.clients[client.text] = own + 1
            let isAdmitted =
                counts.all <= limits.connections && (client.isLoopback || own < limits.connectionsPerClient)
            return (isAdmitted, isAdmitted || counts.all <= limits.connections + Self.turnedAway)
        }
        channel.closeFuture.whenComplete { _ in self.closed(client) }
        // One that is turned away takes a descriptor, too, until it has read why.
        guard isHeard else { return channel.close(promise: nil) }
        guard let table = tables[ObjectIdentifier(channel.eventLoop)] else { return }
        let connection = ProxyConnection(service: service, client: client, table: table.value)
        try channel.pipeline.syncOperations.addHandler(connection)
        if !isAdmitted { connection.turnAway() }
    }

    private func closed(_ client: ProxyClient) {
        let waiting = counts.withLock { counts in
            counts.all -= 1
            let own = (counts.clients[client.text] ?? 1) - 1
            counts.clients[client.text] = own > 0 ? own : nil
            return counts.all == 0 ? counts.waiting.take() : nil
        }
        waiting?.resume()
    }

    /// Looks at deadlines from now on.
    func begin() {
        for table in tables.values {
            table.eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
                table.value.check(now: .now())
            }
        }
    }

    /// Ends idle connections now, busy ones after their response, and all after `limit`.
    func end(within limit: Duration) async {
        for table in tables.values { table.eventLoop.execute { table.value.stop() } }
        let aborting = Task {
            try await ContinuousClock().sleep(for: limit)
            for table in tables.values { table.eventLoop.execute { table.value.abort() } }
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
#endif
