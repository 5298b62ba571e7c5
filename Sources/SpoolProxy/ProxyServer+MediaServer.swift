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
        #if !canImport(Darwin)
        // AVPlayer takes a head that is late for a failure, and asks again after an error; libmpv waits, and leaves out what
        // it is refused.
        configuration.waitsForOrigin = true
        #endif
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
    ///
    /// Its playlists are read away from the caller's actor.
    @concurrent public func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {
        let variant: HLSVariantSelection =
            configuration.maximumBitRate.map { .bandwidth(atMost: $0) } ?? .first
        var download = HLSDownloader(
            source, in: cache, variant: variant, firstSeconds: seconds, concurrency: 2)
        download.bringsKeys = configuration.keepsKeys
        try await download.run()
    }

    /// Listens where it is to begin by itself, and again where the system has taken the listening socket away, at another
    /// port if the former is not free.
    func listenIfNeeded() {
        restarting.withLock { _ in
            guard !isStopped.load(ordering: .relaxed) else { return }
            guard let former = running.withLock({ $0 }) else {
                guard configuration.startsWhenAsked, let channel = bind(configuration.port) else { return }
                listen(on: channel)
                return tables.begin()
            }
            // Somebody else may have the port by now, so that it can be reached all the same.
            if let channel = former.channels.first, channel.isListening, ListenerProbe.isReachable(former.address) {
                return
            }
            try? former.channels.first?.close().wait()  // What can't be closed is closed already.
            // Without any port players fail as they would have.
            guard let channel = bind(former.address.port ?? configuration.port) ?? bind(0) else { return }
            listen(on: channel, after: former)
        }
    }

    private func bind(_ port: Int) -> (any Channel)? {
        let host = configuration.host.trimmingBrackets
        return try? bootstrap(service).bind(host: host, port: port).wait()  // Then there is no URL.
    }

    private func listen(on channel: any Channel, after former: Running? = nil) {
        guard let address = channel.localAddress else {
            try? channel.close().wait()  // It is closed already, then.
            return
        }
        become(
            Running(
                channels: [channel] + (former?.channels.dropFirst() ?? []), address: address, control: former?.control))
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
