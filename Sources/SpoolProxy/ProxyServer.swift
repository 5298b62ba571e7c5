#if Proxy
public import Foundation
import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle
public import Spool
import Synchronization

/// A server on this machine that gives what a ``Spool/MediaCache`` does to any player: mpv, VLC, a browser, AVPlayer with HLS.
///
/// A player is handed the address that ``url(for:)-(URL)`` makes of a media file's, and asks the server, which asks the cache. With
/// an ``ProxyConfiguration/origin`` it stands for that origin instead, and its paths are the origin's.
///
/// ```swift
/// let server = try ProxyServer(cache: cache)
/// try await server.start()
/// player.play(server.url(for: episode))
/// ```
///
/// In an app, ``inApp(_:maximumBitRate:keepsKeys:)`` needs no start.
///
/// Speaks HTTP/1.1. All methods may be called from any task. In a program of services it is one: ``run()`` serves until it is
/// told to stop.
public final class ProxyServer: Service, MediaServer, Sendable {
    struct Running {
        var channels: [any Channel]
        var address: SocketAddress
        var control: SocketAddress?
    }

    let cache: MediaCache
    let configuration: ProxyConfiguration
    /// What the server stands for; nil in forward form.
    private let origin: OriginURL?
    let service: ProxyService
    private let adminService: ProxyService?
    private let controlService: ProxyService?
    private let log: AccessLog?
    private let group: MultiThreadedEventLoopGroup
    let tables: ConnectionTables
    private let exchanges = RunningExchanges()
    private let patience: OriginPatience?
    let sources: SourceRegistry
    let running = Mutex<Running?>(nil)
    let isStopped = Atomic<Bool>(false)
    /// Held while what is listened on changes: of several who begin to listen one does, and none after the stop.
    let restarting = Mutex(())

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - cache: What it serves from; it stays the caller's, to be closed after ``stop(within:)``.
    ///   - configuration: How it listens, and what it may be asked.
    /// - Throws: ``ProxyError`` with code `configuration`: a token is missing, a value is not possible, the log can't be
    ///   written.
    public convenience init(
        cache: MediaCache, configuration: ProxyConfiguration = ProxyConfiguration()
    ) throws(ProxyError) {
        try self.init(cache: cache, configuration: configuration, clock: ContinuousClock())
    }

    /// As ``init(cache:configuration:)``.
    ///
    /// - Parameter clock: What responses are waited for by.
    convenience init(
        cache: MediaCache, configuration: ProxyConfiguration, clock: any Clock<Duration>
    ) throws(ProxyError) {
        try configuration.validate()
        let log = try configuration.accessLog.map { url throws(ProxyError) in try AccessLog(url) }
        self.init(cache: cache, valid: configuration, log: log, clock: clock)
    }

    /// - Parameter configuration: One that was validated.
    init(cache: MediaCache, valid configuration: ProxyConfiguration, log: AccessLog?, clock: any Clock<Duration>) {
        self.cache = cache
        self.configuration = configuration
        let count = configuration.threads > 0 ? configuration.threads : UsableCores.count
        group = MultiThreadedEventLoopGroup(numberOfThreads: count)
        var limits = configuration.limits
        limits.connections = min(limits.connections, DescriptorLimit.forClients)
        tables = ConnectionTables(group, limits: limits)
        self.log = log
        let metrics = ProxyMetrics()
        let date = DateText()
        let mark = "spool-" + String(UInt64.random(in: .min ... .max), radix: 36)
        let origin = configuration.origin.flatMap { try? OriginURL($0) }  // It was checked.
        self.origin = origin
        let exchanges = exchanges
        let sources = SourceRegistry(cache)
        self.sources = sources
        let patience = configuration.waitsForOrigin ? OriginPatience(clock: clock) : nil
        self.patience = patience
        let passing = PassingResponder(cache: cache, configuration: configuration, patience: patience)
        let media = MediaResponder(
            cache: cache, configuration: configuration, date: date, clock: clock, patience: patience, passing: passing,
            manifests: ManifestResponder(
                cache: cache, knowledge: StreamKnowledge(), offline: OfflineVariants(cache: cache, clock: clock),
                date: date, maximumBitRate: configuration.maximumBitRate, notesNeeds: configuration.startsWhenAsked))
        func origins(_ allowedHosts: [String]) -> OriginRules {
            OriginRules(allowedHosts: allowedHosts, mark: mark, ownPort: configuration.ownPort)
        }
        func service(
            token: String?, origin: OriginURL?, servesAdmin: Bool,
            run: (@Sendable ([String]) async -> CommandOutcome)? = nil
        ) -> ProxyService {
            let rules = AccessRules(token: token, serverNames: configuration.serverNames)
            let admin = AdminResponder(cache: cache, metrics: metrics, rules: rules, run: run)
            return ProxyService(
                configuration: configuration, date: date, executor: cache.readingExecutor,
                responder: Responder(
                    configuration: configuration, rules: rules,
                    origins: origins(run == nil ? configuration.allowedHosts : []), media: media, passing: passing,
                    origin: origin, admin: admin, sources: sources, servesAdmin: servesAdmin, isForOwner: run != nil),
                log: log, metrics: metrics, exchanges: exchanges, patience: patience)
        }
        self.service = service(
            token: configuration.token, origin: origin, servesAdmin: origin == nil && configuration.admin == nil)
        adminService = configuration.admin.map { _ in
            service(token: configuration.token, origin: origin, servesAdmin: true)
        }
        // For the owner's commands, any origin may be asked.
        controlService = configuration.control.map {
            service(token: $0.secret, origin: nil, servesAdmin: true, run: $0.run)
        }
    }

