import Foundation

/// The time from which the maximum age counts. A jump of the calendar restarts all ages, because dates before it can't be
/// compared with dates after it. It does no I/O.
///
/// A calendar that is years ahead for a moment therefore evicts nothing, and neither does one that starts in 1970 and is
/// corrected later.
struct AgeStart: Sendable {
    /// The difference between the calendar and the elapsed time above which the calendar has jumped, in seconds.
    private static let tolerance: TimeInterval = 60

    /// What the catalog holds.
    struct Record: Sendable, Hashable {
        /// The time of the last jump ahead; `nil` if there was none.
        var start: Date?
        /// The last time at which Spool looked at the calendar.
        var seen: Date?
    }

    /// What the catalog is to hold.
    private(set) var record: Record
    private let age: TimeInterval
    private var last: (now: Date, elapsed: Duration)

    /// Compares the calendar with the times that were recorded before this opening.
    ///
    /// If all of them are older than `age`, either the cache was closed for that long or the calendar is wrong. That can't be
    /// decided, so ages restart.
    ///
    /// - Parameters:
    ///   - record: What the catalog holds.
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

    /// Compares the calendar with the time that has elapsed since the last call.
    ///
    /// - Returns: Whether ages restart.
    mutating func pass(now: Date, elapsed: Duration) -> Bool {
        let jump = now.timeIntervalSince(last.now) - (elapsed - last.elapsed) / .seconds(1)
        last = (now, elapsed)
        // After a jump back no date is too old, and the jump that corrects it restarts ages. A time in the future is that of
        // a calendar that was ahead.
        let restarts = jump > Self.tolerance || record.start.map { $0 > now } ?? false
        if restarts { record.start = now }
        record.seen = now
        return restarts
    }

    /// The time before which media must have been used last to be too old now; `nil` if no media can be.
    var oldest: Date? {
        let oldest = last.now.addingTimeInterval(-age)
        return record.start.map { $0 > oldest } ?? false ? nil : oldest
    }
}
