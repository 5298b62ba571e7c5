import Foundation
import HTTPRanges
import SpoolStorage

/// The context that all open resources of one cache share.
final class CacheContext: Sendable {
    let configuration: MediaCacheConfiguration
    let upstream: any Upstream
    let opening: StoreOpening
    let coordinator: OriginCoordinator
    let events: EventHub
    /// The log of the most recent requests, waits and evictions.
    let traffic = TrafficLog()
    /// The instruments that record events, if there are any.
    let instruments: CacheInstruments
    let clock: CacheClock
    let executor: BlockingExecutor
    /// The turns of variants; see ``ResourceVariants/begin(_:for:requestedWith:isKept:replacing:)``.
    let variants = KeyTurns<CacheKey>(.variant)
    let recentUse = RecentUse()
    /// The state of the network and the power mode, for preloads.
    let system: SystemStateMonitor

    /// Creates the context of a cache in a directory, which is opened when it is first needed.
    ///
    /// - Parameters:
    ///   - directory: The directory; `nil` for a cache in memory.
    ///   - openFileLimit: The maximum number of open media files; at least 8.
    ///   - error: The reason why the directory must not be opened; `nil` if it may be opened.
    init(
        directory: URL?, upstream: any Upstream, configuration: MediaCacheConfiguration, fileSystem: any FileSystem,
        clock: CacheClock, executor: BlockingExecutor, openFileLimit: Int, system: SystemStateMonitor = .process,
        error: CacheError? = nil
    ) {
        let traffic = traffic
        let events = EventHub(
            logger: configuration.logger, instruments: CacheInstruments(configuration.instruments))
        let report: @Sendable (StoreEvent) -> Void = { event in
            if case .evictedRanges(let key, let ranges) = event { traffic.recordEvicted(ranges, of: key) }
            events.send(event)
        }
        var wanted = Store.Configuration(
            capacity: configuration.capacity, eviction: configuration.eviction, quotas: configuration.evictionQuotas,
            minimumFreeSpace: configuration.freeSpaceToLeave, maximumAge: configuration.maximumAge,
            memoryLimit: configuration.memoryLimit, openFileLimit: openFileLimit,
            isReadOnly: configuration.isReadOnly, key: configuration.encryptionKey,
            byteStore: configuration.byteStore)
        wanted.spaceTimeout = configuration.spaceTimeout
        let path = directory?.path
        opening = StoreOpening(on: executor, clock, retries: !configuration.isReadOnly) { [wanted] previous in
            if let error { throw error }
            try configuration.validate()
            let store = try await Store.open(
                path: path, configuration: wanted, fileSystem: fileSystem, executor: executor, clock: clock,
                replacing: previous
            ) { event in report(event) }
            if previous != nil {
                events.send(.warning("the cache is writable again"), redactedURL: path ?? "memory")
            }
            for notice in store.notices { events.send(.warning(notice), redactedURL: path ?? "memory") }
            return store
        } fallback: { [wanted] cause in
            events.send(.cacheUnavailable(cause: cause), redactedURL: path ?? "memory")
            return try Store.fallback(
                at: path ?? "memory", because: cause, configuration: wanted, fileSystem: fileSystem, executor: executor,
                clock: clock
            ) { event in report(event) }
        }
        coordinator = OriginCoordinator(
            maximumConnectionsPerOrigin: configuration.maximumConnectionsPerOrigin,
            maximumOpenConnectionsPerOrigin: configuration.maximumOpenConnectionsPerOrigin, clock: clock,
            executor: executor.executor(for: .background))
        instruments = CacheInstruments(configuration.instruments)
        self.configuration = configuration
        self.upstream = upstream
        self.events = events
        self.clock = clock
        self.executor = executor
        self.system = system
    }

    /// Whether responses with any status are stored, without distinguishing web pages and errors from media.
    var storesAnyResponse: Bool { configuration.storesEveryStatus && configuration.freshness == .http }

    /// The rule for combining the bytes of several responses.
    var combiningRule: CombiningRule { configuration.freshness == .immutable ? .immutable : .strong }

    /// The store, which is opened if it is not open.
    ///
    /// - Throws: `CacheError` with code `.closed` if the cache is closed.
    var store: Store { get async throws { try await opening.store } }

    /// Returns the number of bytes beyond a reader's position that may be stored, so that the windows of several
    /// readers fit into a small capacity. Returns `nil` if the capacity is unlimited.
    func window(in store: Store) -> Int64? {
        store.capacity.map { max($0 / 4, min(1 << 20, configuration.memoryLimit / 4)) }
    }
}
