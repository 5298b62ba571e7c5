import Dispatch
import Foundation
import Synchronization

/// The one home of blocking calls: a few threads of its own, so that a slow disk never holds up a player's event loop
/// or Swift's shared threads.
///
/// First in, first out. Threads start when there is work and no idle one, up to the limit, then stay, asleep, until
/// ``shutdown()`` or deinitialisation. The one that fell asleep last is woken first: its caches, and the memory that it
/// has just given back, are still warm. It orders nothing beyond that: jobs run side by side.
package final class BlockingExecutor: TaskExecutor {
    private let queue: Queue
    /// Runs everything in place of threads of its own, if there is one.
    private let other: (any TaskExecutor)?

    /// Creates an executor; threads come later.
    ///
    /// - Parameters:
    ///   - threadLimit: Threads at most, at least one: how many blocking calls may be in progress at once.
    ///   - name: What the threads are called in a debugger.
    package init(threadLimit: Int = 8, name: String = "spool.blocking") {
        self.queue = Queue(threadLimit: max(1, threadLimit), name: name)
        self.other = nil
    }

    /// Creates an executor that has no threads and hands every job to `executor`: a test's, which runs one at a time.
    package init(running executor: any TaskExecutor) {
        self.queue = Queue(threadLimit: 1, name: "")
        self.other = executor
    }

    deinit { queue.close() }

    /// Runs a blocking call on one of the threads and returns what it returns; the caller waits without blocking.
    ///
    /// Does not look at cancellation: what has begun is finished.
    package func run<R: Sendable>(_ body: @Sendable () throws -> R) async throws -> R {
        try await withTaskExecutorPreference(self) { try await Self.call(body) }
    }

    /// Runs a function that blocks and waits by turns on the threads, so that nothing between the two changes threads.
    ///
    /// While it waits it holds no thread.
    package func runAsync<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
        try await withTaskExecutorPreference(self) { try await callAsync(body) }
    }

    // An own executor is preferred by nonisolated concurrent functions only, not by a closure that inherits an actor.
    @concurrent private static func call<R: Sendable>(_ body: @Sendable () throws -> R) async throws -> R {
        try body()
    }

    @concurrent private func callAsync<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
        // Without a step of its own here, Swift 6.3 leaves the change of threads to the function that is called next,
        // which makes none.
        _ = threadCount
        return try await body()
    }

    /// Lets the threads end when they have done what is queued. Jobs that come later are run all the same.
    package func shutdown() { queue.close() }

    package func enqueue(_ job: consuming ExecutorJob) {
        if let other {
            other.enqueue(job)
        } else {
            queue.add(UnownedJob(job), executor: asUnownedTaskExecutor())
        }
    }

    /// Threads alive at the moment.
    package var threadCount: Int { queue.threadCount }
}

/// The jobs that wait, and the threads that take them; outlives its executor until the last thread has ended.
private final class Queue: Sendable {
    private struct Entry {
        var job: UnownedJob
        var executor: UnownedTaskExecutor
    }

    private struct State {
        var entries: [Entry] = []
        /// Entries before it are done; they are cleared away in bulk.
        var head = 0
        /// What each sleeping thread waits for; the last one fell asleep last.
        var idle: [DispatchSemaphore] = []
        var threads = 0
        var isClosed = false

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

    private let state = Mutex(State())
    private let threadLimit: Int
    private let name: String

    init(threadLimit: Int, name: String) {
        self.threadLimit = threadLimit
        self.name = name
    }

    var threadCount: Int { state.withLock { $0.threads } }

    private enum Hand {
        case wake(DispatchSemaphore)
        case start, none
    }

    func add(_ job: UnownedJob, executor: UnownedTaskExecutor) {
        let hand = state.withLock { state -> Hand in
            state.entries.append(Entry(job: job, executor: executor))
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
            // Set from inside: elsewhere Linux would not tell the system. And not before `start` is over, which only then
            // has noted the thread that the name is for.
            isStarted.wait()
            Thread.current.name = self.name
            self.work()
        }
        thread.start()
        isStarted.signal()
    }

    private enum Step {
        case run(Entry)
        case sleep
        case end
    }

    private func work() {
        // Signalled once for each time that it stands among the idle ones, by whoever takes it out.
        let wake = DispatchSemaphore(value: 0)
        while true {
            let step = state.withLock { state -> Step in
                if let entry = state.takeFirst() { return .run(entry) }
                if state.isClosed {
                    state.threads -= 1
                    return .end
                }
                state.idle.append(wake)
                return .sleep
            }
            switch step {
            case .run(let entry): entry.job.runSynchronously(on: entry.executor)
            case .sleep: wake.wait()
            case .end: return
            }
        }
    }
}
