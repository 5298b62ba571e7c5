/// How fast an origin sends and how soon it responds, as measured, so that decisions follow the line.
///
/// Values only: it measures nothing itself.
struct LinkEstimate: Sendable, Hashable {
    /// Bytes per second, smoothed; nil before the first measurement.
    private(set) var bytesPerSecond: Double?
    /// Seconds from a request to its head, smoothed.
    private(set) var roundTrip: Double?
    /// The shortest of the last ones, in seconds: the line's part of them. Without the first one of all, which opened the
    /// connection.
    private var shortestRoundTrip: Double?

    /// Nothing has been measured yet.
    init() {}

    /// So many bytes came in so many seconds, during which the transfer was not held.
    mutating func note(bytes: Int64, seconds: Double) {
        guard bytes >= 0, seconds.isFinite, seconds > 0.000_001 else { return }
        let rate = Double(bytes) / seconds
        bytesPerSecond = bytesPerSecond.map { $0 * 0.7 + rate * 0.3 } ?? rate
    }

    /// A head came so many seconds after its request was sent.
    mutating func note(roundTrip seconds: Double) {
        guard seconds.isFinite, seconds >= 0 else { return }
        if roundTrip != nil { shortestRoundTrip = min(shortestRoundTrip.map { $0 * 1.05 } ?? seconds, seconds) }
        roundTrip = roundTrip.map { $0 * 0.7 + seconds * 0.3 } ?? seconds
    }

    /// Bytes that the line brings in `duration`; nil before the first measurement.
    func bytes(in duration: Duration) -> Int64? {
        bytesPerSecond.map { Int64(min($0 * (duration / .seconds(1)), 1e15)) }
    }

    /// What two round trips bring of what a player takes at most, 64 Mbit/s: with so much under way it need not wait for
    /// each request to go there and back.
    var underWay: Int64 {
        Int64(min(min(bytesPerSecond ?? 8e6, 8e6) * (shortestRoundTrip ?? 0) * 2, 1e9))
    }

    /// Bytes that the line brings during `count` round trips.
    func bytes(inRoundTrips count: Double) -> Int64? {
        guard let bytesPerSecond, let roundTrip else { return nil }
        return Int64(min(bytesPerSecond * roundTrip * count, 1e15))
    }
}
