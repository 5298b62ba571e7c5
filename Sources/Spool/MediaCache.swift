public import Foundation
import HTTPTypes
import Logging
import SpoolScheduling
package import SpoolStorage
import Synchronization

/// A cache of media on disk: play once, keep every byte.
///
/// Only one process at a time can write to a directory. In another process, such as an app extension, set
/// ``MediaCacheConfiguration/isReadOnly``. Otherwise the second process plays stored media and stores nothing.
///
/// Within a process, share one `MediaCache`. A second cache for the same directory joins the first one if both use the
/// same transport instance and identical configurations. Then both share all state, events and requests, and the
/// functions, instruments and logger of the first configuration apply. If a value differs, the second cache plays
/// stored media and stores nothing, ``open()`` throws `.directoryInUse`, and the message names the value.
///
/// Opening media (``media(for:)-(MediaSource)``) costs nothing. With the default freshness policy, reading complete
/// media does not send requests. The methods of a cache may be called from any task.
public final class MediaCache: Sendable {
    /// The configuration of a cache.
    public typealias Configuration = MediaCacheConfiguration

    let core: CacheCore
    /// Whether ``close()`` was called.
    private let isClosed = Mutex(false)

    var context: CacheContext { core.context }
    var resources: OpenResources { core.resources }

    /// The problems with the directory that were found and fixed when it was opened, such as a damaged catalog.
    package var notices: [String] { context.opening.openedStore?.notices ?? [] }

    /// The store, which is opened if necessary.
    var store: Store { get async throws { try await context.opening.directory() } }

    /// The reason why the directory is read-only or unusable; `nil` if it is writable or not open yet.
    package var readOnlyReason: CacheError? { context.opening.openedStore?.readOnlyReason }

    /// Sends a request that bypasses the cache.
    ///
    /// - Throws: `UpstreamError`; `CancellationError`.
    package func relay(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        try await OriginExchange.relay(request, in: context)
    }

    /// Records in the directory how other processes can contact this one, until the cache is closed.
    package func announce(_ text: String?) async throws { try await store.announce(text) }

    /// Returns the record of the process that uses a cache directory; `nil` if there is none. This call blocks.
    package static func announcement(in directory: URL) -> String? { Store.announcement(path: directory.path) }

    /// A function that returns the current date.
    package var now: @Sendable () -> Date { context.clock.now }

    /// The rules for using stored bytes without revalidation.
    package var freshness: FreshnessPolicy { context.configuration.freshness }

    /// The executor for reading media. A task that only reads and sends switches threads less often on this executor.
    package var readingExecutor: any TaskExecutor { context.executor.executor(for: .playback) }

