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
    /// The instruments that record events, if there are any.
    let instruments: CacheInstruments
    let clock: CacheClock
    let executor: BlockingExecutor
    /// See ``ResourceVariants/begin(_:for:requestedWith:isKept:replacing:)``.
    let variants = KeyTurns<CacheKey>(.variant)
    let recentUse = RecentUse()

    init(
        configuration: MediaCacheConfiguration, upstream: any Upstream, opening: StoreOpening,
        coordinator: OriginCoordinator,
        events: EventHub, clock: CacheClock, executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.opening = opening
        self.coordinator = coordinator
        self.events = events
        self.instruments = CacheInstruments(configuration.instruments)
        self.clock = clock
        self.executor = executor
    }

    /// Whether responses of every status are stored, without distinguishing web pages and errors from media.
    var keepsAnyResponse: Bool { configuration.storesEveryStatus && configuration.freshness == .http }

    /// The rule by which bytes of several responses are combined.
    var combiningRule: CombiningRule { configuration.freshness == .immutable ? .immutable : .strong }

    /// Returns the store, and opens it if it is not open.
    ///
    /// - Throws: `CacheError` with code `.closed` if the cache is closed.
    var store: Store { get async throws { try await opening.store } }

    /// Returns the number of bytes beyond a reader's position that may be stored, so that the windows of several
    /// readers fit into a small capacity. `nil` if there is space for all.
    func window(in store: Store) -> Int64? {
        store.capacity.map { max($0 / 4, min(1 << 20, configuration.memoryLimit / 4)) }
    }
}
