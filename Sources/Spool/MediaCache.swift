public import Foundation
import HTTPTypes
import Logging
package import SpoolStorage
import Synchronization

/// A cache of media files on disk: play once, keep every byte.
///
/// One process at a time has a directory; within it, share one `MediaCache`. A second one plays what is stored and keeps
/// nothing; one that is meant to, as an app's extension is, says so by ``MediaCacheConfiguration/isReadOnly``.
///
/// Opening a media file through it (``media(for:)-(MediaSource)``) costs nothing, and reading one that is complete asks the origin
/// nothing. All methods may be called from any task.
public final class MediaCache: Sendable {
    /// How a cache works.
    public typealias Configuration = MediaCacheConfiguration

    /// Work beside its players that ends with it; the cache does not look inside.
    struct HeldWork: Sendable {
        let work: any Sendable
        let close: @Sendable () -> Void
    }

    let context: CacheContext
    let resources = OpenResources()
    /// What brings downloads, once there are any, and how that ends with the cache.
    let downloadWork = Mutex<HeldWork?>(nil)
    private let closing = Mutex<Task<Void, Never>?>(nil)
    /// What was found wrong with the directory at opening, and mended: a catalog set aside, files swept away.
    package var notices: [String] { context.opening.openedStore?.notices ?? [] }

    /// What is stored, opened if it is not yet.
    var store: Store { get async throws { try await context.opening.directory() } }

    /// Why nothing new is kept, where the directory can only be read, or not be used; nil where it can be written.
    package var readOnlyReason: CacheError? { context.opening.openedStore?.readOnlyReason }

    /// Where bytes come from, for what goes past the cache.
    package var upstream: any Upstream { context.upstream }

    /// Notes in the directory how other processes may ask this one, until the cache is closed.
    package func announce(_ text: String?) async throws { try await store.announce(text) }

    /// What the process that has a cache directory has noted so; nil if nothing. Blocks.
    package static func announcement(in directory: URL) -> String? { Store.announcement(path: directory.path) }

    /// The calendar that it goes by.
    package var now: @Sendable () -> Date { context.clock.now }

    /// When what is stored may be used without asking.
    package var freshness: FreshnessPolicy { context.configuration.freshness }

    /// Whether another process keeps what comes, and writes it down in its own time.
    package var isReadOnly: Bool { context.configuration.isReadOnly }

    /// Where media is read: a task that only reads, and hands on, changes threads less often there.
    package var readingExecutor: any TaskExecutor { context.executor.executor(for: .playback) }

