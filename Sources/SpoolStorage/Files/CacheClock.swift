package import Foundation

/// The one source of time and chance: a monotonic clock to measure and wait by, the calendar for dates, and chance.
/// A simulation gives its own of each.
package struct CacheClock: Sendable {
    /// Time since the clock was made.
    package let elapsed: @Sendable () -> Duration
    /// Waits; throws when cancelled.
    package let sleep: @Sendable (Duration) async throws -> Void
    /// The calendar.
    package let now: @Sendable () -> Date
    /// Random bits, for the jitter of retries and the names of media files; never for keys.
    package var random: @Sendable () -> UInt64

    /// Waits as long as the network may take; throws when cancelled. The network's time is the machine's, as that of an
    /// upstream's time-outs, also where a test lets the cache's go by: only a simulation of both gives its own.
    package var networkSleep: @Sendable (Duration) async throws -> Void = { try await ContinuousClock().sleep(for: $0) }

    /// Time by `clock` and `now`.
    package init<C: Clock>(
        clock: C, now: @escaping @Sendable () -> Date = { Date() },
        random: @escaping @Sendable () -> UInt64 = { .random(in: .min ... .max) }
    ) where C.Duration == Duration {
        let start = clock.now
        self.elapsed = { start.duration(to: clock.now) }
        self.sleep = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
        self.now = now
        self.random = random
    }

    /// A random number from 0 up to, not including, 1.
    package var jitter: Double { Double(random() >> 11) * 0x1p-53 }

    /// The calendar's whole seconds since 1970.
    package func secondsSince1970() -> Int64 { Int64(now().timeIntervalSince1970) }
}
