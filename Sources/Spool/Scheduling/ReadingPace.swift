import SpoolStorage

/// How far the cache reads ahead of a reader that has read little.
package enum ReadAheadStart: Sendable {
    /// About the size of a first request. Use it for a player that plays.
    case full
    /// 256 KiB at first, then the reader's current block and what a distant origin needs in transit, until the reader has
    /// read 1 MB. Use it for a client that may request everything and stop early.
    case careful
}

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
    private let start: ReadAheadStart
    private var last: Duration

    /// Seconds over which the pace is smoothed, and for which is read ahead.
    private static let memory = 1.0
    private static let horizon = 2.0
    /// The window of a reader that takes little, or nothing for a while.
    private static let smallest: Int64 = 512 << 10
    /// A careful reader's first window, and what it has to take before it is read ahead of for its pace's sake.
    private static let firstTaste: Int64 = 256 << 10
    private static let trial: Int64 = 512 << 10

    /// A reader that begins is held for one that needs two seconds for its first window of `initial` bytes.
    init(initial: Int64, start: ReadAheadStart = .full, now: Duration) {
        bytesPerSecond = Double(initial) / Self.horizon
        self.start = start
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
    ///
    /// - Parameters:
    ///   - initial: Of a first request.
    ///   - line: What the line has to have under way so that a player does not wait for each request's round trip; counts
    ///     up to what the reader has taken.
    func window(initial: Int64, limit: Int64, line: Int64 = 0) -> Int64 {
        let soon = Int64(min(bytesPerSecond * Self.horizon, 1e15))
        switch start {
        case .full: return min(max(min(soon, max(initial, taken / 8)), Self.smallest), limit)
        case .careful:
            let earned = max(taken - Self.trial, 0) / 8
            let taste = min(Self.firstTaste, initial) - taken
            return min(max(min(max(soon, Self.smallest), earned), taste, min(line, taken), Block.size), limit)
        }
    }
}
