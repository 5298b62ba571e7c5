import Synchronization

/// Runs tasks one job at a time on the calling thread, in an order that follows from a seed.
///
/// Everything that a simulated run does belongs on it: tasks made with it as their executor preference, and those that
/// they make in turn. Where several jobs could go on, a draw says which. Time is its ``clock``'s: it moves a little with
/// each job, and to the next due sleeper when nothing else is left. It is no place for code that waits for another
/// thread.
package final class SeededExecutor: TaskExecutor {
    /// How a run ended.
    package enum Ending: Sendable, Hashable {
        case finished
        /// Nothing can go on, and nobody sleeps.
        case stuck
        /// So many jobs were not enough.
        case endless
    }

    /// Which of the queued jobs goes on.
    package enum Order: Sendable, CaseIterable {
        /// Any, with equal chances.
        case any
        /// Mostly the one that has waited longest.
        case oldest
        /// Mostly the one that came last.
        case newest
    }

    private struct State {
        var random: SplitMix
        var jobs: [UnownedJob] = []
        var steps = 0
    }

    /// The time that everything in the run goes by.
    package let clock = ManualClock()
    private let order: Order
    private let state: Mutex<State>

    /// An executor whose order follows from `seed`.
    package init(seed: UInt64) {
        var random = SplitMix(seed)
        order = random.pick(Order.allCases)
        state = Mutex(State(random: random))
    }

    /// Jobs that have run.
    package var steps: Int { state.withLock { $0.steps } }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs jobs until `isDone`, or nothing can go on, or `limit` jobs have run.
    ///
    /// To be called from one thread at a time, and from none that a job waits for.
    package func run(limit: Int = .max, until isDone: () -> Bool) -> Ending {
        let executor = asUnownedTaskExecutor()
        var count = 0
        while !isDone() {
            guard count < limit else { return .endless }
            if let (job, pause) = take() {
                count += 1
                if let pause { clock.advance(by: pause) }
                job.runSynchronously(on: executor)
            } else if let deadline = clock.nextDeadline {
                clock.advance(to: deadline)
            } else {
                return .stuck
            }
        }
        return .finished
    }

    /// The job that goes on, and the time that passes before it does.
    private func take() -> (UnownedJob, Duration?)? {
        state.withLock { state in
            let count = state.jobs.count
            guard count > 0 else { return nil }
            state.steps += 1
            let index: Int
            switch order {
            case .any: index = state.random.below(count)
            case .oldest: index = state.random.chance(8) ? state.random.below(count) : 0
            case .newest: index = state.random.chance(4) ? state.random.below(count) : count - 1
            }
            let pause: Duration? = state.random.chance(16) ? .microseconds(state.random.below(400)) : nil
            return (state.jobs.remove(at: index), pause)
        }
    }
}
