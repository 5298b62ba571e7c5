/// How fast one reader takes bytes, and so how far ahead of it reading pays.
///
/// A player fills its buffer at full speed and then takes what it plays; one that leaves has paid for what was read
/// ahead of it. So the window is what the reader takes in the next two seconds by its pace as it is seen, pauses
/// included, and no more than an eighth of what it has taken so far, which a copier outgrows at once.
struct ReadingPace {
    /// Bytes per second, smoothed over about a second.
    private(set) var bytesPerSecond: Double
    /// Bytes taken since the reader was opened.
    private(set) var taken: Int64 = 0
    private var last: Duration

    /// Seconds over which the pace is smoothed, and for which is read ahead.
    private static let memory = 1.0
    private static let horizon = 2.0
    /// The window of a reader that takes little, or nothing for a while.
    private static let smallest: Int64 = 512 << 10

    /// A reader that begins is held for one that needs two seconds for its first window of `initial` bytes.
    init(initial: Int64, now: Duration) {
        bytesPerSecond = Double(initial) / Self.horizon
        last = now
    }

    /// The reader has taken so many bytes more.
    mutating func note(bytes: Int64, now: Duration) {
        // A backward Euler step of exponential smoothing: right also for no time at all, and for an hour.
        let seconds = max((now - last) / .seconds(1), 0)
        bytesPerSecond = (bytesPerSecond + Double(bytes) / Self.memory) / (1 + seconds / Self.memory)
        taken = taken.adding(bytes)
        last = max(last, now)
    }

    /// Bytes beyond the reader's position that may land before it asks for them.
    func window(initial: Int64, limit: Int64) -> Int64 {
        let soon = Int64(min(bytesPerSecond * Self.horizon, 1e15))
        return min(max(min(soon, max(initial, taken / 8)), Self.smallest), limit)
    }
}
