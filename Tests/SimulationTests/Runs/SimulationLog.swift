import SpoolTesting
import Synchronization

/// The log of a simulated run, in order and in virtual time. Two runs with the same seed have identical logs.
final class SimulationLog: Sendable {
    private struct State {
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        var count = 0
        var lines: [String] = []
    }

    private let clock: ManualClock
    /// The number of lines to retain. The digest covers all lines.
    private let limit: Int
    private let state = Mutex(State())

    init(clock: ManualClock, limit: Int) {
        self.clock = clock
        self.limit = limit
    }

    /// The FNV-1a hash of all added lines.
    var digest: UInt64 { state.withLock { $0.digest } }
    var count: Int { state.withLock { $0.count } }
    /// The retained lines: the last lines of the log.
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
