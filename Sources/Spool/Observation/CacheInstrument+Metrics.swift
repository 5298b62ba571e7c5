#if Metrics
public import Metrics
import SpoolStorage

extension CacheInstrument {
    /// Returns an instrument that reports the activity of the cache through swift-metrics. The names of the metrics
    /// start with `spool_`; `docs/observation.md` lists them.
    ///
    /// - Parameter factory: The factory that creates the metrics. The default is the metrics system's current factory.
    public static func metrics(_ factory: any MetricsFactory = MetricsSystem.factory) -> CacheInstrument {
        let metrics = CacheMetrics(factory)
        return CacheInstrument { metrics.note($0) }
    }
}

/// The counters, meters and timers for the events of a cache.
private struct CacheMetrics: Sendable {
    private let readers: Meter
    private let transfers: Meter
    private let hits: Metrics.Timer
    private let misses: Metrics.Timer
    private let served: Counter
    private let servedFromCache: Counter
    private let received: Counter
    private let requests: Counter
    private let retries: Counter
    private let evictions: Counter
    private let evictedBytes: Counter
    private let completed: Counter
    private let notCached: [CacheError.Code: Counter]
    private let errors: [CacheError.Code: Counter]

    init(_ factory: any MetricsFactory) {
        func counter(_ name: String, _ dimensions: [(String, String)] = []) -> Counter {
            Counter(label: "spool_" + name, dimensions: dimensions, factory: factory)
        }
        func firstBytes(_ result: String) -> Metrics.Timer {
            Metrics.Timer(label: "spool_first_byte_seconds", dimensions: [("result", result)], factory: factory)
        }
        readers = Meter(label: "spool_open_readers", factory: factory)
        transfers = Meter(label: "spool_origin_requests_in_flight", factory: factory)
        hits = firstBytes("hit")
        misses = firstBytes("miss")
        served = counter("served_bytes_total")
        servedFromCache = counter("hit_bytes_total")
        received = counter("origin_bytes_total")
        requests = counter("origin_requests_total")
        retries = counter("retries_total")
        evictions = counter("evictions_total")
        evictedBytes = counter("evicted_bytes_total")
        completed = counter("completed_total")
        func counters(_ counter: ([(String, String)]) -> Counter) -> [CacheError.Code: Counter] {
            let codes = CacheError.Code.allCases
            return Dictionary(uniqueKeysWithValues: codes.map { ($0, counter([("code", $0.description)])) })
        }
        notCached = counters { counter("not_cached_total", $0) }
        errors = counters { counter("errors_total", $0) }
    }

    func note(_ moment: InstrumentEvent) {
        switch moment {
        case .readerOpened: readers.increment()
        case .readerClosed: readers.decrement()
        case .firstBytes(let duration, let isStored, _):
            (isStored ? hits : misses).recordNanoseconds(Int64(duration / .nanoseconds(1)))
        case .served(let bytes, let stored):
            served.increment(by: bytes)
            if stored > 0 { servedFromCache.increment(by: stored) }
        case .requestSent: requests.increment()
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
        case .notCached(let cause): notCached[cause.code]?.increment()
        case .failed(let error): errors[error.code]?.increment()
        default: break
        }
    }
}
#endif