    /// Runs long work on the maintenance threads, which leave one thread for players.
    ///
    /// The work belongs to the calling task, and is cancelled together with that task.
    package func runMaintenance<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await context.executor.runAsync(in: .maintenance, body)
    }

    /// The number of used bytes and the capacity; `nil` before the directory is open.
    package var space: (used: Int64, capacity: Int64?)? {
        context.opening.openedStore.map { ($0.usedBytes, $0.capacity) }
    }

    /// The number of resources that are open or closing; 0 when idle.
    package var openResourceCount: Int { resources.count }
    package var leaseCount: Int { context.opening.openedStore?.leaseCount ?? 0 }

    /// Creates a cache in `directory`, which is opened or created when it is first needed.
    ///
    /// Creation never fails: if the directory can't be used, media plays without being cached, and an event reports
    /// why. Call ``open()`` to get the error.
    public convenience init(directory: URL, upstream: any Upstream, configuration: Configuration = Configuration()) {
        self.init(
            core: SharedCaches.process.core(for: directory, upstream: upstream, configuration: configuration) { error in
                CacheCore(
                    CacheContext(
                        directory: directory, upstream: upstream, configuration: configuration,
                        fileSystem: SystemFileSystem(), clock: CacheClock(clock: ContinuousClock()),
                        executor: BlockingExecutor(), openFileLimit: Self.openFileLimit, error: error))
            })
    }

    /// The maximum number of open media files.
    private static let openFileLimit = 256

    /// Creates a cache that uses the state of a core.
    init(core: CacheCore) { self.core = core }

    deinit {
        guard !isClosed.withLock({ $0 }), core.leave(closing: false) else { return }
        Task { [core] in await core.close() }
    }

    /// Creates a cache with a given file system, clock and threads. It does not join another cache.
    ///
    /// - Parameters:
    ///   - directory: The directory; `nil` for a cache in memory.
    ///   - openFileLimit: The maximum number of open media files; at least 8.
    package init(
        directory: URL?, upstream: any Upstream, configuration: Configuration, fileSystem: any FileSystem,
        clock: CacheClock, executor: BlockingExecutor = BlockingExecutor(), openFileLimit: Int = 256
    ) {
        core = CacheCore(
            CacheContext(
                directory: directory, upstream: upstream, configuration: configuration, fileSystem: fileSystem,
                clock: clock, executor: executor, openFileLimit: openFileLimit))
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

    /// Opens the directory immediately, instead of when it is first needed.
    ///
    /// If the disk is full or read-only, stored media can be played and nothing new is stored. This method then does
    /// not throw an error.
    ///
    /// - Throws: `CacheError`. Media plays uncached in all cases.
    ///   - `.directoryInUse` if another process uses the directory, or another cache in this process with a different
    ///     configuration; the message names the cause
    ///   - `.catalogTooNew` if a newer version of Spool wrote the catalog
    ///   - `.storage` if the directory can't be created or read
    ///   - `.notStored` if the cache is read-only and the directory does not contain a cache
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
                distinguishesVariants: context.configuration.freshness == .http))
    }

    func credentials(of source: MediaSource) -> SourceCredentials {
        SourceCredentials(
            source, now: context.clock.now, executor: context.executor.executor(for: .playback))
    }

    /// Returns the resource at `url`.
    public func media(for url: URL) -> MediaResource { media(for: MediaSource(url: url)) }

    /// Returns the cache key of `source`: its own key, or the key that the key policy derives from its URL.
    ///
    /// With ``FreshnessPolicy/http``, a source that sends credentials (`Authorization`, `Cookie`) shares bytes only
    /// with sources that send the same credentials (RFC 9111 §3.5).
    public func key(for source: MediaSource) -> CacheKey {
        let key = source.key(by: context.configuration.keyPolicy)
        return context.configuration.freshness == .http ? key.with(credentialsIn: source.headerFields) : key
    }

    /// Returns the cache key of the media at `url`.
    public func key(for url: URL) -> CacheKey { context.configuration.keyPolicy.key(for: url) }

    /// Removes all variants of the responses for these URLs, which an unsafe method may have changed (RFC 9111 §4.4).
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be written, `.closed`.
    package func invalidate(_ urls: [URL]) async throws {
        for url in urls { _ = try await context.remove(key(for: url)) }
    }

    /// The number of stored bytes; 0 before the directory is open.
    public var storedByteCount: Int64 { context.opening.openedStore?.usedBytes ?? 0 }

    /// The capacity in bytes; `nil` if there is no limit, or before the directory is open.
    public var capacity: Int64? { context.opening.openedStore?.capacity }

    /// Records received bytes, ends all transfers and closes the directory. Readers end with an error.
    ///
    /// Transfers that are nearly complete may finish. Call this method before the process ends. If the process is
    /// killed instead, at most the records of the last tenth of a second are lost. A second call waits until the first
    /// call has finished. If several caches have joined, the directory stays open until all are closed or released.
    public func close() async {
        // A concurrent call must find that this cache no longer uses the directory.
        isClosed.withLock {
            if !$0 { core.leave(closing: true) }
            $0 = true
        }
        if core.isUnused { await core.close() }
    }
}

extension MediaCache {
    /// Creates a cache whose media and catalog are in memory. Use it for tests, or if no data may remain on disk. With
    /// a simulated transport, it does not need a network.
    ///
    /// ```swift
    /// let cache = MediaCache.inMemory(upstream: FakeOrigin(), clock: clock)
    /// let data = try await cache.media(for: url).data(in: 0..<1000)
    /// await cache.close()
    /// ```
    ///
    /// - Parameters:
    ///   - upstream: The transport.
    ///   - configuration: The configuration. Its capacity limits the memory; the default is 256 MiB. The memory is not
    ///     encrypted.
    ///   - clock: The clock for delays, back-off and the recording of received bytes.
    ///   - now: A function that returns the current date, which determines when responses become stale and requests
    ///     expire. It may be called on any thread.
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
