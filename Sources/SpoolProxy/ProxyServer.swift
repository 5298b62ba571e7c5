#if Proxy
public import Foundation
import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle
public import Spool
import SpoolStreams
import Synchronization

/// An HTTP server that delivers the media of a ``Spool/MediaCache`` to any player: mpv, VLC, a browser, or AVPlayer
/// with HLS.
///
/// Pass the player the URL that ``url(for:)-(URL)`` returns for the URL of the media. If the configuration contains a
/// ``ProxyConfiguration/origin``, the server serves the paths of that origin instead (reverse mode).
///
/// ```swift
/// let server = try ProxyServer(cache: cache)
/// try await server.start()
/// player.play(server.url(for: episode))
/// ```
///
/// A server that ``inApp(_:maximumBitRate:cachesKeys:)`` creates for an app's own players does not require a call to
/// ``start()``.
///
/// The server supports HTTP/1.1. All methods may be called from any task. In a service group, ``run()`` serves requests
/// until graceful shutdown.
public final class ProxyServer: Service, MediaServer, Sendable {
    struct Running {
        var channels: [any Channel]
        /// The socket at ::1 of a server in an app, with the same port as the first socket.
        var loopback: (any Channel)?
        var address: SocketAddress
        var control: SocketAddress?
        /// Whether the sockets are closed until the app gets the next URL.
        var isSuspended = false

        /// All listening sockets.
        var sockets: [any Channel] { channels + (loopback.map { [$0] } ?? []) }
    }

    let cache: MediaCache
    let configuration: ProxyConfiguration
    /// The server's own origin, or `nil` in forward mode.
    private let origin: OriginURL?
    let service: ProxyService
    private let adminService: ProxyService?
    private let controlService: ProxyService?
    private let log: AccessLog?
    private let group: MultiThreadedEventLoopGroup
    let tables: ConnectionTables
    private let exchanges = RunningExchanges()
    private let retryWaiter: OriginRetryWaiter?
    let page: LivePage
    let sources: SourceRegistry
    /// The source of the data for the live pages.
    var feed: DashboardFeed { page.feed }
    let running = Mutex<Running?>(nil)
    let isStopped = Atomic<Bool>(false)
    /// The lock for changes to the listening sockets. It ensures that only one caller starts listening, and that no
    /// caller does so after the server has stopped.
    let restarting = Mutex(())

    /// Creates a server that is not listening yet.
    ///
    /// - Parameters:
    ///   - cache: The cache. Close it after ``stop(within:)``.
    ///   - configuration: The address, the access control and the limits.
    /// - Throws: ``ProxyError`` with code `configuration` if a token is missing, a value is invalid, or the log cannot
    ///   be written.
    public convenience init(
        cache: MediaCache, configuration: ProxyConfiguration = ProxyConfiguration()
    ) throws(ProxyError) {
        try self.init(cache: cache, configuration: configuration, clock: ContinuousClock())
    }

