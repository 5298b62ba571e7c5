#if Proxy
/// A limit on the work that a manifest may cause for one request, in cache lookups, bytes and time.
///
/// A manifest comes from an origin that may be hostile, and a few kilobytes can describe billions of segments.
struct LookupBudget {
    struct Limits: Sendable {
        /// The maximum number of files to look up, such as segments and playlists. The number is sufficient for a day
        /// of one-second segments in two representations.
        var lookups = 200_000
        /// The maximum total size of the URLs to look up and the playlists to read, in bytes.
        var bytes = 64 << 20
        /// The maximum time for all lookups. The manifest itself must be sent within 10 seconds.
        var time = Duration.seconds(4)
    }

    private var left: Limits
    private let elapsed: () -> Duration

    /// Creates a budget, and starts its time limit.
    init(_ limits: Limits, _ clock: any Clock<Duration>) {
        left = limits
        elapsed = Self.stopwatch(clock)
    }

    private static func stopwatch(_ clock: some Clock<Duration>) -> () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// Charges one lookup, or one piece of a playlist, to the budget.
    ///
    /// - Parameter bytes: The number of bytes in the URL or the piece.
    /// - Returns: Whether the budget allows the lookup. After the first rejection, the budget rejects all further
    ///   lookups.
    /// - Throws: `CancellationError` if the task is cancelled, because its client has disconnected or the server is
    ///   shutting down.
    mutating func allows(_ bytes: Int) throws(CancellationError) -> Bool {
        guard !Task.isCancelled else { throw CancellationError() }
        left.lookups -= 1
        left.bytes -= bytes
        if left.lookups < 0 || left.bytes < 0 || elapsed() >= left.time { left.lookups = -1 }
        return left.lookups >= 0
    }
}
#endif
