import Foundation
import SpoolStorage

/// What every open resource of one cache shares.
final class CacheContext: Sendable {
    let configuration: MediaCacheConfiguration
    let upstream: any Upstream
    let store: Store
    let conductor: Conductor
    let events: EventHub
    let clock: CacheClock
    let executor: BlockingExecutor
    /// See ``OpenResource/beginVariant(_:for:isKept:)``.
    let variants = KeyTurns<CacheKey>()

    init(
        configuration: MediaCacheConfiguration, upstream: any Upstream, store: Store, conductor: Conductor,
        events: EventHub, clock: CacheClock, executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.store = store
        self.conductor = conductor
        self.events = events
        self.clock = clock
        self.executor = executor
    }

    /// Bytes beyond a reader's position that may land, so that a small capacity still holds several readers' windows.
    var window: Int64 {
        let window = configuration.readAhead.window
        guard let limit = store.capacity else { return window }
        return min(window, max(limit / 4, min(1 << 20, configuration.memoryLimit / 4)))
    }
}
