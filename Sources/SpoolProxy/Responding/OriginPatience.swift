#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import Synchronization

/// Waits for an origin that can't be reached, or is busy, for a client that would not ask again. A server has one.
final class OriginPatience: Sendable {
    private let clock: any Clock<Duration>
    private let isOver = Atomic<Bool>(false)
    /// How long lies between two tries.
    private static let pause = Duration.seconds(1)
    /// How often an origin may respond that it can't serve now, and that it has failed. One that is not reached is waited
    /// for as long as it takes.
    private static let limits = (momentary: 600, failed: 60)
    /// Statuses that tell of a moment (RFC 9110 §15.5.9, §15.6.3 to §15.6.5; RFC 8470 §5.2; RFC 6585 §4).
    private static let momentary: Set<Int> = [408, 425, 429, 502, 503, 504]

    init(clock: any Clock<Duration>) { self.clock = clock }

    /// From now on nothing is waited for: the server stops.
    func end() { isOver.store(true, ordering: .relaxed) }

    /// How often an origin has refused.
    struct Count {
        fileprivate var refusals = 0
    }

    /// Waits a little after a failure that time may cure.
    ///
    /// - Throws: The failure, if it is none of these; `CancellationError` when the client has gone.
    func wait(after error: CacheError, _ count: inout Count) async throws {
        guard try await waits(after: error, &count) else { throw error }
    }

    /// The same; false for a failure that is not waited for.
    ///
    /// - Throws: `CancellationError` when the client has gone.
    func waits(after error: CacheError, _ count: inout Count) async throws -> Bool {
        guard error.code == .originUnavailable, (error.underlying as? UpstreamError)?.isTransient ?? true else {
            return false
        }
        if let status = error.httpStatus, !mayRefuse(status, &count) { return false }
        return try await sleep(for: Self.pause)
    }

    /// The same after a response, for as long as that asks for, up to a minute.
    ///
    /// - Throws: `CancellationError` when the client has gone.
    func waits(after response: HTTPResponse, _ count: inout Count) async throws -> Bool {
        guard mayRefuse(response.status.code, &count) else { return false }
        let after = response.headerFields[values: .retryAfter].first.flatMap { RetryAfter(parsing: $0) }
        let delay = after?.delay(now: Int64(Date().timeIntervalSince1970)) ?? .zero
        return try await sleep(for: min(max(Self.pause, delay), .seconds(60)))
    }

    /// False if the server stops meanwhile.
    private func sleep(for time: Duration) async throws -> Bool {
        guard !isOver.load(ordering: .relaxed) else { return false }
        try await clock.sleep(for: time)
        return !isOver.load(ordering: .relaxed)
    }

    private func mayRefuse(_ status: Int, _ count: inout Count) -> Bool {
        count.refusals += 1
        let limit = Self.momentary.contains(status) ? Self.limits.momentary : Self.limits.failed
        return StatusRules.isRefusalForNow(status) && count.refusals < limit
    }
}
#endif
