import Foundation
import SpoolTesting
import Synchronization

/// Ends the process when a play takes longer than any play does, having said which: a call that never returns can't be
/// cancelled, and whoever waits for it would wait in silence.
///
/// It looks once a second of its own, on a thread that is none of Swift's, and counts looks instead of asking a clock: a
/// machine that sleeps, or is too busy to look, is not taken for a play that hangs.
final class PlayWatch: Sendable {
    private struct Watched {
        let world: PlayWorld
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
    ///   - limit: At so many looks at one play the process ends.
    ///   - interval: Seconds from one look to the next.
    init(limit: Int = 90, interval: Double = 1) {
        self.limit = limit
        let thread = Thread { [self] in
            while isOver.wait(timeout: .now() + interval) == .timedOut { look() }
        }
        thread.start()
    }

    /// No play is watched any more, and the thread ends.
    func end() { isOver.signal() }

    /// Watches a play until ``end(_:)``.
    func begin(_ world: PlayWorld) -> Int {
        state.withLock { state in
            state.last += 1
            state.plays[state.last] = Watched(world: world)
            return state.last
        }
    }

    /// The play is over.
    func end(_ number: Int) { state.withLock { _ = $0.plays.removeValue(forKey: number) } }

    private func look() {
        let late = state.withLock { state -> Watched? in
            for number in state.plays.keys { state.plays[number]?.looks += 1 }
            return state.plays.sorted { $0.key < $1.key }.map(\.value).first { $0.looks >= limit }
        }
        guard let late else { return }
        // The seed first: what more is to be said of the play may hang with it.
        let seed = late.world.plan.seed
        say("simulated play: seed \(seed) hangs: it is not over after \(limit) looks; SPOOL_SEED=\(seed) shows it")
        say("its executor has run \(late.world.executor.steps) jobs; the last lines of its log:")
        say(late.world.log.lines.suffix(20).joined(separator: "\n"))
        // Without the end of anything else, which might wait for the thread that hangs.
        _exit(1)
    }

    private func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
