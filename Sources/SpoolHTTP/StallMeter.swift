/// Says from a regular tick whether a body has stalled: nothing comes while somebody waits for it, or too little.
///
/// Pure. A tick is a quarter of the idle timeout. Time in which nobody waits does not count.
struct StallMeter {
    /// How a body has stalled.
    enum Stall { case isSilent, isSlow }

    private let slowTicks: Int
    private let leastBytes: Double
    private var silentTicks = 0
    private var window: (ticks: Int, bytes: Double) = (0, 0)

    init(_ configuration: HTTPUpstream.Configuration) {
        let tick = max(configuration.idleTimeout / 4, .milliseconds(1))
        let ticks = max(configuration.minimumRateTime, .zero) / tick
        slowTicks = max(1, Int(min(ticks.rounded(.up), 1e9)))
        leastBytes = Double(max(configuration.minimumRate, 0)) * (tick * slowTicks / .seconds(1))
    }

    /// Somebody has begun to wait.
    mutating func wait() { silentTicks = 0 }

    mutating func receive(_ count: Int) {
        silentTicks = 0
        window.bytes += Double(count)
    }

    /// A tick has passed; four on end without a byte are silence.
    mutating func tick(isWaited: Bool) -> Stall? {
        guard isWaited else {
            silentTicks = 0
            window = (0, 0)
            return nil
        }
        silentTicks += 1
        if silentTicks > 4 { return .isSilent }
        window.ticks += 1
        guard window.ticks >= slowTicks else { return nil }
        defer { window = (0, 0) }
        return window.bytes < leastBytes ? .isSlow : nil
    }
}
