#if Proxy
import Synchronization

/// The request counts of one server, for its live page and for `/.spool/metrics`.
///
/// The counts do not depend on the cache. They may be updated on any thread, because the lock is held only for a few
/// additions.
final class ProxyMetrics: Sendable {
    /// The result of a request. Its raw values are the values of the label `result` of `spool_requests_total`.
    enum Result: String, CaseIterable, Sendable {
        case hit, miss, partial, stale, other, failed

        /// Creates the result of a response.
        ///
        /// - Parameter outcome: The action of the cache, or `nil` if the response is not from the cache.
        init(status: Int, _ outcome: CacheStatus.Outcome?) {
            guard status < 400 || status == 416 else {
                self = .failed
                return
            }
            self =
                switch outcome {
                case .hit: .hit
                case .stale(let seconds): seconds == nil ? .hit : .stale
                case .forwarded(.partial, _, _): .partial
                case .forwarded(.stale, _, _): .stale
                case .forwarded(.miss, _, _): .miss
                case .forwarded, .bypass, nil: .other
                }
        }
    }

    /// The counts at one point in time.
    struct Counts: Sendable {
        /// The upper bounds of the buckets of response times, in seconds.
        static let durationBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600]

        fileprivate(set) var requests = Dictionary(uniqueKeysWithValues: Result.allCases.map { ($0, 0) })
        /// The number of body bytes that were sent to clients.
        fileprivate(set) var sentBytes = 0
        fileprivate(set) var cutResponses = 0
        fileprivate(set) var openRequests = 0
        /// The number of responses in each bucket of ``durationBounds``.
        fileprivate(set) var durations = Array(repeating: 0, count: durationBounds.count)
        fileprivate(set) var responses = 0
        /// The sum of all response times, in seconds.
        fileprivate(set) var seconds = 0.0
    }

    private let state = Mutex(Counts())

    var counts: Counts { state.withLock { $0 } }

    func started() { state.withLock { $0.openRequests += 1 } }

    func ended(_ entry: AccessLog.Entry) {
        let result = Result(status: entry.status, entry.cacheOutcome)
        let seconds = entry.duration / .seconds(1)
        let durationClass = Counts.durationBounds.firstIndex { seconds <= $0 }
        state.withLock { counts in
            counts.openRequests -= 1
            counts.requests[result, default: 0] += 1
            counts.sentBytes += entry.bytes
            if case .cut = entry.outcome { counts.cutResponses += 1 }
            if let durationClass { counts.durations[durationClass] += 1 }
            counts.responses += 1
            counts.seconds += seconds
        }
    }
}
#endif