    /// Creates a server like ``init(cache:configuration:)``, with the given clocks.
    ///
    /// - Parameters:
    ///   - clock: The clock for the time limits of responses.
    ///   - dashboardClock: The clock for the messages and the history of the live page.
    ///   - now: A function that returns the date, which determines the age of responses. The default is the system's
    ///     date.
    convenience init(
        cache: MediaCache, configuration: ProxyConfiguration, clock: any Clock<Duration>,
        dashboardClock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(ProxyError) {
        try configuration.validate()
        let log = try configuration.accessLog.map { url throws(ProxyError) in try AccessLog(url) }
        self.init(
            cache: cache, valid: configuration, log: log, clock: clock, dashboardClock: dashboardClock, now: now)
    }

    /// Creates a server.
    ///
    /// - Parameter configuration: A validated configuration.
    init(
        cache: MediaCache, valid configuration: ProxyConfiguration, log: AccessLog?, clock: any Clock<Duration>,
        dashboardClock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.cache = cache
        self.configuration = configuration
        let count = configuration.threadCount > 0 ? configuration.threadCount : UsableCores.count
        group = MultiThreadedEventLoopGroup(numberOfThreads: count)
        var limits = configuration.limits
        limits.maximumConnections = min(limits.maximumConnections, DescriptorLimit.forClients)
        tables = ConnectionTables(group, limits: limits)
        self.log = log
        let metrics = ProxyMetrics()
        let feed = DashboardFeed(cache: cache, metrics: metrics, clock: dashboardClock, now: now)
        let preloads = OperatorPreloads(
            logger: configuration.logger, changed: { feed.recordChange() },
            cancelled: { feed.record(cancelledPreload: $0) })
        page = LivePage(feed: feed, preloads: preloads)
        let date = DateText(now: now)
        let mark = "spool-" + String(UInt64.random(in: .min ... .max), radix: 36)
        let origin = configuration.origin.flatMap { try? OriginURL($0) }  // The value was validated.
        self.origin = origin
        let exchanges = exchanges
        let sources = SourceRegistry(cache)
        self.sources = sources
        let retryWaiter = configuration.waitsForOrigin ? OriginRetryWaiter(clock: clock) : nil
        self.retryWaiter = retryWaiter
        let passing = BypassResponder(
            cache: cache, configuration: configuration, clock: clock, retryWaiter: retryWaiter)
        let media = MediaResponder(
            cache: cache, configuration: configuration, date: date, clock: clock, retryWaiter: retryWaiter,
            passing: passing,
            manifests: ManifestResponder(
                cache: cache, knowledge: StreamKnowledge(), offline: OfflineVariants(cache: cache, clock: clock),
                date: date, clock: clock, maximumBitRate: configuration.maximumBitRate,
                notesNeeds: configuration.startsOnDemand),
            sources: sources)
        let own = origin
        func origins(isControl: Bool) -> OriginRules {
            OriginRules(
                allowedHosts: isControl ? [] : configuration.allowedHosts,
                hostOverrides: isControl ? nil : configuration.hostOverrides, mark: mark,
                serverPorts: configuration.serverPorts)
        }
        func service(
            token: String?, origin: OriginURL?, pages: OperatorPages, trustedProxies: TrustedProxies = TrustedProxies(),
            run: (@Sendable ([String]) async -> CommandOutcome)? = nil
        ) -> ProxyService {
            // A server with its own origin accepts requests from all web pages.
            let isForPages = origin != nil && pages == .none
            let rules = AccessRules(
                token: token, serverNames: configuration.serverNames,
                pages: isForPages ? nil : configuration.corsOrigins,
                operatorToken: configuration.operatorSettings?.token.text)
            let isControl = run != nil
            let admin = AdminResponder(
                cache: cache, metrics: metrics, rules: rules, preloads: preloads, changed: { feed.recordChange() },
                run: run)
            let rulesOfOrigins = origins(isControl: isControl)
            let dashboard = DashboardAPI(
                feed: feed,
                actions: OperatorActions(
                    cache: cache, operatorSettings: configuration.operatorSettings, origins: rulesOfOrigins,
                    hosts: configuration.hostOverrides, origin: own, originFields: configuration.originFields,
                    preloads: preloads),
                servesAllOrigins: own == nil && pages != .only)
            return ProxyService(
                configuration: configuration, date: date, executor: cache.readingExecutor,
                trustedProxies: trustedProxies,
                responder: Responder(
                    configuration: configuration, rules: rules,
                    origins: rulesOfOrigins, media: media, passing: passing, origin: origin, admin: admin,
                    dashboard: dashboard, sources: sources, pages: pages, isForOperator: isControl),
                log: log, metrics: metrics, exchanges: exchanges, retryWaiter: retryWaiter)
        }
        self.service = service(
            token: configuration.token, origin: origin,
            // A server in an app has no operator.
            pages: origin != nil || configuration.admin != nil || configuration.servesOnlyCreatedURLs ? .none : .also,
            trustedProxies: TrustedProxies(
                configuration.trustedProxies, usesProxyProtocol: configuration.usesProxyProtocol))
        adminService = configuration.admin.map { _ in
            service(token: configuration.token, origin: origin, pages: .only)
        }
        // The operator's commands may access any origin.
        controlService = configuration.control.map {
            service(token: $0.secret, origin: nil, pages: .also, run: $0.run)
        }
    }

    /// Starts listening.
    ///
    /// - Throws: ``ProxyError`` with code `address` if the address is in use, invalid, or not an address of this
    ///   machine.
    public func start() async throws(ProxyError) {
        guard running.withLock({ $0 == nil }) else { return }
        // A transport based on NIO creates these threads for its first request. If clients are using all descriptors by
        // then, NIO terminates the process.
        _ = MultiThreadedEventLoopGroup.singleton
        let channel = try await listen(configuration.host, configuration.port, service)
        guard let address = channel.localAddress else {
            throw ProxyError(.address, "the server's socket has no address")
        }
        var channels = [channel]
        if let admin = configuration.admin, let adminService {
            do {
                channels.append(try await listen(admin.host, admin.port, adminService))
            } catch {
                try? await channel.close()  // The error from the other address is thrown instead.
                throw error
            }
        }
        // Without a control address, commands wait until this process closes the directory.
        let control = controlService == nil ? nil : try? await listen("127.0.0.1", 0, controlService ?? service)
        if let control { channels.append(control) }
        guard start(Running(channels: channels, address: address, control: control?.localAddress)) else {
            // Another caller has started or stopped the server.
            for channel in channels { try? await channel.close() }  // This fails only if the channel is closed.
            return
        }
    }

    /// Starts serving, unless the server is already listening or has been stopped.
    private func start(_ fresh: Running) -> Bool {
        restarting.withLock { _ in
            guard !isStopped.load(ordering: .relaxed), running.withLock({ $0 == nil }) else { return false }
            become(fresh)
            tables.start()
            // A server in an app does not record anything until its page is opened.
            if !configuration.startsOnDemand { page.feed.start() }
            return true
        }
    }

    /// Sets the listening sockets. The caller holds ``restarting``.
    func become(_ fresh: Running) {
        configuration.serverPorts.set(Set(fresh.channels.compactMap { $0.localAddress?.port }))
        running.withLock { $0 = fresh }
    }

    private func listen(_ host: String, _ port: Int, _ service: ProxyService) async throws(ProxyError) -> any Channel {
        do {
            return try await bootstrap(service).bind(host: host.trimmingBrackets, port: port).get()
        } catch {
            throw ProxyError(
                .address, "the server can't listen on \(host):\(port): \(error.asCause)", underlying: error)
        }
    }

    func bootstrap(_ service: ProxyService) -> ServerBootstrap {
        let tables = tables
        return ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // Each connection allocates a receive buffer. A player's request consists of a few hundred bytes.
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1024))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try tables.accept(channel, for: service) }
            }
    }

    /// The port of the server, or `nil` while the server is not listening.
    public var port: Int? { running.withLock { $0?.address.port } }

    /// The URL of the server, such as `http://localhost:8787/`, or `nil` while the server is not listening.
    public var url: URL? {
        guard let port else { return nil }
        let host =
            configuration.listensOnLoopback && configuration.host != "::1" ? Self.thisMachine : configuration.host
        return URL(string: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)/")
    }

    #if canImport(Darwin)
    /// The host name for URLs of this machine. By default, App Transport Security allows HTTP to it, but not to IP
    /// addresses.
    private static let thisMachine = "localhost"
    #else
    private static let thisMachine = "127.0.0.1"
    #endif

    /// The configured address with the actual port, such as `http://0.0.0.0:8787`.
    package var listeningAddress: String {
        let host = configuration.host.trimmingBrackets
        return "http://\(host.contains(":") ? "[\(host)]" : host):\(port ?? configuration.port)"
    }

    /// The address of the live page, including the server's own token, or `nil` if there is no page.
    package var pageAddress: String? {
        let admin = configuration.admin
        guard let running = running.withLock({ $0 }), admin != nil || origin == nil else { return nil }
        let channel = admin == nil ? running.channels.first : running.channels.dropFirst().first
        guard let port = channel?.localAddress?.port else { return nil }
        var host = (admin?.host ?? configuration.host).trimmingBrackets
        // These are unspecified addresses, which do not identify a host.
        if host == "0.0.0.0" { host = "127.0.0.1" }
        if host == "::" { host = "::1" }
        let token = configuration.token.map { "/~" + $0 } ?? ""
        return "http://\(host.contains(":") ? "[\(host)]" : host):\(port)\(token)/.spool/"
    }

    /// The address for the operator's commands, and its secret, or `nil` if the server does not run commands.
    package var controlAddress: (address: String, secret: String)? {
        guard let port = running.withLock({ $0?.control?.port }), let control = configuration.control else {
            return nil
        }
        return ("http://127.0.0.1:\(port)", control.secret)
    }

    /// Returns the URL, including the token, to pass to a player instead of the URL of the media.
    ///
    /// The result is `nil` in these cases:
    /// - The scheme is neither `http` nor `https`.
    /// - The server has its own origin, and the URL does not belong to it.
    /// - The server is not listening.
    public func url(for url: URL) -> URL? {
        if configuration.startsOnDemand { return self.url(for: MediaSource(url: url)) }
        return self.url(for: url, prefix: "")
    }

    func url(for url: URL, prefix: String) -> URL? {
        guard let base = self.url, let asked = try? OriginURL(url) else { return nil }  // The URL has another scheme.
        // A server with its own origin has no paths for other origins.
        if let origin, !asked.isSameOrigin(as: origin) { return nil }
        let path = origin == nil ? ForwardAddress.requestTarget(for: asked) : asked.target
        let token = configuration.token.map { "/~" + $0 } ?? ""
        return URL(string: base.absoluteString.dropLast() + token + prefix + path)
    }

    /// Stops listening, waits for running responses, and closes all connections. The server cannot be started again.
    ///
    /// Responses no longer wait for an unavailable origin. Further calls have no effect. A server that is no longer
    /// referenced stops automatically.
    ///
    /// - Parameter limit: The maximum time for running responses. The default is 10 seconds.
    public func stop(within limit: Duration = .seconds(10)) async {
        await ending()?.end(within: limit)
    }

    deinit {
        guard let ending = ending() else { return }
        Task { await ending.end(within: .seconds(10)) }
    }

    /// Returns the parts to stop, or `nil` if another call is already stopping them.
    private func ending() -> ServerEnding? {
        restarting.withLock { _ in
            guard !isStopped.exchange(true, ordering: .relaxed) else { return nil }
            return ServerEnding(
                channels: running.withLock { $0.take()?.sockets ?? [] },
                services: [service, adminService, controlService].compactMap { $0 },
                tables: tables, exchanges: exchanges, retryWaiter: retryWaiter, page: page, log: log,
                group: group)
        }
    }

    /// Serves requests until graceful shutdown, then stops like ``stop(within:)``.
    public func run() async throws {
        try await start()
        try? await gracefulShutdown()  // A cancelled task stops the server as well.
        await stop()
    }
}

extension Error {
    /// The system's error message, in a form that can end a sentence.
    fileprivate var asCause: String {
        if let error = self as? IOError { return String(cString: strerror(error.errnoCode)).lowercased() }
        return "\(self)"
    }
}

/// The parts of a server that must be stopped in a particular order.
private struct ServerEnding: Sendable {
    let channels: [any Channel]
    let services: [ProxyService]
    let tables: ConnectionTables
    let exchanges: RunningExchanges
    let retryWaiter: OriginRetryWaiter?
    let page: LivePage
    let log: AccessLog?
    let group: MultiThreadedEventLoopGroup

    /// Stops the parts in order.
    ///
    /// - Parameter limit: The maximum time for running responses.
    func end(within limit: Duration) async {
        for channel in channels { try? await channel.close() }  // This fails only if the channel is closed.
        for service in services { service.stop() }
        retryWaiter?.end()
        page.end()
        await tables.end(within: limit)
        // The tasks of closed connections end soon, and need their event loops until then.
        await exchanges.waitUntilNone()
        log?.flush()
        try? await group.shutdownGracefully()  // This fails only if the group is already shut down.
    }
}
#endif
