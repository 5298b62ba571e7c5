#if Proxy
public import Foundation
import NIOCore
import NIOPosix
public import Spool
import SpoolStreams
import Synchronization

extension ProxyServer {
    /// Creates a server inside an app, through which the app's own players play HLS from the cache.
    ///
    /// The server uses a free port that only this device can reach, and a secret in each URL. You do not have to start
    /// the server. It starts listening when the app gets the first URL, and again if the system has closed the socket
    /// in the meantime. It responds only to the URLs that it has created, and to the references in their playlists.
    /// Retain the server for as long as its players exist.
    ///
    /// ```swift
    /// let server = ProxyServer.inApp(cache)
    /// let player = CachingPlayer(in: cache, server: server)
    /// ```
    ///
    /// If the server cannot listen, HLS plays without the cache, and a cache event reports the failure.
    ///
    /// - Parameters:
    ///   - cache: The cache. Close it after ``stop(within:)``.
    ///   - maximumBitRate: See ``ProxyConfiguration/maximumBitRate``. The default is `nil`.
    ///   - cachesKeys: See ``ProxyConfiguration/cachesKeys``. The default is `false`.
    public static func inApp(
        _ cache: MediaCache, maximumBitRate: Int64? = nil, cachesKeys: Bool = false
    ) -> ProxyServer {
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.token = Secret.random()
        configuration.startsOnDemand = true
        configuration.threadCount = 1
        #if canImport(Darwin)
        // AVPlayer treats late headers as a failure and retries after an error, even if it sends a different user
        // agent.
        configuration.limits.responseTimeout = ProxyLimits.avPlayerResponseTimeout
        #else
        // libmpv waits for headers, and skips segments that fail.
        configuration.waitsForOrigin = true
        #endif
        (configuration.maximumBitRate, configuration.cachesKeys) = (maximumBitRate, cachesKeys)
        return ProxyServer(cache: cache, valid: configuration, log: nil, clock: ContinuousClock())
    }

    /// Whether the server is listening, and on which port.
    public var state: MediaServerState {
        let port = running.withLock { $0?.isSuspended == false ? $0?.address.port : nil }
        return port.map { .running(port: $0) } ?? .stopped
    }

    /// Closes the sockets of a server in an app until the app gets the next URL. See ``Spool/MediaServer``.
    ///
    /// The server then listens again, on the same port if that port is free. Other servers ignore the call.
    public func suspend() {
        guard configuration.startsOnDemand else { return }
        let sockets = restarting.withLock { _ in
            running.withLock { running in
                running?.isSuspended = true
                return running?.sockets ?? []
            }
        }
        for socket in sockets { socket.close(promise: nil) }
        tables.abort()
    }

    /// Returns the URL to pass to a player instead of the source's own. See ``Spool/MediaServer``.
    ///
    /// The header fields of the source, or of its resolver, are sent to its origin. They are not in the URL.
    public func url(for source: MediaSource) -> URL? {
        guard ["http", "https"].contains(source.url.scheme?.lowercased()) else { return nil }
        listenIfNeeded()
        guard state != .stopped else { return nil }
        let isRegistered = !source.isPlain || configuration.servesOnlyCreatedURLs
        return url(for: source.url, prefix: isRegistered ? sources.prefix(for: source) : "")
    }

    /// Preloads the start of an HLS stream.
    ///
    /// The first variant in the playlist is preloaded or, with a ``ProxyConfiguration/maximumBitRate``, the best
    /// variant within that limit. The playlists are not parsed on the caller's actor.
    @concurrent public func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {
        let variant: HLSVariantSelection =
            configuration.maximumBitRate.map { .bandwidth(atMost: $0) } ?? .first
        var download = HLSDownloader(
            source, in: cache, variant: variant, firstSeconds: seconds, maximumConcurrentDownloads: 2)
        download.includesKeys = configuration.cachesKeys
        try await download.run()
    }

