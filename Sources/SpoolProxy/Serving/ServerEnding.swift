#if Proxy
import NIOCore
import NIOPosix

/// What of a server has to be ended, in its order.
struct ServerEnding: Sendable {
    let channels: [any Channel]
    let services: [ProxyService]
    let tables: ConnectionTables
    let exchanges: RunningExchanges
    let patience: OriginPatience?
    let log: AccessLog?
    let group: MultiThreadedEventLoopGroup

    /// - Parameter limit: How long responses that are under way may take.
    func end(within limit: Duration) async {
        for channel in channels { try? await channel.close() }  // One that is closed already is.
        for service in services { service.stop() }
        patience?.end()
        await tables.end(within: limit)
        // A task whose client has gone ends soon, and must find its event loop.
        await exchanges.waitUntilNone()
        log?.flush()
        try? await group.shutdownGracefully()  // It fails only if it has been shut down before.
    }
}
#endif
