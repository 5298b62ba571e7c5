import ByteRanges
package import Foundation

/// The only source of time and random numbers: a monotonic clock for measuring and waiting, a wall clock for dates, and
/// random bits. A simulation provides its own clock.
package struct CacheClock: Sendable {
    /// A function that returns the time since the clock was created.
    package let elapsed: @Sendable () -> Duration
    /// A function that suspends the task for a duration. It throws if the task is cancelled.
    package let sleep: @Sendable (Duration) async throws -> Void
    /// A function that returns the wall clock's date.
    package let now: @Sendable () -> Date
    /// A function that returns random bits for the jitter of retries and the names of media files, but never for keys.
    package var random: @Sendable () -> UInt64

    /// A function that suspends the task while it waits for the network. It throws if the task is cancelled. Like a
    /// transport's timeouts, the wait uses the machine's clock, even if a test advances the cache's clock. Only a
    /// simulation that includes the network replaces this function.
    package var networkSleep: @Sendable (Duration) async throws -> Void = { try await ContinuousClock().sleep(for: $0) }

    /// Creates a clock from `clock` and `now`.
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

    /// A random number from 0 up to, but not including, 1.
    package var jitter: Double { Double(random() >> 11) * 0x1p-53 }

    /// Returns the wall clock's date and the time that has elapsed, both read at nearly the same moment.
    ///
    /// If the process was suspended between the two readings, the clocks are read again. Otherwise, the pause would
    /// look like a sudden change of the wall clock.
    func times() -> (now: Date, elapsed: Duration) {
        var before = elapsed()
        while true {
            let (now, after) = (now(), elapsed())
            if after - before < .seconds(1) { return (now, after) }
            before = after
        }
    }

    /// Returns the wall clock's whole seconds since 1970.
    package func secondsSince1970() -> Int64 { Int64(now().timeIntervalSince1970) }
}

extension Date {
    /// The number of whole microseconds since 1970. Dates near or beyond ``microsecondLimit`` are clamped to two
    /// minutes before it. The catalog adds a few microseconds, and the result must also be a valid date.
    var microseconds: Int64 {
        let limit = Self.microsecondLimit - 120_000_000
        let microseconds = (timeIntervalSince1970 * 1_000_000).rounded()
        return Int64(exactly: microseconds).map { min(max($0, -limit), limit) } ?? (microseconds < 0 ? -limit : limit)
    }

    /// The maximum distance from 1970, in microseconds: 10,000 years.
    static let microsecondLimit = Int64(NumberLimits.seconds) * 1_000_000

    /// Creates a date from microseconds since 1970; `nil` if it is more than 10,000 years from 1970.
    init?(microseconds: Int64) {
        guard microseconds.magnitude <= Self.microsecondLimit else { return nil }
        self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000)
    }
}
