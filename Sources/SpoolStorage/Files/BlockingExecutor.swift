import Synchronization

/// The one home of blocking calls: a few threads of its own, so that a slow disk never holds up a player's event loop
/// or Swift's shared threads.
///
/// Jobs stand in ``Lane``s and are taken strictly by lane, first in, first out within each; one thread, if there are
/// two, is never taken by the lowest. It orders nothing beyond that: jobs run side by side. Threads start when there is work and no
/// idle one, up to the limit, then stay, asleep, until ``shutdown()`` or deinitialisation. The one that fell asleep last
/// is woken first: its caches, and the memory that it has just given back, are still warm.
package final class BlockingExecutor: Sendable {
    /// What a job is for; the first goes first.
    package enum Lane: Int, Sendable, CaseIterable {
        /// A player waits for it.
        case playback
        /// Bytes are written and sealed.
        case landing
        /// Nobody waits: writing down, evicting, tidying.
        case background
        /// Long work on all that is stored: checking, exporting, sweeping. Leaves one thread to the others.
        case maintenance
    }

    private let threads: ThreadPool?
    private let lanes: [any TaskExecutor]

    /// Creates an executor with threads of its own; they come later.
    ///
    /// - Parameters:
    ///   - threadLimit: Threads at most, at least one: how many blocking calls may be in progress at once.
    ///   - name: What the threads are called in a debugger.
    package init(threadLimit: Int = 8, name: String = "spool.blocking") {
        let threads = ThreadPool(threadLimit: max(1, threadLimit), name: name, laneCount: Lane.allCases.count)
        self.threads = threads
        self.lanes = Lane.allCases.map { LaneExecutor(lane: $0.rawValue, threads: threads) }
    }

    /// Has everything run on `executor` instead, as a simulation on one thread wants it.
    package init(running executor: any TaskExecutor) {
        self.threads = nil
        self.lanes = Lane.allCases.map { _ in executor }
    }

    deinit { threads?.close() }

    /// The lane as what a task can prefer to run on.
    package func executor(for lane: Lane) -> any TaskExecutor { lanes[lane.rawValue] }

    /// Runs a blocking call on one of the threads and returns what it returns; the caller waits without blocking.
    ///
    /// Does not look at cancellation: what has begun is finished.
    package func run<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await Self.call(body)
        }
    }

    /// Runs a function that blocks and waits by turns on the threads, so that nothing between the two changes threads.
    ///
    /// While it waits it holds no thread.
    package func runAsync<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await callAsync(body)
        }
    }

    // An own executor is preferred by nonisolated concurrent functions only, not by a closure that inherits an actor.
    @concurrent private static func call<R: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try body()
    }

    @concurrent private func callAsync<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        // Without a step of its own here, Swift 6.3 leaves the change of threads to the function that is called next,
        // which makes none.
        _ = threadCount
        return try await body()
    }

    /// Starts threads until so many are alive: a first play needs some, and to start one takes longer than its work there.
    package func prepareThreads(_ count: Int) { threads?.prepare(count) }

    /// Lets the threads end when they have done what is queued. Jobs that come later are run all the same.
    package func shutdown() { threads?.close() }

    /// Threads alive at the moment.
    package var threadCount: Int { threads?.count ?? 0 }
}

/// One lane, for tasks to prefer.
private final class LaneExecutor: TaskExecutor {
    private let lane: Int
    private let threads: ThreadPool

    init(lane: Int, threads: ThreadPool) {
        self.lane = lane
        self.threads = threads
    }

    func enqueue(_ job: consuming ExecutorJob) {
        threads.add(UnownedJob(job), executor: asUnownedTaskExecutor(), lane: lane)
    }
}
