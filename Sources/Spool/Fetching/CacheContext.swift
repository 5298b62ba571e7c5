import Foundation
import HTTPRanges
import SpoolStorage

/// What every open resource of one cache shares.
final class CacheContext: Sendable {
    let configuration: MediaCacheConfiguration
    let upstream: any Upstream
    let opening: StoreOpening
    let conductor: Conductor
    let events: EventHub
    /// Told what happens, if there are any.
    let instruments: CacheInstruments
    let clock: CacheClock
    let executor: BlockingExecutor
    /// See ``ResourceVariants/begin(_:for:isKept:replacing:)``.
    let variants = KeyTurns<CacheKey>()
    let recentUse = RecentUse()

    init(
        configuration: MediaCacheConfiguration, upstream: any Upstream, opening: StoreOpening, conductor: Conductor,
        events: EventHub, clock: CacheClock, executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.opening = opening
        self.conductor = conductor
        self.events = events
        self.instruments = CacheInstruments(configuration.instruments)
        self.clock = clock
        self.executor = executor
    }

    /// Whether responses of every status are stored, and web pages and errors are not told from media.
    var keepsAnyResponse: Bool { configuration.storesEveryStatus && configuration.freshness == .http }

    /// The rule by which bytes of several responses are combined.
    var combiningRule: CombiningRule { configuration.freshness == .immutable ? .immutable : .strong }

    /// The store, opened if it is not.
    ///
    /// - Throws: `CacheError` with code `.closed` once the cache is closed.
    var store: Store { get async throws { try await opening.store } }

    /// Bytes beyond a reader's position that may land, so that a small capacity still holds several readers' windows; nil
    /// where there is room for all.
    func window(in store: Store) -> Int64? {
        store.capacity.map { max($0 / 4, min(1 << 20, configuration.memoryLimit / 4)) }
    }
}
