#if Metrics
public import Metrics
import SpoolStorage

extension CacheInstrument {
    /// Returns an instrument that counts the actions of the cache with swift-metrics. The names start with
    /// `spool_cache_`; `docs/observation.md` lists them.
    ///
    /// - Parameter factory: The factory of the metrics. The default is the current factory of the metrics system.
    public static func metrics(_ factory: any MetricsFactory = MetricsSystem.factory) -> CacheInstrument {
        let metrics = CacheMetrics(factory)
        return CacheInstrument { metrics.note($0) }
    }
}

/// The engine's counters, meters and timers.
private struct CacheMetrics: Sendable {
    private let readers: Meter
    private let transfers: Meter
    private let hits: Metrics.Timer
    private let misses: Metrics.Timer
    private let servedFromCache: Counter
    private let servedFresh: Counter
    private let received: Counter
    private let requests: Counter
    private let retries: Counter
    private let evictions: Counter
    private let evictedBytes: Counter
    private let completed: Counter
    private let losses: Counter
    private let errors: [CacheError.Code: Counter]

    init(_ factory: any MetricsFactory) {
        func counter(_ name: String, _ dimensions: [(String, String)] = []) -> Counter {
            Counter(label: "spool_cache_" + name, dimensions: dimensions, factory: factory)
        }
        func firstBytes(_ result: String) -> Metrics.Timer {
            Metrics.Timer(label: "spool_cache_first_byte_seconds", dimensions: [("result", result)], factory: factory)
        }
        readers = Meter(label: "spool_cache_readers", factory: factory)
        transfers = Meter(label: "spool_cache_transfers", factory: factory)
        hits = firstBytes("hit")
        misses = firstBytes("miss")
        servedFromCache = counter("served_bytes_total", [("source", "cache")])
        servedFresh = counter("served_bytes_total", [("source", "origin")])
        received = counter("received_bytes_total")
        requests = counter("origin_requests_total")
        retries = counter("retries_total")
        evictions = counter("evictions_total")
        evictedBytes = counter("evicted_bytes_total")
        completed = counter("completed_total")
        losses = counter("not_kept_total")
        errors = Dictionary(
            uniqueKeysWithValues: CacheError.Code.allCases.map {
                ($0, counter("errors_total", [("code", $0.description)]))
            })
    }

    func note(_ moment: CacheMoment) {
        switch moment {
        case .readerOpened: readers.increment()
        case .readerClosed: readers.decrement()
        case .firstBytes(let duration, let isStored, _):
            (isStored ? hits : misses).recordNanoseconds(Int64(duration / .nanoseconds(1)))
        case .served(let bytes, let stored):
            if stored > 0 { servedFromCache.increment(by: stored) }
            if bytes > stored { servedFresh.increment(by: bytes - stored) }
        case .asked: requests.increment()
        case .received(let bytes): received.increment(by: bytes)
        case .transferBegan: transfers.increment()
        case .transferEnded: transfers.decrement()
        case .event(let event): note(event.kind)
        }
    }

    private func note(_ kind: CacheEvent.Kind) {
        switch kind {
        case .retrying: retries.increment()
        case .evicted(let bytes):
            evictions.increment()
            evictedBytes.increment(by: bytes)
        case .completed: completed.increment()
        case .notKept: losses.increment()
        case .failed(let error): errors[error.code]?.increment()
        default: break
        }
    }
}
#endif
