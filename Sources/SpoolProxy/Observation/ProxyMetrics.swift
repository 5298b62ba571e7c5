#if Proxy
import Metrics

/// Counts requests, by what they cost and how they ended, through swift-metrics: names begin with `spool_`.
struct ProxyMetrics: Sendable {
    private let requests: [Outcome: Counter]
    private let sent: Counter
    private let cut: Counter
    private let duration: Metrics.Timer
    private let open: Meter

    private enum Outcome: String, Hashable, CaseIterable {
        case hit, miss, partial, stale, other, failed
    }

    init(factory: any MetricsFactory) {
        requests = Dictionary(
            uniqueKeysWithValues: Outcome.allCases.map {
                ($0, Counter(label: "spool_requests_total", dimensions: [("result", $0.rawValue)], factory: factory))
            })
        sent = Counter(label: "spool_sent_bytes_total", factory: factory)
        cut = Counter(label: "spool_cut_responses_total", factory: factory)
        duration = Metrics.Timer(label: "spool_response_seconds", dimensions: [], factory: factory)
        open = Meter(label: "spool_open_requests", factory: factory)
    }

    func began() { open.increment() }

    func ended(_ entry: AccessLog.Entry) {
        open.decrement()
        requests[outcome(entry)]?.increment()
        sent.increment(by: entry.bytes)
        if case .cut = entry.outcome { cut.increment() }
        duration.recordNanoseconds(Int64(entry.duration / .nanoseconds(1)))
    }

    private func outcome(_ entry: AccessLog.Entry) -> Outcome {
        guard entry.status < 400 || entry.status == 416 else { return .failed }
        guard let status = entry.cacheStatus else { return .other }
        // Looked for first and as a whole: whoever searches the text pays a tenth of a hit for it.
        if status == CacheStatus.plainHit { return .hit }
        if status.hasPrefix("spool; hit") { return status.contains("; ttl=-") ? .stale : .hit }
        if status.contains("fwd=partial") { return .partial }
        if status.contains("fwd=stale") { return .stale }
        return status.contains("fwd=miss") ? .miss : .other
    }
}
#endif
