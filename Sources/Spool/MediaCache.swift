public import Foundation
import HTTPTypes
import Logging
import SpoolScheduling
package import SpoolStorage
import Synchronization

/// A cache of media on disk: play once, keep every byte.
///
/// One process at a time uses a directory. Within it, share one `MediaCache`. A second one plays stored media and
/// stores nothing. If that is intended, for example in an app extension, set ``MediaCacheConfiguration/isReadOnly``.
///
/// Opening media through it (``media(for:)-(MediaSource)``) costs nothing, and reading complete media sends no
/// requests. Any task may call its methods.
public final class MediaCache: Sendable {
    /// The configuration of a cache.
    public typealias Configuration = MediaCacheConfiguration

    let context: CacheContext
    let resources = OpenResources()
    /// The work of downloads, once there are any.
    let downloadWork = Mutex<(any CacheWork)?>(nil)
    private let closing = Mutex<Task<Void, Never>?>(nil)
    /// The problems with the directory that were found and fixed at opening, such as a damaged catalog.
    package var notices: [String] { context.opening.openedStore?.notices ?? [] }

    /// The store, which is opened if necessary.
    var store: Store { get async throws { try await context.opening.directory() } }

    /// The reason why the directory is read-only or unusable; `nil` if it is writable.
    package var readOnlyReason: CacheError? { context.opening.openedStore?.readOnlyReason }

    /// Sends a request that bypasses the cache.
    ///
    /// - Throws: `UpstreamError`; `CancellationError`.
    package func relay(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        try await OriginExchange.relay(request, in: context)
    }

    /// Records in the directory how other processes can contact this one, until the cache is closed.
    package func announce(_ text: String?) async throws { try await store.announce(text) }

    /// Returns the record of the process that uses a cache directory; `nil` if there is none. Blocks.
    package static func announcement(in directory: URL) -> String? { Store.announcement(path: directory.path) }

    /// Returns the current date.
    package var now: @Sendable () -> Date { context.clock.now }

    /// The rules for using stored bytes without revalidation.
    package var freshness: FreshnessPolicy { context.configuration.freshness }

    /// Whether another process stores the received bytes, with a delay.
    package var isReadOnly: Bool { context.configuration.isReadOnly }

    /// The executor for reading media. A task that only reads and sends changes threads less often there.
    package var readingExecutor: any TaskExecutor { context.executor.executor(for: .playback) }

