#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import Synchronization

/// An object that waits for unreachable or busy origins, for clients that do not retry. Each server has one.
final class OriginRetryWaiter: Sendable {
    private let clock: any Clock<Duration>
    private let isOver = Atomic<Bool>(false)
    /// The time between two attempts.
    private static let pause = Duration.seconds(1)
    /// The maximum number of responses to one request with a temporary status, and with any other server error.
    ///
    /// There is no limit while an origin is unreachable.
    private static let limits = (momentary: 600, failed: 60)
    /// The temporary statuses (RFC 9110 §15.5.9, §15.6.3 to §15.6.5, RFC 8470 §5.2, RFC 6585 §4).
    private static let momentary: Set<Int> = [408, 425, 429, 502, 503, 504]

    init(clock: any Clock<Duration>) { self.clock = clock }

    /// Ends all waits, because the server is shutting down.
    func end() { isOver.store(true, ordering: .relaxed) }

    /// The number of error responses from an origin to one request.
    struct Count {
        fileprivate var refusals = 0
    }

    /// Waits after a temporary failure.
    ///
    /// - Throws: The failure if it is not temporary; `CancellationError` if the client closes the connection.
    func wait(after error: CacheError, _ count: inout Count) async throws {
        guard try await waits(after: error, &count) else { throw error }
    }

    /// Waits after a temporary failure, and returns whether the request may be repeated.
    ///
    /// - Throws: `CancellationError` if the client closes the connection.
    func waits(after error: CacheError, _ count: inout Count) async throws -> Bool {
        guard error.code == .originUnavailable, (error.underlying as? UpstreamError)?.isTransient ?? true else {
            return false
        }
        if let status = error.httpStatus, !mayRefuse(status, &count) { return false }
        return try await sleep(for: Self.pause)
    }

    /// Waits after a response with an error, and returns whether the request may be repeated.
    ///
    /// The wait lasts for the time in `Retry-After`, but at most one minute.
    ///
    /// - Throws: `CancellationError` if the client closes the connection.
    func waits(after response: HTTPResponse, _ count: inout Count) async throws -> Bool {
        guard mayRefuse(response.status.code, &count) else { return false }
        let after = response.headerFields[values: .retryAfter].first.flatMap { RetryAfter(parsing: $0) }
        let delay = after?.delay(now: Int64(Date().timeIntervalSince1970)) ?? .zero
        return try await sleep(for: min(max(Self.pause, delay), .seconds(60)))
    }

    /// Waits, and returns whether the server is still running.
    private func sleep(for time: Duration) async throws -> Bool {
        guard !isOver.load(ordering: .relaxed) else { return false }
        try await clock.sleep(for: time)
        return !isOver.load(ordering: .relaxed)
    }

    private func mayRefuse(_ status: Int, _ count: inout Count) -> Bool {
        count.refusals += 1
        let limit = Self.momentary.contains(status) ? Self.limits.momentary : Self.limits.failed
        return StatusRules.isTemporaryFailure(status) && count.refusals < limit
    }
}
#endif
