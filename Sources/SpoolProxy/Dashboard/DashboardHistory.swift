#if Proxy
import Foundation
import Spool

/// The activity of the last hour, in intervals of ten seconds.
///
/// This type does not perform I/O or read a clock.
struct DashboardHistory: Sendable {
    /// The increments of one interval.
    struct Sample: Encodable, Sendable, Equatable {
        /// The end of the interval.
        var time: Date
        var servedBytes: Int64
        var savedBytes: Int64
        var originBytes: Int64
        var requests: Int
        var hits: Int
        var errors: Int
    }

    /// The sums since the server started.
    struct Sums: Sendable {
        var servedBytes: Int64 = 0
        var savedBytes: Int64 = 0
        var originBytes: Int64 = 0
        var requests = 0
        var hits = 0
        var errors = 0
    }

    static let interval = Duration.seconds(10)
    /// The maximum number of samples.
    static let limit = 360

    private(set) var samples: [Sample] = []
    private var last: Sums
    /// The number of the day on which the last sample was taken, and the saved bytes at the start of that day.
    private var day: (number: Int, savedBytes: Int64)

    init(_ sums: Sums, at time: Date) {
        last = sums
        day = (Self.day(of: time), sums.savedBytes)
    }

    /// Adds the sample of the interval that has just ended.
    mutating func add(_ sums: Sums, at time: Date) {
        // The sums may decrease briefly while resources are closing.
        samples.append(
            Sample(
                time: time, servedBytes: max(0, sums.servedBytes - last.servedBytes),
                savedBytes: max(0, sums.savedBytes - last.savedBytes),
                originBytes: max(0, sums.originBytes - last.originBytes),
                requests: max(0, sums.requests - last.requests),
                hits: max(0, sums.hits - last.hits), errors: max(0, sums.errors - last.errors)))
        if samples.count > Self.limit { samples.removeFirst(samples.count - Self.limit) }
        // The bytes since the last sample belong to the day that has ended.
        if Self.day(of: time) != day.number { day = (Self.day(of: time), sums.savedBytes) }
        last = sums
    }

    /// Returns the number of bytes saved since midnight UTC or since the server started, whichever is later.
    func savedBytesToday(of savedBytes: Int64) -> Int64 { max(0, savedBytes - day.savedBytes) }

    private static func day(of time: Date) -> Int { Int((time.timeIntervalSince1970 / 86_400).rounded(.down)) }
}

/// The samples of the last hour.
struct DashboardHistoryReport: Encodable, Sendable {
    var intervalSeconds: Int
    /// The samples, oldest first.
    var samples: [DashboardHistory.Sample]
}
#endif
