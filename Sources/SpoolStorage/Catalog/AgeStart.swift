import Foundation

/// The time from which the maximum age counts. It does no I/O.
///
/// A sudden change of the wall clock restarts all ages, because dates before it can't be compared with dates after it. A clock
/// that is years ahead for a moment therefore evicts nothing, and neither does one that starts in 1970 and is corrected
/// later.
struct AgeStart: Sendable {
    /// The difference between the wall clock and the elapsed time that counts as a sudden change, in seconds.
    private static let tolerance: TimeInterval = 60

    /// The times that the catalog stores.
    struct Record: Sendable, Hashable {
        /// The time of the last sudden change ahead; `nil` if there was none.
        var start: Date?
        /// The last time at which Spool read the wall clock.
        var seen: Date?
    }

    /// The times to store in the catalog.
    private(set) var record: Record
    private let age: TimeInterval
    private var last: (now: Date, elapsed: Duration)

    /// Compares the wall clock with the times that were recorded before this opening.
    ///
    /// If all of them are older than `age`, either the cache was closed for that long or the clock is wrong. Spool
    /// can't know which, so ages restart.
    ///
    /// - Parameters:
    ///   - record: The times that the catalog stores.
    ///   - newestUse: The newest date of use in the catalog; `nil` if nothing is stored.
    ///   - age: The maximum age.
    init(_ record: Record, newestUse: Date?, age: Duration, now: Date, elapsed: Duration) {
        self.record = record
        self.age = age / .seconds(1)
        last = (now, elapsed)
        let newest = [record.seen, newestUse].compactMap { $0 }.max()
        if let newest, now.timeIntervalSince(newest) > self.age { self.record.start = now }
        _ = pass(now: now, elapsed: elapsed)
    }

    /// Compares the wall clock with the time that has elapsed since the last call.
    ///
    /// - Returns: Whether ages restart.
    mutating func pass(now: Date, elapsed: Duration) -> Bool {
        let jump = now.timeIntervalSince(last.now) - (elapsed - last.elapsed) / .seconds(1)
        last = (now, elapsed)
        // After a change back, no date is too old, and the correction restarts ages. A start in the future was recorded
        // while the clock was ahead.
        let restarts = jump > Self.tolerance || record.start.map { $0 > now } ?? false
        if restarts { record.start = now }
        record.seen = now
        return restarts
    }

    /// The earliest last use of media that is not too old yet; `nil` if no media can be too old.
    var oldest: Date? {
        let oldest = last.now.addingTimeInterval(-age)
        return record.start.map { $0 > oldest } ?? false ? nil : oldest
    }
}