    /// Begins to listen.
    ///
    /// - Throws: ``ProxyError`` with code `address`: the address is taken, not this machine's, or no address.
    public func start() async throws(ProxyError) {
        guard running.withLock({ $0 == nil }) else { return }
        // An upstream over NIO makes these at its first request, and NIO ends the process if it can't: clients may have all
        // descriptors by then.
        _ = MultiThreadedEventLoopGroup.singleton
        let channel = try await listen(configuration.host, configuration.port, service)
        guard let address = channel.localAddress else {
            throw ProxyError(.address, "the server has no address")
        }
        var channels = [channel]
        if let admin = configuration.admin, let adminService {
            do {
                channels.append(try await listen(admin.host, admin.port, adminService))
            } catch {
                try? await channel.close()  // It is the other's failure that is told.
                throw error
            }
        }
        // Without it commands wait for the directory, as for any process that has it.
        let control = controlService == nil ? nil : try? await listen("127.0.0.1", 0, controlService ?? service)
        if let control { channels.append(control) }
        guard begin(Running(channels: channels, address: address, control: control?.localAddress)) else {
            // Somebody else began meanwhile, or it was stopped.
            for channel in channels { try? await channel.close() }  // One that is closed already is.
            return
        }
    }

    /// False if the server listens already, or is stopped.
    private func begin(_ fresh: Running) -> Bool {
        restarting.withLock { _ in
            guard !isStopped.load(ordering: .relaxed), running.withLock({ $0 == nil }) else { return false }
            become(fresh)
            tables.begin()
            return true
        }
    }

    /// While ``restarting`` is held.
    func become(_ fresh: Running) {
        configuration.ownPort.set(fresh.address.port ?? 0)
        running.withLock { $0 = fresh }
    }

    private func listen(_ host: String, _ port: Int, _ service: ProxyService) async throws(ProxyError) -> any Channel {
        do {
            return try await bootstrap(service).bind(host: host.trimmingBrackets, port: port).get()
        } catch {
            throw ProxyError(
                .address, "\(host):\(port) can't be listened on: \(error.asCause)", underlying: error)
        }
    }

    func bootstrap(_ service: ProxyService) -> ServerBootstrap {
        let tables = tables
        return ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // Each connection keeps one: a player's request has some hundred bytes.
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1024))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try tables.accept(channel, for: service) }
            }
    }

    /// The port that is listened on; nil while the server does not.
    public var port: Int? { running.withLock { $0?.address.port } }

    /// The server's own address, as `http://localhost:8787/`; nil while it does not listen.
    public var address: URL? {
        guard let port else { return nil }
        let host = configuration.isForThisMachine && configuration.host != "::1" ? Self.thisMachine : configuration.host
        return URL(string: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)/")
    }

    #if canImport(Darwin)
    /// App Transport Security lets HTTP through to this name, and by default not to addresses in figures.
    private static let thisMachine = "localhost"
    #else
    private static let thisMachine = "127.0.0.1"
    #endif

    /// Where it listens, as it was told to: `http://0.0.0.0:8787`.
    package var listeningAddress: String {
        let host = configuration.host.trimmingBrackets
        return "http://\(host.contains(":") ? "[\(host)]" : host):\(port ?? configuration.port)"
    }

    /// Where this machine's owner sends commands, and the secret that they need; nil where none are taken.
    package var controlAddress: (address: String, secret: String)? {
        guard let port = running.withLock({ $0?.control?.port }), let control = configuration.control else {
            return nil
        }
        return ("http://127.0.0.1:\(port)", control.secret)
    }

    /// The address to hand to a player in place of a media file's own, token included; nil for one that is not of `http` or
    /// `https`, or not of the origin that the server stands for, and while the server does not listen.
    public func url(for url: URL) -> URL? {
        if configuration.startsWhenAsked { listenIfNeeded() }
        return self.url(for: url, prefix: "")
    }

    func url(for url: URL, prefix: String) -> URL? {
        guard let address, let asked = try? OriginURL(url) else { return nil }  // Then it is not for a server.
        // Paths are the server's own origin's then, and mean nothing of another one's.
        if let origin, !asked.isSameOrigin(as: origin) { return nil }
        let path = origin == nil ? ForwardAddress.requestTarget(for: asked) : asked.target
        let token = configuration.token.map { "/~" + $0 } ?? ""
        return URL(string: address.absoluteString.dropLast() + token + prefix + path)
    }

    /// Stops listening, lets the responses that are under way end, and closes what is left; for good. Once is enough. A
    /// server that nobody holds any more does so by itself. What waits for an origin that can't be had does not wait on.
    ///
    /// - Parameter limit: How long they may take.
    public func stop(within limit: Duration = .seconds(10)) async {
        await ending()?.end(within: limit)
    }

    deinit {
        guard let ending = ending() else { return }
        Task { await ending.end(within: .seconds(10)) }
    }

    /// What is left to be ended; nil where somebody else sees to it.
    private func ending() -> ServerEnding? {
        restarting.withLock { _ in
            guard !isStopped.exchange(true, ordering: .relaxed) else { return nil }
            return ServerEnding(
                channels: running.withLock { $0.take()?.channels ?? [] },
                services: [service, adminService, controlService].compactMap { $0 },
                tables: tables, exchanges: exchanges, patience: patience, log: log, group: group)
        }
    }

    /// Serves until the program is told to stop, then as ``stop(within:)``.
    public func run() async throws {
        try await start()
        try? await gracefulShutdown()  // Cancelled, it has been told to stop, too.
        await stop()
    }
}

extension Error {
    /// The cause as a sentence's end: what the system says.
    fileprivate var asCause: String {
        if let error = self as? IOError { return String(cString: strerror(error.errnoCode)) }
        return "\(self)"
    }
}
#endif
