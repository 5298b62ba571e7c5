import SpoolTesting
import Synchronization

/// What happened in a play, in order and virtual time: two plays of one seed give the same.
final class PlayLog: Sendable {
    private struct State {
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        var count = 0
        var lines: [String] = []
    }

    private let clock: ManualClock
    /// How many lines are kept, beside the digest of all.
    private let limit: Int
    private let state = Mutex(State())

    init(clock: ManualClock, limit: Int) {
        self.clock = clock
        self.limit = limit
    }

    /// Stands for all that was added (FNV-1a).
    var digest: UInt64 { state.withLock { $0.digest } }
    var count: Int { state.withLock { $0.count } }
    /// The last lines.
    var lines: [String] { state.withLock { Array($0.lines.suffix(limit)) } }

    func add(_ who: String, _ what: @autoclosure () -> String) {
        let (seconds, fraction) = clock.now.offset.components
        let line = "\(seconds * 1_000_000 + fraction / 1_000_000_000_000) µs \(who): \(what())"
        state.withLock { state in
            state.count += 1
            var line = line
            line.withUTF8 { bytes in
                for byte in bytes { state.digest = (state.digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
            }
            state.lines.append(line)
            if state.lines.count > limit * 2 { state.lines.removeFirst(state.lines.count - limit) }
        }
    }
}
