import ByteRanges

/// The size of the first read-ahead of a reader.
package enum ReadAheadStart: Sendable {
    /// About the size of a first request. Use this case for a player during playback.
    case full
    /// The read-ahead is 256 KiB at first. Then, until the reader has read 1 MB, it is the current block and the bytes
    /// that must be in transit from a distant origin. Use this case for a client that may request everything and stop
    /// early.
    case careful
}

/// The speed at which one reader reads bytes. It determines the size of the reader's window.
///
/// A player fills its buffer at full speed, and then reads at the speed of playback. If it stops, the bytes that were
/// read ahead are wasted. The window is therefore the number of bytes that the reader reads in two seconds at its
/// observed pace, including pauses. Beyond its initial size, the window is also limited to an eighth of the bytes that
/// the reader has read. This reduces the waste if a reader reads at full speed only for a moment.
struct ReadingPace {
    /// The pace in bytes per second, smoothed over about a second.
    private(set) var bytesPerSecond: Double
    /// The number of bytes that the reader has read since it was opened.
    private(set) var taken: Int64 = 0
    private let start: ReadAheadStart
    private var last: Duration

    /// The time over which the pace is smoothed, in seconds.
    private static let memory = 1.0
    /// The time for which bytes are read ahead, in seconds.
    private static let horizon = 2.0
    /// The window, in bytes, of a reader that reads slowly or pauses.
    private static let smallest: Int64 = 512 << 10
    /// The first window of a careful reader, in bytes.
    private static let initialWindow: Int64 = 256 << 10
    /// The number of bytes that a careful reader has to read before its pace determines its window.
    private static let trial: Int64 = 512 << 10

    /// Creates the pace of a new reader, which is assumed to need two seconds for its first window of `initial` bytes.
    init(initial: Int64, start: ReadAheadStart = .full, now: Duration) {
        bytesPerSecond = Double(initial) / Self.horizon
        self.start = start
        last = now
    }

    /// Records that the reader has read another `bytes` bytes.
    mutating func note(bytes: Int64, now: Duration) {
        // This is a backward Euler step of exponential smoothing. It is correct for any interval, from zero to hours.
        let seconds = max((now - last) / .seconds(1), 0)
        bytesPerSecond = (bytesPerSecond + Double(bytes) / Self.memory) / (1 + seconds / Self.memory)
        taken = taken.adding(bytes)
        last = max(last, now)
    }

    /// Returns the number of bytes after the reader's position that may be stored before it requests them.
    ///
    /// - Parameters:
    ///   - initial: The size of a first request.
    ///   - limit: The size of the largest window.
    ///   - line: The number of bytes that have to be in transit, so that a player does not wait for the round trip of
    ///     each request. For a careful reader, they are limited to the number of bytes that it has read.
    func window(initial: Int64, limit: Int64, line: Int64 = 0) -> Int64 {
        let soon = Int64(saturating: min(bytesPerSecond * Self.horizon, 1e15))
        switch start {
        case .full: return min(max(min(soon, max(initial, taken / 8)), Self.smallest), limit)
        case .careful:
            let earnedWindow = max(taken - Self.trial, 0) / 8
            let initialAllowance = min(Self.initialWindow, initial) - taken
            let window = max(min(max(soon, Self.smallest), earnedWindow), initialAllowance)
            return min(max(window, min(line, taken), Block.size), limit)
        }
    }
}
