#if Tools
import ByteRanges
import Foundation

/// The numbers that the progress line shows, and its text. This type does not depend on a terminal or a clock.
struct ProgressLine: Sendable {
    /// The name of the file.
    var name: String
    /// The number of bytes delivered so far.
    var done: Int64 = 0
    /// The number of bytes to deliver, or `nil` while it is unknown.
    var goal: Int64?
    /// The current rate in bytes per second, or `nil` until it is known.
    var rate: Double?
    /// The stored ranges of the file.
    var storedRanges = ByteRangeSet()
    /// The length of the file.
    var length: Int64?

    /// Returns the text, in fewer than `columns` characters.
    func text(columns: Int) -> String {
        var facts = [ByteCount(bytes: done).text + (goal.map { " of \(ByteCount(bytes: $0).text)" } ?? "")]
        if let rate { facts.append(ByteCount(bytes: Int64(saturating: rate)).text + "/s") }
        if let left = secondsLeft { facts.append(Self.clock(left) + " left") }
        let numbers = facts.joined(separator: "  ")
        return RangeBar.line(before: name, storedRanges, length: length, after: numbers, columns: columns)
    }

    private var secondsLeft: Double? {
        guard let goal, let rate, rate > 0 else { return nil }
        return Double(max(0, goal - done)) / rate
    }

    /// Formats a duration as `0:07`, `12:30` or `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "–:––" }
        let whole = Int(max(0, seconds).rounded(.up))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        if hours > 0 { return String(format: "%d:%02d:%02d", hours, minutes, rest) }
        return String(format: "%d:%02d", minutes, rest)
    }
}

/// A line on a terminal that is redrawn while a command runs.
///
/// Nothing is drawn unless standard error is a terminal that can redraw lines.
struct LiveLine: Sendable {
    private let task: Task<Void, Never>?

    /// Starts drawing a line of text ten times a second. The `text` function receives the number of columns of the
    /// terminal.
    init(isShown: Bool = Output.canDraw, text: @escaping @Sendable (_ columns: Int) async -> String) {
        guard isShown else {
            task = nil
            return
        }
        task = Task {
            while !Task.isCancelled {
                Output.draw(await text(Output.columns))
                // If the task is cancelled, the `while` condition ends the loop.
                try? await Task.sleep(for: .milliseconds(100))
            }
            Output.draw("")
        }
    }

    /// Clears this line and stops drawing.
    func end() async {
        task?.cancel()
        await task?.value
    }
}

/// The rate of progress in the last few seconds.
struct RateEstimate: Sendable {
    private var samples: [(seconds: Double, bytes: Int64)] = []

    /// Adds a sample, and returns the rate in bytes per second, or `nil` until it is known.
    mutating func note(_ bytes: Int64, at seconds: Double) -> Double? {
        samples.append((seconds, bytes))
        while samples.count > 2, samples[1].seconds < seconds - 5 { samples.removeFirst() }
        guard let first = samples.first, seconds - first.seconds > 0.2 else { return nil }
        return Double(bytes - first.bytes) / (seconds - first.seconds)
    }
}

/// A display of the stored parts of a file as a row of cells, from its first byte to its last.
enum RangeBar {
    /// Returns the row. A cell is `·` if none of its bytes are stored, and otherwise `░`, `▒`, `▓` or `█`, darker if
    /// more bytes are stored. Only a completely stored cell is `█`.
    static func text(_ storedRanges: ByteRangeSet, length: Int64?, cells: Int) -> String {
        guard let length, length > 0 else { return String(repeating: "·", count: max(0, cells)) }
        return String(
            (0..<max(0, cells)).map { index in
                let cell = range(ofCell: index, of: cells, length: length)
                let there = storedRanges.intersection(cell).byteCount
                let whole = cell.upperBound - cell.lowerBound
                if there == 0 { return "·" }
                if there == whole { return "█" }
                return ["░", "▒", "▓"][Int(min(2, Double(there) / Double(whole) * 3))]
            })
    }

    /// Returns the number of cells that fit on a line, or 0 if fewer than ten fit.
    ///
    /// - Parameter room: The number of available characters, or `nil` for no limit.
    static func cells(upTo most: Int, in room: Int?) -> Int {
        let cells = min(most, room ?? most)
        return cells >= 10 ? cells : 0
    }

    /// Returns a line with a bar of up to 40 cells between two pieces of text, in fewer than `columns` characters.
    ///
    /// If there are too few columns, the bar gets shorter. If that is not enough, the first piece of text is omitted,
    /// and then the bar.
    static func line(
        before: String, _ storedRanges: ByteRangeSet, length: Int64?, after: String, columns: Int
    ) -> String {
        for before in [before + " ", ""] {
            let cells = min(40, columns - before.count - after.count - 4)
            if cells >= 10 { return before + "▕" + text(storedRanges, length: length, cells: cells) + "▏ " + after }
        }
        return String(after.prefix(max(0, columns - 1)))
    }

    /// Returns the bytes that a cell represents. The range contains at least one byte, even if the file has fewer bytes
    /// than the row has cells.
    static func range(ofCell index: Int, of cells: Int, length: Int64) -> Range<Int64> {
        let size = Double(length) / Double(cells)
        let start = min(Int64(Double(index) * size), length - 1)
        let end = index + 1 == cells ? length : Int64(Double(index + 1) * size)
        return start..<max(start + 1, min(end, length))
    }
}
#endif
