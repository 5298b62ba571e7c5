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

/// The one source of what differs from run to run: a monotonic clock to measure and wait by, the calendar for dates on
/// the wire, and chance.
package struct CacheClock: Sendable {
    /// Time since the cache was opened.
    let elapsed: @Sendable () -> Duration
    /// Waits; throws when cancelled.
    let sleep: @Sendable (Duration) async throws -> Void
    /// The calendar.
    let now: @Sendable () -> Date
    /// Random bits, for the jitter of retries and the names of media files; never for keys.
    package var random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }

    /// Time by `clock` and `now`; chance by the system's generator, until ``random`` is set.
    package init<C: Clock>(clock: C, now: @escaping @Sendable () -> Date = { Date() }) where C.Duration == Duration {
        let start = clock.now
        self.elapsed = { start.duration(to: clock.now) }
        self.sleep = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
        self.now = now
    }

    /// A random number from 0 to below 1.
    var jitter: Double { Double(random() >> 11) * 0x1p-53 }

    func secondsSince1970() -> Int64 { Int64(now().timeIntervalSince1970) }
}
