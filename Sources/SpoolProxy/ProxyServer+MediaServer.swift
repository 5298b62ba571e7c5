#if Proxy
public import Foundation
import NIOCore
import NIOPosix
public import Spool
import Synchronization

/// What an app asks of its server.
extension ProxyServer {
    /// Whether the server listens.
    public var state: MediaServerState { port.map { .running(port: $0) } ?? .stopped }

    /// The URL to hand to a player in place of a source's own; see ``Spool/MediaServer``.
    ///
    /// The source's header fields, or its resolver's, are sent to its own origin, and the address does not tell them.
    public func url(for source: MediaSource) -> URL? {
        guard ["http", "https"].contains(source.url.scheme?.lowercased()) else { return nil }
        listenAnewIfNeeded()
        guard state != .stopped else { return nil }
        return url(for: source.url, prefix: source.isPlain ? "" : sources.prefix(for: source))
    }

    /// Listens again where the system has taken the listening socket away, at another port if the former is not free.
    private func listenAnewIfNeeded() {
        restarting.withLock { _ in
            guard let former = running.withLock({ $0 }), !ListenerProbe.isReachable(former.address) else { return }
            let host = configuration.host.trimmingBrackets
            // What can't be closed is closed already.
            try? former.channels.first?.close().wait()
            let bootstrap = bootstrap(service)
            // Whether somebody else has the port by now shows when it is asked for.
            let channel =
                (try? bootstrap.bind(host: host, port: former.address.port ?? 0).wait())
                ?? (try? bootstrap.bind(host: host, port: 0).wait())  // Without any, players fail as they would have.
            guard let channel, let address = channel.localAddress else { return }
            configuration.ownPort.set(address.port ?? 0)
            let isStopped = running.withLock { running in
                guard running != nil else { return true }
                running = Running(
                    channels: [channel] + former.channels.dropFirst(), address: address, control: former.control)
                return false
            }
            if isStopped { try? channel.close().wait() }  // As above.
        }
    }
}
#endif
