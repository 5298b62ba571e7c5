/// How much of a media file is asked for at once, and how far ahead of the player.
///
/// Requests are bounded and grow, so that a seek wastes next to nothing of what the origin has already sent.
public struct ReadAheadPolicy: Sendable, Hashable {
    /// Bytes of the first request at a new place.
    public var firstRequest: Int64 = 1 << 20
    /// Bytes of the largest request; each request that continues another is twice as large, up to this.
    public var largestRequest: Int64 = 16 << 20
    /// Bytes beyond a reader's position that may land before it asks for them.
    public var window: Int64 = 32 << 20
    /// How long a transfer that nobody wants any more goes on before it is cut: players cancel and ask again.
    public var grace: Duration = .milliseconds(250)
    /// What the origin needs less time than this to send is let in rather than cut.
    public var drainTime: Duration = .milliseconds(500)
    /// Requests that one resource may have in flight.
    public var transfersPerResource: Int = 6

    /// The default policy.
    public init() {}
}

/// When a failed request is tried again.
public struct RetryPolicy: Sendable, Hashable {
    /// Tries in a row without a byte of progress, after the first one.
    public var retries: Int = 5
    /// The first delay; each one that follows is twice as long.
    public var firstDelay: Duration = .milliseconds(200)
    /// The longest delay, also for an origin's `Retry-After`.
    public var longestDelay: Duration = .seconds(8)

    /// The default policy.
    public init() {}

    /// Delay before try number `attempt` (from 1), with up to a quarter of jitter, or what the origin asked for.
    func delay(attempt: Int, retryAfter: Duration?, jitter: Double) -> Duration {
        if let retryAfter { return min(max(retryAfter, .zero), longestDelay) }
        let doubled = firstDelay * Double(1 << min(max(attempt - 1, 0), 16))
        return min(doubled * (1 + jitter / 4), longestDelay)
    }
}

/// What has been measured of the line to the origin, so that decisions follow it.
struct LinkEstimate: Sendable, Hashable {
    /// Bytes per second, smoothed; nil before the first measurement.
    var bytesPerSecond: Double?
    /// Seconds from a request to its head, smoothed.
    var roundTrip: Double?

    mutating func note(bytes: Int64, seconds: Double) {
        guard seconds > 0.000_001 else { return }
        let rate = Double(bytes) / seconds
        bytesPerSecond = bytesPerSecond.map { $0 * 0.7 + rate * 0.3 } ?? rate
    }

    mutating func note(roundTrip seconds: Double) {
        roundTrip = roundTrip.map { $0 * 0.7 + seconds * 0.3 } ?? seconds
    }

    /// Bytes that the line brings in `duration`; nil before the first measurement.
    func bytes(in duration: Duration) -> Int64? {
        bytesPerSecond.map { Int64(min($0 * (duration / .seconds(1)), 1e15)) }
    }

    /// Bytes that the line brings during `count` round trips.
    func bytes(inRoundTrips count: Double) -> Int64? {
        guard let bytesPerSecond, let roundTrip else { return nil }
        return Int64(min(bytesPerSecond * roundTrip * count, 1e15))
    }
}
