/// A meter for the transfer rate of a body, excluding the time during which the body was paused.
struct RateMeter {
    private var bytes: Int64 = 0
    private var active = Duration.zero
    private var mark: Duration

    init(now: Duration) { mark = now }

    /// Excludes the time up to `now`. This time was spent on storing bytes or waiting for permission, and not on the
    /// network.
    mutating func resume(at now: Duration) { mark = now }

    /// Records a chunk that was received at `now`. Returns a sample after each 256 KiB or quarter of a second, and
    /// otherwise `nil`.
    mutating func sample(bytes count: Int, at now: Duration) -> (bytes: Int64, seconds: Double)? {
        bytes += Int64(count)
        active += now - mark
        mark = now
        guard bytes >= 256 << 10 || active >= .milliseconds(250) else { return nil }
        return take()
    }

    /// Returns the last sample, after the body has ended. Returns `nil` if few bytes were received or very little time
    /// has passed. The rate then depends more on the machine than on the network.
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
