import Dispatch
import Foundation
import Synchronization

/// The executor for all blocking calls. It has its own threads, so a slow disk never delays a player's event loop or
/// Swift's shared threads.
///
/// Jobs wait in ``Lane``s and are taken strictly by lane, and within each lane in first-in, first-out order. Each lane
/// leaves one thread free for each lane above it (``LaneLimits``). Background work therefore never occupies the thread
/// that a player needs. Jobs run concurrently, so no other order is guaranteed.
///
/// Up to the limit, a thread starts if there is work and no thread is idle. Idle threads sleep until there is more
/// work, or until ``shutdown()`` or deinitialization. The thread that fell asleep last is woken first, because its
/// caches and its freed memory are still warm.
package final class BlockingExecutor: Sendable {
    /// The purpose of a job. Jobs in earlier lanes run first.
    package enum Lane: Int, Sendable, CaseIterable {
        /// A player is waiting for the job.
        case playback
        /// The job writes bytes and computes their checksums.
        case storing
        /// No player is waiting for the job, for example a write to the catalog or an eviction.
        case background
        /// The job is a long operation on stored media, such as a check, an export or a sweep.
        case maintenance
    }

    private let threads: ThreadPool?
    private let lanes: [any TaskExecutor]

    /// Creates an executor with its own threads, which start when there is work.
    ///
    /// - Parameters:
    ///   - threadLimit: The maximum number of threads, and therefore of concurrent blocking calls, at least one.
    ///   - name: The name of the threads in a debugger.
    package init(threadLimit: Int = 8, name: String = "spool.blocking") {
        let threads = ThreadPool(threadLimit: max(1, threadLimit), name: name, laneCount: Lane.allCases.count)
        self.threads = threads
        self.lanes = Lane.allCases.map { LaneExecutor(lane: $0.rawValue, threads: threads) }
    }

    /// Creates an executor that runs all jobs on `executor`, for a simulation on one thread.
    package init(running executor: any TaskExecutor) {
        self.threads = nil
        self.lanes = Lane.allCases.map { _ in executor }
    }

    deinit { threads?.close() }

    /// Returns the lane as an executor that a task can prefer.
    package func executor(for lane: Lane) -> any TaskExecutor { lanes[lane.rawValue] }

    /// Runs a blocking call on one of the threads, and returns its result. The caller waits without blocking.
    ///
    /// The method ignores cancellation, and the call always runs to its end.
    package func run<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await Self.call(body)
        }
    }

    /// Runs an async function, which alternately blocks and suspends, on the executor's threads, so that it does not
    /// switch to other threads in between.
    ///
    /// The function does not occupy a thread while it is suspended.
    package func runAsync<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await callAsync(body)
        }
    }

    // Only a nonisolated concurrent function runs on the preferred executor of its task. A closure that inherits the
    // isolation of an actor does not.
    @concurrent private static func call<R: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try body()
    }

    @concurrent private func callAsync<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        // Without a statement before the call, Swift 6.3 defers the switch to another thread to `body`, which does not
        // perform it.
        _ = threadCount
        return try await body()
    }

    /// Starts threads until there are `count`. The first playback needs some threads, and starting a thread takes
    /// longer than the work itself.
    package func prepareThreads(_ count: Int) { threads?.prepare(count) }

    /// Ends the threads after the queued jobs have run. Later jobs still run.
    package func shutdown() { threads?.close() }

    /// The number of threads.
    package var threadCount: Int { threads?.count ?? 0 }
}

/// An executor for one lane, which tasks can prefer.
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

/// The number of threads that each lane may use. This type is a pure value, so that it can be tested without threads.
///
/// A lane and all lanes below it together leave one thread free for each lane above. For example, if there are eight
/// threads and four lanes, all lanes below the first use at most seven threads. Those below the second use at most six,
/// and the last one at most five. If a pool has at least two threads, but fewer threads than lanes, one thread stays
/// free of jobs from the last lane.
struct LaneLimits: Sendable {
    /// For each lane, the maximum number of jobs that may run in it and in all lanes below it.
    let limits: [Int]
    /// For each lane, the number of running jobs in it and in all lanes below it.
    private(set) var running: [Int]

    init(threadLimit: Int, laneCount: Int) {
        limits = (0..<laneCount).map { lane in
            if threadLimit >= laneCount { return threadLimit - lane }
            return lane == laneCount - 1 ? max(1, threadLimit - 1) : threadLimit
        }
        running = Array(repeating: 0, count: laneCount)
    }