    /// Runs long work on the maintenance threads, which leave one thread to players.
    ///
    /// The work belongs to the calling task and is cancelled with it.
    package func runMaintenance<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await context.executor.runAsync(in: .maintenance, body)
    }

    /// The used bytes and the capacity; `nil` before the directory is open.
    package var space: (used: Int64, capacity: Int64?)? {
        context.opening.openedStore.map { ($0.usedBytes, $0.capacity) }
    }

    /// The number of open or closing resources and leases; 0 at rest.
    package var openResourceCount: Int { resources.count }
    package var leaseCount: Int { context.opening.openedStore?.leaseCount ?? 0 }

    /// Creates a cache in `directory`, which is opened or created when it is first needed.
    ///
    /// This never fails: if the directory can't be used, media plays without being cached, and an event reports why.
    /// Call ``open()`` to get the error.
    public convenience init(directory: URL, upstream: any Upstream, configuration: Configuration = Configuration()) {
        self.init(
            directory: directory, upstream: upstream, configuration: configuration, fileSystem: SystemFileSystem(),
            clock: CacheClock(clock: ContinuousClock()))
    }

    /// Creates a cache with a given file system, clock and threads.
    ///
    /// - Parameters:
    ///   - directory: The directory; `nil` for a cache in memory.
    ///   - openFileLimit: The maximum number of open media files; at least 8.
    package init(
        directory: URL?, upstream: any Upstream, configuration: Configuration, fileSystem: any FileSystem,
        clock: CacheClock, executor: BlockingExecutor = BlockingExecutor(), openFileLimit: Int = 256
    ) {
        let events = EventHub(
            logger: configuration.logger, instruments: CacheInstruments(configuration.instruments))
        var wanted = Store.Configuration(
            capacity: configuration.capacity, eviction: configuration.eviction, quotas: configuration.evictionQuotas,
            minimumFreeSpace: configuration.freeSpaceToLeave, maximumAge: configuration.maximumAge,
            memoryLimit: configuration.memoryLimit, openFileLimit: openFileLimit,
            isReadOnly: configuration.isReadOnly, key: configuration.encryptionKey,
            byteStore: configuration.byteStore)
        wanted.spaceTimeout = configuration.spaceTimeout
        let path = directory?.path
        let opening = StoreOpening(on: executor) { [wanted] in
            try configuration.validate()
            let store = try await Store.open(
                path: path, configuration: wanted, fileSystem: fileSystem, executor: executor, clock: clock
            ) { event in events.send(event) }
            for notice in store.notices { events.send(.warning(notice), redactedURL: path ?? "memory") }
            return store
        } fallback: { [wanted] cause in
            events.send(.cacheUnavailable(cause: cause), redactedURL: path ?? "memory")
            return try Store.fallback(
                at: path ?? "memory", because: cause, configuration: wanted, fileSystem: fileSystem, executor: executor,
                clock: clock
            ) { event in events.send(event) }
        }
        context = CacheContext(
            configuration: configuration, upstream: upstream, opening: opening,
            coordinator: OriginCoordinator(
                maximumConnectionsPerOrigin: configuration.maximumConnectionsPerOrigin, clock: clock,
                executor: executor.executor(for: .background)),
            events: events,
            clock: clock, executor: executor)
    }

    /// Creates a cache and opens its directory.
    ///
    /// - Throws: The same errors as ``open()``.
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

    /// Opens the directory now instead of when it is first needed.
    ///
    /// If the disk is full or read-only, stored media can be played and nothing new is stored. That is not an error.
    ///
    /// - Throws: `CacheError`. Media plays uncached in all cases.
    ///   - `.directoryInUse` if another process uses the directory; the message names it
    ///   - `.catalogTooNew` if a newer version wrote it
    ///   - `.storage` if the directory can't be created or read
    ///   - `.notStored` if the cache is read-only and the directory contains none
    ///   - `.keyRequired` and `.wrongEncryptionKey` if the encryption key is missing or wrong
    ///   - `.invalidArgument` if a value of the configuration is invalid
    public func open() async throws { _ = try await context.opening.directory() }

    /// Returns the resource of a source.
    public func media(for source: MediaSource) -> MediaResource {
        let identity = identity(of: source)
        context.opening.begin()
        let credentials = credentials(of: source)
        let resource = resources.acquire(identity) {
            OpenResource(key: identity.key, credentials: credentials, context: context)
        }
        resource?.usage.note(source)
        return MediaResource(identity: identity, credentials: credentials, resource: resource, registry: resources)
    }

    func identity(of source: MediaSource) -> OpenResources.Identity {
        resources.current(
            OpenResources.Identity(
                key: key(for: source), source: source,
                tellsVariantsApart: context.configuration.freshness == .http))
    }

    func credentials(of source: MediaSource) -> SourceCredentials {
        SourceCredentials(
            source, now: context.clock.now, executor: context.executor.executor(for: .playback))
    }

    /// Returns the resource at `url`.
    public func media(for url: URL) -> MediaResource { media(for: MediaSource(url: url)) }

    /// Returns the cache key of `source`: its own, or the one that the key policy derives from its URL.
    ///
    /// With ``FreshnessPolicy/http``, a source that sends credentials (`Authorization`, `Cookie`) shares bytes only
    /// with sources that send the same ones (RFC 9111 §3.5).
    public func key(for source: MediaSource) -> CacheKey {
        let key = source.key(by: context.configuration.keyPolicy)
        return context.configuration.freshness == .http ? key.with(credentialsIn: source.headerFields) : key
    }

    /// Returns the cache key of the media at `url`.
    public func key(for url: URL) -> CacheKey { context.configuration.keyPolicy.key(for: url) }

    /// Removes all variants of the stored responses of these URLs, because a method other than `GET` may have changed
    /// them (RFC 9111 §4.4).
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be written, `.closed`.
    package func invalidate(_ urls: [URL]) async throws {
        for url in urls { _ = try await context.remove(key(for: url)) }
    }

    /// The number of stored bytes; 0 before the directory is open.
    public var storedByteCount: Int64 { context.opening.openedStore?.usedBytes ?? 0 }

    /// The capacity in bytes; `nil` for no limit, and before the directory is open.
    public var capacity: Int64? { context.opening.openedStore?.capacity }

    /// Records received bytes, ends all transfers and closes the directory. Readers end with an error.
    ///
    /// Transfers that are nearly complete may finish. Call it before the process ends. A kill loses at most the records
    /// of the last tenth of a second.
    ///
    /// A second call waits for the same end.
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
            context.events.logger.warning("the cache could not be closed cleanly: \(error)")
        }
        context.events.finish()
    }
}

extension MediaCache {
    /// Creates a cache in memory, including its catalog. Use it for tests, or if no data may remain on disk.
    ///
    /// It uses the same code as any other cache. With a simulated transport, it needs no network.
    ///
    /// ```swift
    /// let cache = MediaCache.inMemory(upstream: FakeOrigin(), clock: clock)
    /// let data = try await cache.media(for: url).data(in: 0..<1000)
    /// await cache.close()
    /// ```
    ///
    /// - Parameters:
    ///   - upstream: The transport.
    ///   - configuration: The configuration. Its capacity limits the memory; the default is 256 MiB. It is not
    ///     encrypted.
    ///   - clock: The clock for delays, back-off and the recording of received bytes.
    ///   - now: Returns the current date, by which responses become stale and requests expire. Called on any thread.
    public static func inMemory(
        upstream: any Upstream, configuration: Configuration = Configuration(),
        clock: some Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }
    ) -> MediaCache {
        var configuration = configuration
        if configuration.capacity == .standard { configuration.capacity = .bytes(256 << 20) }
        return MediaCache(
            directory: nil, upstream: upstream, configuration: configuration, fileSystem: SystemFileSystem(),
            clock: CacheClock(clock: clock, now: now))
    }
}

/// Work on behalf of a cache that ends with it, such as downloads.
protocol CacheWork: AnyObject, Sendable {
    /// Cancels the work.
    func close()
}