    /// Starts listening if the server starts on demand, and listens again if the system has closed the socket.
    ///
    /// If the previous port is in use, the server uses another one.
    func listenIfNeeded() {
        restarting.withLock { _ in
            guard !isStopped.load(ordering: .relaxed) else { return }
            guard let previous = running.withLock({ $0 }) else {
                guard configuration.startsOnDemand, let bound = bind(configuration.port) else { return }
                become(Running(channels: [bound.channel], loopback: bound.loopback, address: bound.address))
                return tables.start()
            }
            let sockets = [previous.channels.first, previous.loopback].compactMap { $0 }
            // The sockets are checked as well, because another process may be listening on the port.
            if !previous.isSuspended, sockets.allSatisfy({ $0.isReachable }) { return }
            for socket in sockets { try? socket.close().wait() }  // This fails only if the channel is closed.
            // If no port is free, there is no URL.
            guard let bound = bind(previous.address.port ?? configuration.port) ?? bind(0) else { return }
            become(
                Running(
                    channels: [bound.channel] + previous.channels.dropFirst(), loopback: bound.loopback,
                    address: bound.address, control: previous.control))
        }
    }

    /// Listens on the configured address. A server in an app listens on 127.0.0.1 and, with the same port, on ::1.
    ///
    /// The system may resolve `localhost` to either address. Another process that listens on one of them would receive
    /// the player's requests. Therefore, the server does not use a port that is in use on either address.
    ///
    /// - Returns: The sockets and the address, or `nil` if the port is not free.
    private func bind(_ port: Int) -> (channel: any Channel, loopback: (any Channel)?, address: SocketAddress)? {
        let (host, listener) = (configuration.host.trimmingBrackets, bootstrap(service))
        // A port that is free at the first address is nearly always free at the second.
        for _ in 0..<(port == 0 ? 10 : 1) {
            let socket = try? listener.bind(host: host, port: port).wait()  // This fails if the port is in use.
            guard let channel = socket else { return nil }
            guard let address = channel.localAddress else {
                try? channel.close().wait()  // This fails only if the channel is closed.
                return nil
            }
            guard configuration.startsOnDemand, host == "127.0.0.1", let bound = address.port else {
                return (channel, nil, address)
            }
            do {
                return (channel, try listener.bind(host: "::1", port: bound).wait(), address)
            } catch let error as IOError where [EADDRNOTAVAIL, EAFNOSUPPORT].contains(error.errnoCode) {
                // Without IPv6, no process can listen on ::1.
                return (channel, nil, address)
            } catch {
                try? channel.close().wait()  // This fails only if the channel is closed.
            }
        }
        return nil
    }
}

extension Channel {
    /// Whether the channel's socket is listening, and a connection to its address can be opened.
    fileprivate var isReachable: Bool { isListening && localAddress.map(ListenerProbe.isReachable) ?? false }

    /// Whether the channel's socket is listening, according to the system.
    fileprivate var isListening: Bool {
        let option = ChannelOptions.Types.SocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: SO_ACCEPTCONN))
        // This fails if the socket was closed.
        let value = try? getOption(option).wait()
        return value.map { $0 != 0 } ?? false
    }
}

/// A check of whether a process is listening on an address of this machine.
///
/// A system may close the listening socket of a suspended app without any event. The socket then looks unchanged.
private enum ListenerProbe {
    /// Returns whether a connection can be opened. The check takes almost no time on the same machine.
    static func isReachable(_ address: SocketAddress) -> Bool {
        #if os(Linux)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let descriptor = socket(Int32(address.protocol.rawValue), type, 0)
        // Without a free descriptor, the check is not possible, and a new listening socket could not be opened, either.
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { return true }
        let code = address.withSockAddr { address, size in
            connect(descriptor, address, socklen_t(size)) == 0 ? 0 : errno
        }
        guard code == EINPROGRESS else { return code == 0 }
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // If the process needs more time, it is listening but busy.
        guard poll(&wanted, 1, 200) > 0 else { return true }
        var failure: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0
    }
}
#endif
