#if Proxy
import Spool

/// Metrics in the text format of Prometheus, version 0.0.4.
///
/// All names start with `spool_` and include the unit, if there is one. Names of counters end with `_total`.
struct PrometheusText {
    enum Kind: String { case counter, gauge, histogram }

    static let contentType = ["text/plain", "version=0.0.4", "charset=utf-8"].joined(separator: "; ")

    private(set) var text = ""
    private var described: Set<String> = []

    /// Adds a metric that has a single value.
    ///
    /// - Parameter labels: The escaped labels, in the form `name="value"`. The default is an empty string.
    mutating func add(_ name: String, _ kind: Kind, _ value: some Numeric, _ labels: String = "") {
        describe(name, kind)
        line(name, labels, "\(value)")
    }

    /// Adds a histogram.
    ///
    /// - Parameter histogram: The upper bound of each bucket, and the number of values between the previous bound and
    ///   this one.
    mutating func add(
        _ name: String, histogram: [(bound: Double, count: Int)], total: Int, sum: Double, _ labels: String = ""
    ) {
        describe(name, .histogram)
        let start = labels.isEmpty ? "" : labels + ","
        var below = 0
        for (bound, count) in histogram {
            below += count
            line(name + "_bucket", start + "le=\"\(bound)\"", "\(below)")
        }
        line(name + "_bucket", start + "le=\"+Inf\"", "\(total)")
        line(name + "_sum", labels, "\(sum)")
        line(name + "_count", labels, "\(total)")
    }

    private mutating func describe(_ name: String, _ kind: Kind) {
        guard described.insert(name).inserted else { return }
        if let help = Self.help[name] { text += "# HELP \(name) \(help)\n" }
        text += "# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func line(_ name: String, _ labels: String, _ value: String) {
        text += name + (labels.isEmpty ? "" : "{\(labels)}") + " \(value)\n"
    }

    private static let help = [
        "spool_requests_total": "Requests to the server, by result.",
        "spool_sent_bytes_total": "Body bytes sent to clients.",
        "spool_truncated_responses_total": "Responses that ended early.",
        "spool_request_duration_seconds": "Time from the request headers to the last byte of the response.",
        "spool_requests_in_flight": "Requests in progress.",
        "spool_origin_requests_total": "Requests sent to origins.",
        "spool_origin_bytes_total": "Body bytes of media received from origins.",
        "spool_served_bytes_total": "Bytes that readers received.",
        "spool_hit_bytes_total": "Bytes that readers received and that were already stored.",
        "spool_stored_bytes_total": "Received bytes that were stored in the cache.",
        "spool_open_resources": "Open resources.",
        "spool_open_readers": "Open readers.",
        "spool_origin_requests_in_flight": "Origin requests in progress.",
        "spool_evictions_total": "Evictions of resources or of parts of resources.",
        "spool_evicted_bytes_total": "Evicted bytes.",
        "spool_retries_total": "Failed requests to origins after which a retry was scheduled.",
        "spool_not_cached_total": "Resources whose received bytes were not stored, by the code of the reason.",
        "spool_errors_total": "Errors that readers received, by code.",
        "spool_cache_size_bytes": "Stored bytes of media.",
        "spool_capacity_bytes": "Maximum number of stored bytes of media.",
    ]
}

extension PrometheusText {
    /// Adds the metrics of a cache.
    mutating func add(_ cache: MediaCache) {
        let (statistics, activity) = (cache.statistics, cache.activity)
        add("spool_origin_requests_total", .counter, statistics.originRequests)
        add("spool_origin_bytes_total", .counter, statistics.bytesFromOrigin)
        add("spool_served_bytes_total", .counter, statistics.bytesServed)
        add("spool_hit_bytes_total", .counter, statistics.bytesFromCache)
        add("spool_stored_bytes_total", .counter, statistics.bytesStored)
        add("spool_open_resources", .gauge, cache.openResourceCount)
        add("spool_open_readers", .gauge, activity.readers)
        add("spool_origin_requests_in_flight", .gauge, activity.transfers.count)
        add("spool_evictions_total", .counter, activity.counts.evictions)
        add("spool_evicted_bytes_total", .counter, activity.counts.evictedBytes)
        add("spool_retries_total", .counter, activity.counts.retries)
        // Every code is included from the start, because a rate can be calculated only if a zero precedes the first
        // error.
        for code in CacheError.Code.allCases {
            add("spool_not_cached_total", .counter, activity.counts.notCached[code] ?? 0, "code=\"\(code)\"")
        }
        for code in CacheError.Code.allCases {
            add("spool_errors_total", .counter, activity.counts.errors[code] ?? 0, "code=\"\(code)\"")
        }
        guard let space = cache.space else { return }
        add("spool_cache_size_bytes", .gauge, space.used)
        if let capacity = space.capacity { add("spool_capacity_bytes", .gauge, capacity) }
    }
}

extension PrometheusText {
    /// Adds the metrics of a server.
    mutating func add(_ counts: ProxyMetrics.Counts) {
        add("spool_truncated_responses_total", .counter, counts.cutResponses)
        for result in ProxyMetrics.Result.allCases {
            add("spool_requests_total", .counter, counts.requests[result] ?? 0, "result=\"\(result.rawValue)\"")
        }
        add("spool_sent_bytes_total", .counter, counts.sentBytes)
        add("spool_requests_in_flight", .gauge, counts.openRequests)
        add(
            "spool_request_duration_seconds",
            histogram: zip(ProxyMetrics.Counts.durationBounds, counts.durations).map { (bound: $0, count: $1) },
            total: counts.responses, sum: counts.seconds)
    }
}
#endif
