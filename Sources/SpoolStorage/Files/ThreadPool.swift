import Dispatch
import Foundation
import Synchronization

/// The jobs that wait, by lane, and the threads that take them; outlives its executor until the last thread has ended.
final class ThreadPool: Sendable {
    private struct Entry {
        var job: UnownedJob
        var executor: UnownedTaskExecutor
    }

    /// First in, first out.
    private struct Queue {
        private var entries: [Entry] = []
        /// Entries before it are done; they are cleared away in bulk.
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
        /// What each sleeping thread waits for; the last one fell asleep last.
        var idle: [DispatchSemaphore] = []
        var threads = 0
        /// Threads that run a job of the last lane.
        var inLastLane = 0
        var isClosed = false
    }

    private let state: Mutex<State>
    private let threadLimit: Int
    /// How many of them may be in the last lane.
    private let lastLaneLimit: Int
    private let name: String

    init(threadLimit: Int, name: String, laneCount: Int) {
        self.state = Mutex(State(lanes: Array(repeating: Queue(), count: laneCount)))
        self.threadLimit = threadLimit
        self.lastLaneLimit = max(1, threadLimit - 1)
        self.name = name
    }

    /// Threads alive at the moment.
    var count: Int { state.withLock { $0.threads } }

    private enum Hand {
        case wake(DispatchSemaphore)
        case start, none
    }

    func add(_ job: UnownedJob, executor: UnownedTaskExecutor, lane: Int) {
        let hand = state.withLock { state -> Hand in
            state.lanes[lane].append(Entry(job: job, executor: executor))
            // Whoever ends a job of the last lane takes the next one.
            if lane == state.lanes.count - 1, state.inLastLane >= lastLaneLimit { return .none }
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

    /// Starts threads before there is work, until so many are alive.
    func prepare(_ count: Int) {
        let missing = state.withLock { state -> Int in
            guard !state.isClosed else { return 0 }
            let missing = max(0, min(count, threadLimit) - state.threads)
            state.threads += missing
            return missing
        }
        for _ in 0..<missing { startThread() }
    }

    /// Lets the threads end when they have done what is queued.
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
        // A player waits for most of what they do; the rest waits in its lane.
        thread.qualityOfService = .userInitiated
        thread.start()
        isStarted.signal()
    }

    private enum Step {
        case run(Entry, isLastLane: Bool)
        case sleep
        case end
    }

    private func work() {
        // Signalled once for each time that it stands among the idle ones, by whoever takes it out.
        let wake = DispatchSemaphore(value: 0)
        var wasLastLane = false
        while true {
            let step = state.withLock { state -> Step in
                if wasLastLane { state.inLastLane -= 1 }
                wasLastLane = false
                for lane in state.lanes.indices {
                    let isLast = lane == state.lanes.count - 1
                    if isLast, state.inLastLane >= lastLaneLimit { break }
                    guard let entry = state.lanes[lane].takeFirst() else { continue }
                    if isLast { state.inLastLane += 1 }
                    return .run(entry, isLastLane: isLast)
                }
                if state.isClosed {
                    state.threads -= 1
                    return .end
                }
                state.idle.append(wake)
                return .sleep
            }
            switch step {
            case .run(let entry, let isLastLane):
                wasLastLane = isLastLane
                entry.job.runSynchronously(on: entry.executor)
            case .sleep: wake.wait()
            case .end: return
            }
        }
    }
}
