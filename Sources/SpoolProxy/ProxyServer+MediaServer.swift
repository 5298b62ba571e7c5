#if Proxy
public import Foundation
import NIOCore
import NIOPosix
public import Spool
import Synchronization

/// What an app asks of its server.
extension ProxyServer {
    /// A server inside an app for the app's own players, by which HLS plays through the cache: on a port that is free, which
    /// nobody but this device can reach, with a secret in each URL. It need not be started: it listens when it is first
    /// asked for a URL, and again when the system has taken its socket away. Keep it as long as its players.
    ///
    /// ```swift
    /// let server = ProxyServer.inApp(cache)
    /// let player = CachingPlayer(in: cache, server: server)
    /// ```
    ///
    /// Where it can't listen, HLS plays plainly, and the cache's events say so.
    ///
    /// - Parameters:
    ///   - cache: What it serves from; close it after ``stop(within:)``.
    ///   - maximumBitRate: As ``ProxyConfiguration/maximumBitRate``.
    ///   - keepsKeys: As ``ProxyConfiguration/keepsKeys``.
    public static func inApp(
        _ cache: MediaCache, maximumBitRate: Int64? = nil, keepsKeys: Bool = false
    ) -> ProxyServer {
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.token = Secret.drawn()
        configuration.startsWhenAsked = true
        configuration.threads = 1
        (configuration.maximumBitRate, configuration.keepsKeys) = (maximumBitRate, keepsKeys)
        return ProxyServer(cache: cache, valid: configuration, log: nil, clock: ContinuousClock())
    }

    /// Whether the server listens.
    public var state: MediaServerState { port.map { .running(port: $0) } ?? .stopped }

    /// The URL to hand to a player in place of a source's own; see ``Spool/MediaServer``.
    ///
    /// The source's header fields, or its resolver's, are sent to its own origin, and the address does not tell them.
    public func url(for source: MediaSource) -> URL? {
        guard ["http", "https"].contains(source.url.scheme?.lowercased()) else { return nil }
        listenIfNeeded()
        guard state != .stopped else { return nil }
        return url(for: source.url, prefix: source.isPlain ? "" : sources.prefix(for: source))
    }

    /// Brings the beginning of an HLS stream into the cache: of the variant that its playlist names first, or where there is a
    /// ``ProxyConfiguration/maximumBitRate``, of the highest within that.
    public func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {
        let variant: HLSVariantSelection =
            configuration.maximumBitRate.map { .bandwidth(atMost: $0) } ?? .first
        var download = HLSDownloader(
            source, in: cache, variant: variant, firstSeconds: seconds, concurrency: 2)
        download.bringsKeys = configuration.keepsKeys
        try await download.run()
    }

    /// Listens where it is to begin by itself, and again where the system has taken the listening socket away, at another
    /// port if the former is not free.
    private func listenIfNeeded() {
        restarting.withLock { _ in
            let former = running.withLock { $0 }
            if let former {
                // Somebody else may have the port by now, so that it can be reached all the same.
                if let channel = former.channels.first, channel.isListening,
                    ListenerProbe.isReachable(former.address)
                {
                    return
                }
                // What can't be closed is closed already.
                try? former.channels.first?.close().wait()
            } else if !configuration.startsWhenAsked || isStopped.load(ordering: .relaxed) {
                return
            }
            guard let channel = bind(former?.address.port ?? configuration.port) else { return }
            guard let address = channel.localAddress, become(channel, address, after: former) else {
                try? channel.close().wait()  // As above.
                return
            }
            configuration.ownPort.set(address.port ?? 0)
            if former == nil { tables.begin() }
        }
    }

    /// The port, or another where somebody else has it. Without any, players fail as they would have.
    private func bind(_ port: Int) -> (any Channel)? {
        let host = configuration.host.trimmingBrackets
        let bootstrap = bootstrap(service)
        return (try? bootstrap.bind(host: host, port: port).wait()) ?? (try? bootstrap.bind(host: host, port: 0).wait())
    }

    /// False if the server was stopped meanwhile.
    private func become(_ channel: any Channel, _ address: SocketAddress, after former: Running?) -> Bool {
        running.withLock { running in
            guard !isStopped.load(ordering: .relaxed), (running == nil) == (former == nil) else { return false }
            running = Running(
                channels: [channel] + (former?.channels.dropFirst() ?? []), address: address, control: former?.control)
            return true
        }
    }
}

extension Channel {
    /// Whether its socket listens, as the system says.
    fileprivate var isListening: Bool {
        let option = ChannelOptions.Types.SocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: SO_ACCEPTCONN))
        // A socket that can't be asked is one that was closed, or taken away.
        let value = try? getOption(option).wait()
        return value.map { $0 != 0 } ?? false
    }
}
#endif
