import Dispatch
import Foundation
import Synchronization

/// The executor of all blocking calls. It has its own threads, so that a slow disk never delays a player's event loop
/// or Swift's shared threads.
///
/// Jobs wait in ``Lane``s and are taken strictly by lane, first in, first out within each. A lane leaves one thread
/// free for each lane above it (``LaneLimits``). Background work therefore never takes the thread that a player waits
/// for. Jobs run concurrently, so there is no other order.
///
/// A thread starts when there is work and no thread is idle, up to the limit. Threads then sleep until ``shutdown()``
/// or deinitialization. The thread that fell asleep last is woken first, because its caches and its freed memory are
/// still warm.
package final class BlockingExecutor: Sendable {
    /// The purpose of a job. The first lane is served first.
    package enum Lane: Int, Sendable, CaseIterable {
        /// A player waits for the job.
        case playback
        /// Bytes are written, and get checksums.
        case storing
        /// No player waits, for example while the catalog is written, or media is evicted.
        case background
        /// Long work on all stored media: checks, exports, sweeps.
        case maintenance
    }

    private let threads: ThreadPool?
    private let lanes: [any TaskExecutor]

    /// Creates an executor with its own threads, which start later.
    ///
    /// - Parameters:
    ///   - threadLimit: The maximum number of threads, at least one, and thus of concurrent blocking calls.
    ///   - name: The name of the threads in a debugger.
    package init(threadLimit: Int = 8, name: String = "spool.blocking") {
        let threads = ThreadPool(threadLimit: max(1, threadLimit), name: name, laneCount: Lane.allCases.count)
        self.threads = threads
        self.lanes = Lane.allCases.map { LaneExecutor(lane: $0.rawValue, threads: threads) }
    }

    /// Creates an executor that runs everything on `executor`, for a simulation on one thread.
    package init(running executor: any TaskExecutor) {
        self.threads = nil
        self.lanes = Lane.allCases.map { _ in executor }
    }

    deinit { threads?.close() }

    /// Returns the lane as an executor that a task can prefer.
    package func executor(for lane: Lane) -> any TaskExecutor { lanes[lane.rawValue] }

    /// Runs a blocking call on one of the threads, and returns its result. The caller waits without blocking.
    ///
    /// It ignores cancellation. A call that has started is finished.
    package func run<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await Self.call(body)
        }
    }

    /// Runs a function that blocks and waits alternately on the threads, so that it does not change threads in between.
    ///
    /// It holds no thread while it waits.
    package func runAsync<R: Sendable, Failure: Error>(
        in lane: Lane = .playback, _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        try await withTaskExecutorPreference(lanes[lane.rawValue]) { () async throws(Failure) -> R in
            try await callAsync(body)
        }
    }

    // Only a nonisolated concurrent function prefers the base executor. A closure that inherits an actor does not.
    @concurrent private static func call<R: Sendable, Failure: Error>(
        _ body: @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        try body()
    }

    @concurrent private func callAsync<R: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        // Without a statement here, Swift 6.3 leaves the change of threads to the function that is called next, which
        // makes none.
        _ = threadCount
        return try await body()
    }

    /// Starts threads until there are `count`. The first playback needs some, and starting a thread takes longer than
    /// its work.
    package func prepareThreads(_ count: Int) { threads?.prepare(count) }

    /// Ends the threads after the queued jobs. Later jobs still run.
    package func shutdown() { threads?.close() }

    /// The number of threads.
    package var threadCount: Int { threads?.count ?? 0 }
}

/// A lane that tasks can prefer.
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

/// The number of threads that each lane may use. It is a pure value, so that tests need no threads.
///
/// A lane and all lanes below it together leave one thread free for each lane above. With eight threads and four lanes,
/// all lanes below the first use at most seven threads. Those below the second use six, and the last one uses five. A
/// pool with fewer threads than lanes leaves one thread free of the last lane, if it has two.
struct LaneLimits: Sendable {
    /// The maximum number of jobs that run in a lane and in all lanes below it, by lane.
    let limits: [Int]
    /// The number of jobs that run in a lane and in all lanes below it, by lane.
    private(set) var running: [Int]

    init(threadLimit: Int, laneCount: Int) {
        limits = (0..<laneCount).map { lane in
            if threadLimit >= laneCount { return threadLimit - lane }
            return lane == laneCount - 1 ? max(1, threadLimit - 1) : threadLimit
        }
        running = Array(repeating: 0, count: laneCount)
    }

    /// Whether a job of the lane may start.
    func allows(_ lane: Int) -> Bool { (0...lane).allSatisfy { running[$0] < limits[$0] } }

    mutating func start(_ lane: Int) { for above in 0...lane { running[above] += 1 } }

    mutating func end(_ lane: Int) { for above in 0...lane { running[above] -= 1 } }
}

/// The waiting jobs by lane, and the threads that take them. It lives until the last thread has ended.
final class ThreadPool: Sendable {
    private struct Entry {
        var job: UnownedJob
        var executor: UnownedTaskExecutor
    }

    /// First in, first out.
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
        /// The semaphores of sleeping threads. The last thread fell asleep last.
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

    /// Starts threads before there is work, until there are `count`.
    func prepare(_ count: Int) {
        let missing = state.withLock { state -> Int in
            guard !state.isClosed else { return 0 }
            let missing = max(0, min(count, threadLimit) - state.threads)
            state.threads += missing
            return missing
        }
        for _ in 0..<missing { startThread() }
    }

    /// Ends the threads after the queued jobs.
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
            // The name is set on the thread itself, because Linux ignores it elsewhere. It is set only after `start`
            // has returned, because the thread is not known before.
            isStarted.wait()
            Thread.current.name = self.name
            self.work()
        }
        // A player is waiting for most of their jobs. The other jobs wait in their lanes.
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
        // Signaled once each time that it is removed from the idle ones.
        let wake = DispatchSemaphore(value: 0)
        var last: Int?
        while true {
            let step = state.withLock { state -> Step in
                if let last { state.limits.end(last) }
                last = nil
                // If a lane has reached its limit, so have the lanes below it.
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
