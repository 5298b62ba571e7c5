#if Proxy
import Metrics
import Synchronization

/// Counts for `/.spool/metrics`, in the text format of Prometheus (version 0.0.4): a small factory for swift-metrics, which
/// knows counters, meters and timers, the last as histograms.
final class PrometheusMetrics: MetricsFactory {
    private struct Key: Hashable {
        var label: String
        var dimensions: String
    }

    private let counters = Mutex<[Key: CountHandler]>([:])
    private let timers = Mutex<[Key: HistogramHandler]>([:])
    private let meters = Mutex<[Key: GaugeHandler]>([:])

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counters.withLock { found(in: &$0, Key(label: label, dimensions: Self.text(dimensions))) { CountHandler() } }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        meters.withLock { found(in: &$0, Key(label: label, dimensions: Self.text(dimensions))) { GaugeHandler() } }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        GaugeHandler()
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        timers.withLock { found(in: &$0, Key(label: label, dimensions: Self.text(dimensions))) { HistogramHandler() } }
    }

    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    private func found<Handler>(
        in handlers: inout [Key: Handler], _ key: Key, _ make: () -> Handler
    ) -> Handler {
        if let handler = handlers[key] { return handler }
        let handler = make()
        handlers[key] = handler
        return handler
    }

    private static func text(_ dimensions: [(String, String)]) -> String {
        dimensions.map { name, value in
            let escaped = value.flatMap { "\\\"".contains($0) ? "\\\($0)" : $0 == "\n" ? "\\n" : String($0) }
            return "\(name)=\"\(String(escaped))\""
        }.joined(separator: ",")
    }

    /// Requests to the server, by their result.
    var requests: [String: Int] {
        var requests: [String: Int] = [:]
        for (key, handler) in counters.withLock({ $0 }) where key.label == "spool_requests_total" {
            let result = key.dimensions.split(separator: "\"").dropFirst().first ?? ""
            requests[String(result), default: 0] += handler.count
        }
        return requests
    }

    /// Requests to the server that are under way.
    var openRequests: Int {
        Int(meters.withLock { $0.filter { $0.key.label == "spool_open_requests" }.values.reduce(0) { $0 + $1.number } })
    }

    /// All that was counted, in the text format.
    func write(to text: inout PrometheusText) {
        for (key, handler) in sorted(counters.withLock { $0 }) {
            text.add(key.label, .counter, handler.count, key.dimensions)
        }
        for (key, handler) in sorted(meters.withLock { $0 }) {
            text.add(key.label, .gauge, handler.number, key.dimensions)
        }
        for (key, handler) in sorted(timers.withLock { $0 }) {
            let (counts, total, seconds) = handler.snapshot
            let classes = zip(HistogramHandler.bounds, counts).map { (bound: $0, count: $1) }
            text.add(key.label, histogram: classes, total: total, sum: seconds, key.dimensions)
        }
    }

    private func sorted<Handler>(_ handlers: [Key: Handler]) -> [(key: Key, value: Handler)] {
        handlers.sorted { ($0.key.label, $0.key.dimensions) < ($1.key.label, $1.key.dimensions) }
    }
}

/// One counter.
private final class CountHandler: CounterHandler {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func increment(by amount: Int64) { value.wrappingAdd(Int(amount), ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }
}

/// One number that goes up and down.
private final class GaugeHandler: MeterHandler, RecorderHandler {
    private let value = Mutex<Double>(0)
    var number: Double { value.withLock { $0 } }
    func set(_ number: Int64) { set(Double(number)) }
    func set(_ number: Double) { value.withLock { $0 = number } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ number: Int64) { set(number) }
    func record(_ number: Double) { set(number) }
}

/// How long something took, by classes.
private final class HistogramHandler: TimerHandler {
    /// Upper bounds of the classes, in seconds.
    static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600]

    private struct State {
        var counts = Array(repeating: 0, count: HistogramHandler.bounds.count)
        var total = 0
        var seconds = 0.0
    }

    private let state = Mutex(State())

    var snapshot: (counts: [Int], total: Int, seconds: Double) {
        state.withLock { ($0.counts, $0.total, $0.seconds) }
    }

    func recordNanoseconds(_ duration: Int64) {
        let seconds = Double(duration) / 1e9
        state.withLock { state in
            if let index = Self.bounds.firstIndex(where: { seconds <= $0 }) { state.counts[index] += 1 }
            state.total += 1
            state.seconds += seconds
        }
    }
}
#endif
