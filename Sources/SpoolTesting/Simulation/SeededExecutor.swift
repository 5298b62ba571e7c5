import Synchronization

/// An executor that runs one job at a time on the calling thread, in an order that a seed determines.
///
/// The executor must run all work of a simulation: tasks that prefer it as their executor, and the tasks that they
/// create. If several jobs can run, one is selected at random. The executor's ``clock`` advances slightly before some
/// jobs, and to the deadline of the next sleeper if no job is left. Do not use the executor for code that waits for
/// another thread.
package final class SeededExecutor: TaskExecutor {
    /// The reason that a run ended.
    package enum Ending: Sendable, Hashable {
        case finished
        /// No job can run, and no task is sleeping.
        case stuck
        /// The maximum number of jobs was reached.
        case endless
    }

    /// The strategy for selecting the next job.
    package enum Order: Sendable, CaseIterable {
        /// Any job, with equal probability.
        case any
        /// Usually the job that has waited longest.
        case oldest
        /// Usually the newest job.
        case newest
    }

    private struct State {
        var random: SplitMix
        var jobs: [UnownedJob] = []
        var steps = 0
    }

    /// The clock of the whole run.
    package let clock = ManualClock()
    private let order: Order
    private let state: Mutex<State>

    /// Creates an executor that runs jobs in an order determined by `seed`.
    package init(seed: UInt64) {
        var random = SplitMix(seed)
        order = random.pick(Order.allCases)
        state = Mutex(State(random: random))
    }

    /// The number of jobs that have run.
    package var steps: Int { state.withLock { $0.steps } }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs jobs until `isDone` returns `true`, no job can run, or `limit` jobs have run. Returns the reason that the
    /// run ended.
    ///
    /// Call this method from one thread at a time, and not from a thread that a job waits for.
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

    /// Removes and returns the next job, with the time by which the clock advances before it, if any.
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

/// A seeded random number generator (SplitMix64; Steele, Lea and Flood, 2014), so that a run can be repeated from its
/// seed.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator whose numbers are determined by `seed`. The numbers for adjacent seeds are unrelated.
    package init(_ seed: UInt64) { state = Self.mix(seed &+ 0x5851_F42D_4C95_7F2D) }

    /// Returns the next 64 bits.
    package mutating func next() -> UInt64 {
        // Without the mixing in `init`, seeds that differ by this constant would produce the same numbers, shifted by
        // one.
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var word = value
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// Returns a number from 0 up to, but not including, `bound`, which must be positive.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// Returns `true` with a probability of 1 in `count`, and never if `count` is 0.
    package mutating func chance(_ count: Int) -> Bool { count > 0 && below(count) == 0 }

    /// Returns one of `choices`, which must not be empty.
    package mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// Returns a new generator, so that the numbers of one part of a run don't affect the numbers of another part.
    package mutating func fork() -> SplitMix { SplitMix(next()) }
}
