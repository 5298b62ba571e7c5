import ByteRanges

/// An estimate of the bandwidth to an origin and of the origin's response time, based on measurements.
///
/// This type does not measure anything itself.
package struct LinkEstimate: Sendable, Hashable {
    /// The smoothed bandwidth, in bytes per second; `nil` before the first measurement.
    package private(set) var bytesPerSecond: Double?
    /// The smoothed time from a request to the headers of its response, in seconds.
    private(set) var roundTrip: Double?
    /// The shortest of the most recent round trips, in seconds, which approximates the delay of the network. The first
    /// round trip does not count, because it includes the time to open the connection.
    private var shortestRoundTrip: Double?

    /// Creates an estimate without measurements.
    package init() {}

    /// Records that `bytes` were received in `seconds`, during which the transfer was not paused.
    package mutating func note(bytes: Int64, seconds: Double) {
        guard bytes >= 0, seconds.isFinite, seconds > 0.000_001 else { return }
        let rate = Double(bytes) / seconds
        bytesPerSecond = bytesPerSecond.map { $0 * 0.7 + rate * 0.3 } ?? rate
    }

    /// Records the time from a request to the headers of its response.
    package mutating func note(roundTrip seconds: Double) {
        guard seconds.isFinite, seconds >= 0 else { return }
        if roundTrip != nil { shortestRoundTrip = min(shortestRoundTrip.map { $0 * 1.05 } ?? seconds, seconds) }
        roundTrip = roundTrip.map { $0 * 0.7 + seconds * 0.3 } ?? seconds
    }

    /// Returns the number of bytes that can be received in `duration`; `nil` before the first measurement.
    func bytes(in duration: Duration) -> Int64? {
        bytesPerSecond.map { Int64(saturating: min($0 * (duration / .seconds(1)), 1e15)) }
    }

    /// The number of bytes that the connection delivers in two round trips, at 64 Mbit/s at most. With that many bytes
    /// in transit, the player does not have to wait for the round trip of each request.
    var bytesInTransit: Int64 {
        Int64(saturating: min(min(bytesPerSecond ?? 8e6, 8e6) * (shortestRoundTrip ?? 0) * 2, 1e9))
    }

    /// Returns the number of bytes that can be received during `count` round trips.
    func bytes(inRoundTrips count: Double) -> Int64? {
        guard let bytesPerSecond, let roundTrip else { return nil }
        return Int64(saturating: min(bytesPerSecond * roundTrip * count, 1e15))
    }
}