    /// Runs long work on the maintenance threads, which leave one thread to players.
    ///
    /// The work belongs to the calling task and is cancelled with it.
    package func runMaintenance<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await context.executor.runAsync(in: .maintenance, body)
    }

    /// Bytes that are used, and the most that may be; nil before the directory is open.
    package var room: (used: Int64, capacity: Int64?)? {
        context.opening.openedStore.map { ($0.usedBytes, $0.capacity) }
    }

    /// Resources that are open or closing, and leases on what is stored; both nothing at rest.
    package var openResourceCount: Int { resources.count }
    package var leaseCount: Int { context.opening.openedStore?.leaseCount ?? 0 }

    /// A cache in `directory`, which is opened, or begun, when it is first needed.
    ///
    /// That can't fail: where the directory can't be used, media plays without being kept, and an event says why.
    /// ``open()`` is for whoever wants to know.
    public convenience init(directory: URL, upstream: any Upstream, configuration: Configuration = Configuration()) {
        self.init(
            directory: directory, upstream: upstream, configuration: configuration, fileSystem: SystemFileSystem(),
            clock: CacheClock(clock: ContinuousClock()))
    }

    /// As ``init(directory:upstream:configuration:)``, on a disk, a time and threads of the caller's.
    ///
    /// - Parameters:
    ///   - directory: Where it is kept; nil: in memory.
    ///   - openFileLimit: Media files open at once; at least 8.
    package init(
        directory: URL?, upstream: any Upstream, configuration: Configuration, fileSystem: any FileSystem,
        clock: CacheClock, executor: BlockingExecutor = BlockingExecutor(), openFileLimit: Int = 256
    ) {
        let events = EventHub(
            logger: configuration.logger, instruments: CacheInstruments(configuration.instruments))
        let wanted = Store.Configuration(
            capacity: configuration.capacity, eviction: configuration.eviction, quotas: configuration.quotas,
            minimumFreeSpace: configuration.minimumFreeSpace, maximumAge: configuration.maximumAge,
            memoryLimit: configuration.memoryLimit, openFileLimit: openFileLimit,
            isReadOnly: configuration.isReadOnly, key: configuration.encryptionKey,
            byteStore: configuration.byteStore)
        let path = directory?.path
        let opening = StoreOpening(on: executor) {
            try configuration.validate()
            let store = try await Store.open(
                path: path, configuration: wanted, fileSystem: fileSystem, executor: executor, clock: clock
            ) { event in events.send(event) }
            for notice in store.notices { events.send(.notice(notice), address: path ?? "memory") }
            return store
        } standIn: { cause in
            events.send(.unusable(cause: cause), address: path ?? "memory")
            return try Store.standIn(
                at: path ?? "memory", because: cause, configuration: wanted, fileSystem: fileSystem, executor: executor,
                clock: clock
            ) { event in events.send(event) }
        }
        context = CacheContext(
            configuration: configuration, upstream: upstream, opening: opening,
            conductor: Conductor(
                connectionsPerOrigin: configuration.connectionsPerOrigin, clock: clock,
                executor: executor.executor(for: .background)),
            events: events,
            clock: clock, executor: executor)
    }

    /// A cache whose directory is open, for whoever needs that rather than a cache.
    ///
    /// - Throws: As ``open()`` does.
    package static func opened(
        directory: URL, upstream: any Upstream, configuration: Configuration = Configuration(),
        fileSystem: any FileSystem = SystemFileSystem(), clock: CacheClock = CacheClock(clock: ContinuousClock()),
        executor: BlockingExecutor = BlockingExecutor(), openFileLimit: Int = 256
    ) async throws -> MediaCache {
        let cache = MediaCache(
            directory: directory, upstream: upstream, configuration: configuration, fileSystem: fileSystem,
            clock: clock, executor: executor, openFileLimit: openFileLimit)
        do {
            try await cache.open()
        } catch {
            await cache.close()
            throw error
        }
        return cache
    }

    /// Opens the directory now, rather than when it is first needed.
    ///
    /// Where the disk is full or read-only, what is there can be played and nothing new is kept; that is no error.
    ///
    /// - Throws: `CacheError`: `.directoryInUse` when another process has it (the message names that process),
    ///   `.catalogTooNew` when a newer version wrote it, `.storage` when the directory can't be made or read,
    ///   `.notStored` when it is only read and holds no cache, `.keyRequired` and `.keyRefused` when it is encrypted, or not,
    ///   and the key is missing or another,
    ///   `.invalidArgument` when a value of the configuration is not possible. Media plays all the same.
    public func open() async throws { _ = try await context.opening.directory() }

    /// Opens a media file through the cache.
    public func media(for source: MediaSource) -> MediaResource {
        let identity = identity(of: source)
        context.opening.begin()
        let credentials = credentials(of: source)
        let resource = resources.acquire(identity) {
            OpenResource(key: identity.key, credentials: credentials, context: context)
        }
        resource?.note(source)
        return MediaResource(identity: identity, credentials: credentials, resource: resource, registry: resources)
    }

    func identity(of source: MediaSource) -> OpenResources.Identity {
        OpenResources.Identity(
            key: key(for: source), source: source,
            tellsVariantsApart: context.configuration.freshness == .http)
    }

    func credentials(of source: MediaSource) -> SourceCredentials {
        SourceCredentials(
            source, now: context.clock.now, executor: context.executor.executor(for: .playback))
    }

    /// Opens the media file at `url` through the cache.
    public func media(for url: URL) -> MediaResource { media(for: MediaSource(url: url)) }

    /// The key under which the media file of `source` is kept: its own, or the one that the key policy makes of its URL.
    ///
    /// Under ``FreshnessPolicy/http``, a source that sends credentials (`Authorization`, `Cookie`) shares its bytes only
    /// with sources that send the same ones (RFC 9111 §3.5).
    public func key(for source: MediaSource) -> CacheKey {
        let key = source.key(by: context.configuration.keyPolicy)
        return context.configuration.freshness == .http ? key.with(credentialsIn: source.headerFields) : key
    }

    /// The key under which the media file at `url` is kept.
    public func key(for url: URL) -> CacheKey { context.configuration.keyPolicy.key(for: url) }

    /// Something else than a `GET` may have changed what is at these URLs: what is stored of them, in all variants, goes
    /// (RFC 9111 §4.4).
    ///
    /// - Throws: `CacheError`: `.storage` when the catalog can't be written, `.closed`.
    package func invalidate(_ urls: [URL]) async throws {
        for url in urls { _ = try await context.remove(key(for: url)) }
    }

    /// Bytes of media that are kept now; 0 before the directory is open.
    public var storedByteCount: Int64 { context.opening.openedStore?.usedBytes ?? 0 }

    /// The most bytes of media to keep; nil: no limit, or not known before the directory is open.
    public var capacity: Int64? { context.opening.openedStore?.capacity }

    /// Writes down what has landed, ends all transfers and closes the directory. Readers end with an error.
    ///
    /// What is nearly done is let in first. Call it before the process ends; what a kill leaves out is at most what
    /// arrived in the last tenth of a second.
    ///
    /// Whoever calls it again waits for the same end.
    public func close() async {
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let task = Task(executorPreference: context.executor.executor(for: .background)) { await self.closeNow() }
            closing = task
            return task
        }
        await closing.value
    }

    private func closeNow() async {
        downloadWork.withLock { $0 }?.close()
        await resources.closeAll()
        do {
            try await context.opening.close()?.close()
        } catch {
            context.events.logger.warning("the cache could not be closed in order: \(error)")
        }
        context.events.finish()
    }
}