    /// Returns whether a job in the lane may start.
    func allows(_ lane: Int) -> Bool { (0...lane).allSatisfy { running[$0] < limits[$0] } }

    mutating func start(_ lane: Int) { for above in 0...lane { running[above] += 1 } }

    mutating func end(_ lane: Int) { for above in 0...lane { running[above] -= 1 } }
}

/// The waiting jobs of each lane, and the threads that run them. The pool exists until the last thread has ended.
final class ThreadPool: Sendable {
    private struct Entry {
        var job: UnownedJob
        var executor: UnownedTaskExecutor
    }

    /// A first-in, first-out queue.
    private struct Queue {
        private var entries: [Entry] = []
        /// The index of the first entry. The entries before it are removed in bulk.
        private var head = 0

        mutating func append(_ entry: Entry) { entries.append(entry) }

        mutating func takeFirst() -> Entry? {
            guard head < entries.count else { return nil }
            defer {
                head += 1
                if head == entries.count {
                    entries.removeAll(keepingCapacity: head < 1024)
                    head = 0
                } else if head >= 1024 {
                    entries.removeFirst(head)
                    head = 0
                }
            }
            return entries[head]
        }
    }

    private struct State {
        var lanes: [Queue]
        /// The semaphores of sleeping threads, in the order in which they fell asleep.
        var idle: [DispatchSemaphore] = []
        var threads = 0
        var limits: LaneLimits
        var isClosed = false
    }

    private let state: Mutex<State>
    private let threadLimit: Int
    private let name: String

    init(threadLimit: Int, name: String, laneCount: Int) {
        self.state = Mutex(
            State(
                lanes: Array(repeating: Queue(), count: laneCount),
                limits: LaneLimits(threadLimit: threadLimit, laneCount: laneCount)))
        self.threadLimit = threadLimit
        self.name = name
    }

    /// The number of threads.
    var count: Int { state.withLock { $0.threads } }

    private enum Hand {
        case wake(DispatchSemaphore)
        case start, none
    }

    func add(_ job: UnownedJob, executor: UnownedTaskExecutor, lane: Int) {
        let hand = state.withLock { state -> Hand in
            state.lanes[lane].append(Entry(job: job, executor: executor))
            // If a limit is reached, a thread takes the job after it has finished another one.
            guard state.limits.allows(lane) else { return .none }
            if let sleeper = state.idle.popLast() { return .wake(sleeper) }
            guard state.threads < threadLimit else { return .none }
            state.threads += 1
            return .start
        }
        switch hand {
        case .wake(let sleeper): sleeper.signal()
        case .start: startThread()
        case .none: break
        }
    }

    /// Starts threads in advance, until there are `count`.
    func prepare(_ count: Int) {
        let missing = state.withLock { state -> Int in
            guard !state.isClosed else { return 0 }
            let missing = max(0, min(count, threadLimit) - state.threads)
            state.threads += missing
            return missing
        }
        for _ in 0..<missing { startThread() }
    }

    /// Ends the threads after the queued jobs have run.
    func close() {
        let sleeping = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        for sleeper in sleeping { sleeper.signal() }
    }

    private func startThread() {
        let isStarted = DispatchSemaphore(value: 0)
        let thread = Thread {
            // The thread sets its own name, because Linux ignores a name that is set from another thread. It waits
            // until `start` has returned, because the thread does not exist earlier.
            isStarted.wait()
            Thread.current.name = self.name
            self.work()
        }
        // Players wait for most of the jobs. Other jobs have a lower priority because of their lanes.
        thread.qualityOfService = .userInitiated
        thread.start()
        isStarted.signal()
    }

    private enum Step {
        case run(Entry, lane: Int)
        case sleep
        case end
    }

    private func work() {
        // The semaphore is signaled once each time it is removed from `idle`.
        let wake = DispatchSemaphore(value: 0)
        var last: Int?
        while true {
            let step = state.withLock { state -> Step in
                if let last { state.limits.end(last) }
                last = nil
                // If a lane has reached its limit, the lanes below it have, too.
                for lane in state.lanes.indices {
                    guard state.limits.allows(lane) else { break }
                    guard let entry = state.lanes[lane].takeFirst() else { continue }
                    state.limits.start(lane)
                    return .run(entry, lane: lane)
                }
                if state.isClosed {
                    state.threads -= 1
                    return .end
                }
                state.idle.append(wake)
                return .sleep
            }
            switch step {
            case .run(let entry, let lane):
                last = lane
                entry.job.runSynchronously(on: entry.executor)
            case .sleep: wake.wait()
            case .end: return
            }
        }
    }
}
