/// Measures how fast a body comes, leaving out the time during which it was held.
struct RateMeter {
    private var bytes: Int64 = 0
    private var active = Duration.zero
    private var mark: Duration

    init(now: Duration) { mark = now }

    /// Time until now was spent landing or waiting for permission, which is not the line's.
    mutating func resume(at now: Duration) { mark = now }

    /// A chunk came at `now`; every 256 KiB or quarter of a second gives a sample.
    mutating func sample(bytes count: Int, at now: Duration) -> (bytes: Int64, seconds: Double)? {
        bytes += Int64(count)
        active += now - mark
        mark = now
        guard bytes >= 256 << 10 || active >= .milliseconds(250) else { return nil }
        return take()
    }

    /// The body is over: what came since the last sample, unless it is so little that its time is the machine's, not
    /// the line's.
    mutating func rest() -> (bytes: Int64, seconds: Double)? {
        bytes >= 64 << 10 && active >= .milliseconds(2) ? take() : nil
    }

    private mutating func take() -> (bytes: Int64, seconds: Double) {
        defer {
            bytes = 0
            active = .zero
        }
        return (bytes, active / .seconds(1))
    }
}
