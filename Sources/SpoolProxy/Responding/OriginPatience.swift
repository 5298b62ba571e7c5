#if Proxy
import Spool

/// Waits for an origin that can't be reached, or is busy, for a client that would not ask again.
struct OriginPatience: Sendable {
    let clock: any Clock<Duration>
    /// How long lies between two tries.
    private static let pause = Duration.seconds(1)
    /// How often an origin may respond that it can't serve now, and that it has failed. One that is not reached is waited
    /// for as long as it takes.
    private static let limits = (momentary: 600, failed: 60)
    /// Statuses that tell of a moment (RFC 9110 §15.5.9, §15.6.3 to §15.6.5; RFC 8470 §5.2; RFC 6585 §4).
    private static let momentary: Set<Int> = [408, 425, 429, 502, 503, 504]

    /// How often an origin has refused.
    struct Count {
        fileprivate var refusals = 0
    }

    /// Waits a little after a failure that time may cure.
    ///
    /// - Parameter pause: How long the origin asked for, at least; no more than a minute.
    /// - Throws: The failure, if it is none of these; `CancellationError` when the client has gone.
    func wait(after error: CacheError, _ count: inout Count, pause: Duration = .zero) async throws {
        guard error.code == .originUnavailable, (error.underlying as? UpstreamError)?.isTransient ?? true else {
            throw error
        }
        if let status = error.httpStatus {
            count.refusals += 1
            let limit = Self.momentary.contains(status) ? Self.limits.momentary : Self.limits.failed
            guard ![501, 505].contains(status), count.refusals < limit else { throw error }
        }
        try await clock.sleep(for: min(max(Self.pause, pause), .seconds(60)))
    }

    /// The same; false for a failure that is not waited for.
    ///
    /// - Throws: `CancellationError` when the client has gone.
    func waits(after error: CacheError, _ count: inout Count, pause: Duration = .zero) async throws -> Bool {
        do {
            try await wait(after: error, &count, pause: pause)
            return true
        } catch is CacheError {
            return false
        }
    }
}
#endif
