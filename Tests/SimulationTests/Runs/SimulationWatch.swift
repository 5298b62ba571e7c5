import Foundation
import SpoolTesting
import Synchronization

/// A watchdog that prints the seed of a simulated run that hangs, and ends the process.
///
/// A call that never returns cannot be cancelled, and tasks that wait for it would wait silently. The watchdog checks
/// all runs once per second on a separate thread. It counts checks and does not read a clock, so that a sleeping or
/// busy machine does not look like a hanging run.
final class SimulationWatch: Sendable {
    private struct Watched {
        let world: SimulationWorld
        var looks = 0
    }

    private struct State {
        var plays: [Int: Watched] = [:]
        var last = 0
    }

    private let state = Mutex(State())
    private let isOver = DispatchSemaphore(value: 0)
    private let limit: Int

    /// - Parameters:
    ///   - limit: The number of checks after which a run counts as hanging and the process ends.
    ///   - interval: The time between two checks, in seconds.
    init(limit: Int = 90, interval: Double = 1) {
        self.limit = limit
        let thread = Thread { [self] in
            while isOver.wait(timeout: .now() + interval) == .timedOut { look() }
        }
        thread.start()
    }

    /// Ends the thread.
    func end() { isOver.signal() }

    /// Starts watching a run, and returns the number to pass to ``end(_:)``.
    func begin(_ world: SimulationWorld) -> Int {
        state.withLock { state in
            state.last += 1
            state.plays[state.last] = Watched(world: world)
            return state.last
        }
    }

    /// Stops watching a run.
    func end(_ number: Int) { state.withLock { _ = $0.plays.removeValue(forKey: number) } }

    private func look() {
        let late = state.withLock { state -> Watched? in
            for number in state.plays.keys { state.plays[number]?.looks += 1 }
            return state.plays.sorted { $0.key < $1.key }.map(\.value).first { $0.looks >= limit }
        }
        guard let late else { return }
        // The seed is printed first, because reading other properties of the run may also hang.
        let seed = late.world.plan.seed
        say("simulated play: seed \(seed) hangs: it is not over after \(limit) looks; SPOOL_SEED=\(seed) shows it")
        say("its executor has run \(late.world.executor.steps) jobs; the last lines of its log:")
        say(late.world.log.lines.suffix(20).joined(separator: "\n"))
        // The exit is immediate, because an orderly exit might wait for the hanging thread.
        _exit(1)
    }

    private func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
