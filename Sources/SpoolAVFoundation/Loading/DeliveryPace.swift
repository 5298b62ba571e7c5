#if canImport(AVFoundation) && !os(watchOS)
/// How fast bytes that have landed are handed to one loading request.
///
/// A player calls a request off when it has enough, but the cancel comes late, and some never send it; meanwhile a disk
/// could hand over a whole film, and the player would hold it in memory. So each request gets a burst at once, and then
/// a few times what playing uses up. Small requests, and the first bytes after a seek, are within the burst. Pure.
struct DeliveryPace: Hashable, Sendable {
    /// Bytes handed over at once.
    private(set) var burst = Self.smallestBurst
    /// Bytes a second after that.
    private(set) var bytesPerSecond = Self.unknownRate
    /// Bytes that may be handed over now; below 0 after a piece that was more than that.
    private var credit: Double
    private var lastTime: Duration?

    /// What suits media whose bit rate is not known: 64 Mbit/s is more than players of phones and desks can use.
    static let unknownRate: Double = 8 * 1_048_576
    static let smallestBurst: Int64 = 4 << 20
    private static let largestBurst: Int64 = 32 << 20
    /// Never slower than this: what is told of a duration may be wrong.
    private static let slowest: Double = 512 * 1024
    private static let secondsOfBurst: Double = 20
    /// How many times as fast as playing.
    private static let margin: Double = 4

    init() { credit = Double(Self.smallestBurst) }

    /// The pace for media of a length and duration, played at a rate.
    ///
    /// - Parameters:
    ///   - length: bytes; nil if not known.
    ///   - duration: seconds; nil if not known.
    mutating func learn(length: Int64?, duration: Double?, rate: Float) {
        guard let length, let duration, duration.isFinite, duration > 0, length > 0, rate.isFinite else { return }
        let used = Double(length) / duration * Double(max(1, abs(rate)))
        bytesPerSecond = min(max(used * Self.margin, Self.slowest), Double(Int32.max))
        let former = burst
        burst = min(max(Int64(min(used, 1e12) * Self.secondsOfBurst), Self.smallestBurst), Self.largestBurst)
        credit += Double(burst - former)
    }

    /// Bytes were handed over; how long to wait before the next.
    ///
    /// - Parameter now: the time since any fixed moment.
    mutating func handedOver(_ count: Int, at now: Duration) -> Duration {
        if let lastTime {
            let seconds =
                Double((now - lastTime).components.seconds) + Double((now - lastTime).components.attoseconds) / 1e18
            credit = min(credit + max(0, seconds) * bytesPerSecond, Double(burst))
        }
        lastTime = now
        credit -= Double(count)
        return credit >= 0 ? .zero : .seconds(-credit / bytesPerSecond)
    }
}

/// A clock, as far as pacing and trying again need one.
struct LoadingClock: Sendable {
    /// The time since the clock was taken up.
    let now: @Sendable () -> Duration
    /// Waits; throws `CancellationError` when the task is cancelled.
    let sleep: @Sendable (Duration) async throws -> Void

    init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
    }
}
#endif
