#if Proxy
import Spool

/// Waits for an origin that can't be reached, for a client that would not ask again.
struct OriginPatience: Sendable {
    let clock: any Clock<Duration>
    /// How long lies between two tries.
    private static let pause = Duration.seconds(1)
    /// How long an origin may go on responding that it can't. One that is not reached is waited for as long as it takes.
    private static let refusals = 60

    /// How often an origin has responded that it can't.
    struct Count {
        fileprivate var refusals = 0
    }

    /// Waits a little after a failure that time may cure.
    ///
    /// - Throws: The failure, if it is none of these; `CancellationError` when the client has gone.
    func wait(after error: CacheError, _ count: inout Count) async throws {
        guard error.code == .originUnavailable, (error.underlying as? UpstreamError)?.isTransient ?? true else {
            throw error
        }
        if let status = error.httpStatus {
            count.refusals += 1
            guard ![501, 505].contains(status), count.refusals < Self.refusals else { throw error }
        }
        try await clock.sleep(for: Self.pause)
    }
}
#endif
