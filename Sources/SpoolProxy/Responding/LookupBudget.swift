#if Proxy
/// The work that one request may cause by the numbers that a manifest states: look-ups in the cache, bytes, and time.
///
/// A manifest comes from an origin that may be hostile, and a few kilobytes can name billions of segments.
struct LookupBudget {
    struct Limits: Sendable {
        /// The most segments, playlists and other files that are looked up: a day of one-second segments of two
        /// representations.
        var lookups = 200_000
        /// The most bytes of addresses that are looked up, and of playlists that are read for it.
        var bytes = 64 << 20
        /// The longest time. A manifest must be sent within 10 seconds.
        var time = Duration.seconds(4)
    }

    private var left: Limits
    private let elapsed: () -> Duration

    /// Creates a budget that begins now.
    init(_ limits: Limits, _ clock: any Clock<Duration>) {
        left = limits
        elapsed = Self.stopwatch(clock)
    }

    private static func stopwatch(_ clock: some Clock<Duration>) -> () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// Takes one look-up, or one piece of a playlist, from the budget.
    ///
    /// - Parameter bytes: The bytes of its address, or of the piece.
    /// - Returns: Whether the budget allows it. Once it does not, it allows no other.
    /// - Throws: `CancellationError` if the task is cancelled, because its client has left or the server stops.
    mutating func takes(_ bytes: Int) throws(CancellationError) -> Bool {
        guard !Task.isCancelled else { throw CancellationError() }
        left.lookups -= 1
        left.bytes -= bytes
        if left.lookups < 0 || left.bytes < 0 || elapsed() >= left.time { left.lookups = -1 }
        return left.lookups >= 0
    }
}
#endif
