import ByteRanges
import Foundation

/// The numbers of the progress line, and its text; no terminal, no clock.
struct ProgressLine: Sendable {
    /// The file's name.
    var name: String
    /// Bytes delivered so far.
    var done: Int64 = 0
    /// Bytes to deliver; nil while that is not known.
    var goal: Int64?
    /// Bytes a second lately; nil before it can be told.
    var rate: Double?
    /// Which bytes of the file are there.
    var landed = ByteRangeSet()
    /// The file's length.
    var length: Int64?

    /// The line, in fewer than `columns` characters.
    func text(columns: Int) -> String {
        var facts = [ByteCount(bytes: done).text + (goal.map { " of \(ByteCount(bytes: $0).text)" } ?? "")]
        if let rate { facts.append(ByteCount(bytes: Int64(rate)).text + "/s") }
        if let left = secondsLeft { facts.append(Self.clock(left) + " left") }
        let numbers = facts.joined(separator: "  ")
        return RangeBar.line(before: name, landed, length: length, after: numbers, columns: columns)
    }

    private var secondsLeft: Double? {
        guard let goal, let rate, rate > 0 else { return nil }
        return Double(max(0, goal - done)) / rate
    }

    /// `0:07`, `12:30` or `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "–:––" }
        let whole = Int(max(0, seconds).rounded(.up))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        if hours > 0 { return String(format: "%d:%02d:%02d", hours, minutes, rest) }
        return String(format: "%d:%02d", minutes, rest)
    }
}
