/// Which of a player's seeks is the one under way, and when it has arrived.
///
/// libmpv replies to a seek command when it has taken note of it, says so when the seek goes to the demuxer, and again
/// when playback restarts. A later seek takes the place of an earlier one, which then did not finish. Pure.
struct SeekTracker: Sendable, Equatable {
    private enum Stage: Sendable, Equatable {
        case sent
        case noted
        case atDemuxer
    }

    private var current: (id: UInt64, stage: Stage)?

    static func == (left: SeekTracker, right: SeekTracker) -> Bool {
        left.current?.id == right.current?.id && left.current?.stage == right.current?.stage
    }

    /// The seek under way.
    var pending: UInt64? { current?.id }
    /// Whether the seek under way has not yet reached the demuxer.
    var isBeforeDemuxer: Bool { current.map { $0.stage != .atDemuxer } ?? false }

    /// A new seek; the response is the one that it takes the place of.
    mutating func sent(_ id: UInt64) -> UInt64? {
        defer { current = (id, .sent) }
        return current?.id
    }

    /// libmpv has taken note of a seek; true if it is the one under way.
    mutating func noted(_ id: UInt64) -> Bool {
        guard current?.id == id else { return false }
        current?.stage = .noted
        return true
    }

    /// libmpv refused a seek; true if it was the one under way, which then is none.
    mutating func refused(_ id: UInt64) -> Bool {
        guard current?.id == id else { return false }
        current = nil
        return true
    }

    /// The demuxer was sent elsewhere.
    mutating func reachedDemuxer() {
        if current?.stage == .noted { current?.stage = .atDemuxer }
    }

    /// Playback goes on somewhere; the response is the seek that has thereby arrived.
    mutating func restarted() -> UInt64? {
        guard let id = current?.id, current?.stage == .atDemuxer else { return nil }
        current = nil
        return id
    }

    /// Gives up; the response is the seek that was under way.
    mutating func cancel() -> UInt64? {
        defer { current = nil }
        return current?.id
    }
}
