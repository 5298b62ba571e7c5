import Crypto
package import Foundation
import HTTPRanges
import Logging

/// What every open resource of one cache shares.
final class CacheServices: Sendable {
    let configuration: MediaCache.Configuration
    let upstream: any Upstream
    let directory: CacheDirectory
    let catalog: Catalog
    let executor: BlockingExecutor
    let capacity: Capacity
    let evictor: Evictor
    let flusher: Flusher
    let events: EventHub
    let time: CacheClock

    init(
        configuration: MediaCache.Configuration, upstream: any Upstream, directory: CacheDirectory, catalog: Catalog,
        executor: BlockingExecutor, capacity: Capacity, evictor: Evictor, flusher: Flusher, events: EventHub,
        time: CacheClock
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.directory = directory
        self.catalog = catalog
        self.executor = executor
        self.capacity = capacity
        self.evictor = evictor
        self.flusher = flusher
        self.events = events
        self.time = time
    }

    /// How far ahead of a reader bytes may land, so that a small capacity still holds several readers' windows.
    var window: Int64 {
        let window = configuration.readAhead.window
        guard let limit = capacity.limit else { return window }
        return min(window, max(limit / 4, min(1 << 20, configuration.memoryLimit / 4)))
    }
}

/// The one source of time: a monotonic clock to measure and wait by, and the calendar for dates on the wire.
package struct CacheClock: Sendable {
    /// Time since the cache was opened.
    let elapsed: @Sendable () -> Duration
    /// Waits; throws when cancelled.
    let sleep: @Sendable (Duration) async throws -> Void
    /// The calendar.
    let now: @Sendable () -> Date

    /// Time by `clock` and `now`.
    package init<C: Clock>(clock: C, now: @escaping @Sendable () -> Date = { Date() }) where C.Duration == Duration {
        let start = clock.now
        self.elapsed = { start.duration(to: clock.now) }
        self.sleep = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
        self.now = now
    }

    func secondsSince1970() -> Int64 { Int64(now().timeIntervalSince1970) }
}
