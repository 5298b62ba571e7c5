import Foundation
import Synchronization
import Testing

@testable import SpoolStorage

@Suite("BlockingExecutor", .timeLimit(.minutes(10)))
struct BlockingExecutorTests {
    @Test("A call runs on a thread of the executor, and returns its result or its error")
    func runs() async throws {
        let executor = BlockingExecutor(threadLimit: 1, name: "spool.test")
        #expect(executor.threadCount == 0)
        #expect(await executor.run { Thread.current.name } == "spool.test")
        await #expect(throws: CacheError.self) { try await executor.run { throw CacheError(.storage, "no") } }
        #expect(executor.threadCount == 1)
    }

    @Test("Threads can be started in advance, up to the thread limit, and run later calls")
    func prepared() async throws {
        let executor = BlockingExecutor(threadLimit: 3)
        executor.prepareThreads(2)
        #expect(executor.threadCount == 2)
        executor.prepareThreads(1)
        #expect(executor.threadCount == 2)
        executor.prepareThreads(10)
        #expect(executor.threadCount == 3)
        #expect(await executor.run { 7 } == 7)
        #expect(executor.threadCount == 3)
        executor.shutdown()
        try await eventually { executor.threadCount == 0 }
        executor.prepareThreads(2)
        #expect(executor.threadCount == 0)
    }

    @Test("A call from the main actor does not run on the main thread")
    @MainActor
    func fromMainActor() async throws {
        let executor = BlockingExecutor()
        #expect(await executor.run { Thread.isMainThread } == false)
    }

    @Test("The number of concurrent calls reaches the thread limit, but does not exceed it")
    func bounded() async throws {
        let executor = BlockingExecutor(threadLimit: 3)
        let together = Meeting(size: 3)
        let inside = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<30 {
                group.addTask {
                    await executor.run {
                        inside.add(1)
                        // The call returns when three calls are running. With fewer threads it would hang, and with
                        // more, the maximum would exceed three.
                        together.meet()
                        inside.add(-1)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(inside.most == 3)
        #expect(executor.threadCount == 3)
    }

    @Test("Calls in one lane run in first-in, first-out order")
    func order() async throws {
        let executor = BlockingExecutor(threadLimit: 1)
        let order = Order()
        let gate = DispatchSemaphore(value: 0)
        let isInside = DispatchSemaphore(value: 0)
        let first = Task(executorPreference: executor.executor(for: .playback)) {
            isInside.signal()
            Self.wait(gate)
        }
        Self.wait(isInside)
        // The only thread is busy, so these tasks wait in the order in which they were created.
        let tasks = (0..<2000).map { number in
            Task(executorPreference: executor.executor(for: .playback)) { order.append(number) }
        }
        gate.signal()
        await first.value
        for task in tasks { await task.value }
        #expect(order.numbers == Array(0..<2000))
    }

    /// Blocks the thread until the semaphore is signaled. Async functions must not call `DispatchSemaphore.wait()`
    /// directly.
    private static func wait(_ semaphore: DispatchSemaphore) { semaphore.wait() }

    @Test("Jobs run in the order of their lanes, and maintenance jobs leave one thread for the other lanes")
    func lanes() async throws {
        let executor = BlockingExecutor(threadLimit: 2)
        let order = Order()
        let (gate, isInside) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let long = (0..<4).map { _ in
            Task(executorPreference: executor.executor(for: .maintenance)) {
                isInside.signal()
                Self.wait(gate)
            }
        }
        Self.wait(isInside)
        // Three jobs wait for the first one, but the other thread is free.
        #expect(await executor.run { isInside.wait(timeout: .now()) } == .timedOut)
        let otherGate = DispatchSemaphore(value: 0)
        let other = Task(executorPreference: executor.executor(for: .playback)) {
            isInside.signal()
            Self.wait(otherGate)
        }
        Self.wait(isInside)
        let tasks = BlockingExecutor.Lane.allCases.reversed().flatMap { lane in
            (0..<10).map { _ in
                (lane, Task(executorPreference: executor.executor(for: lane)) { order.append(lane.rawValue) })
            }
        }
        // Maintenance occupies one thread, so the other one runs all other jobs in the order of their lanes.
        otherGate.signal()
        for (lane, task) in tasks where lane != .maintenance { await task.value }
        #expect(order.numbers == order.numbers.sorted())
        #expect(order.numbers.count == 30)
        for _ in long { gate.signal() }
        for task in tasks.map(\.1) + long + [other] { await task.value }
        #expect(order.numbers.count == 40)
    }

    @Test("If a base executor is given, the jobs of all lanes run on this executor")
    func overAnother() async throws {
        let base = BlockingExecutor(threadLimit: 1, name: "spool.base")
        let executor = BlockingExecutor(running: base.executor(for: .playback))
        for lane in BlockingExecutor.Lane.allCases {
            #expect(await executor.run(in: lane) { Thread.current.name } == "spool.base")
        }
        #expect(executor.threadCount == 0)
    }

    @Test("Threads end on shutdown, and later calls still run")
    func shutdown() async throws {
        let executor = BlockingExecutor(threadLimit: 4)
        await executor.run {}
        executor.shutdown()
        #expect(await executor.run { 7 } == 7)
        try await eventually { executor.threadCount == 0 }
    }

    @Test("Threads end when the executor is released")
    func deinitialisation() async throws {
        let ended = Counter()
        var executor: BlockingExecutor? = BlockingExecutor(threadLimit: 1)
        await executor?.run {
            Thread.current.threadDictionary["token"] = Token { ended.add(1) }
        }
        #expect(ended.most == 0)
        executor = nil
        try await eventually { ended.most == 1 }
    }

    /// Yields until `condition` holds, or until the suite's time limit is reached.
    private func eventually(_ condition: () -> Bool) async throws {
        while !condition() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    @Test("Thousands of calls from different tasks all return")
    func many() async throws {
        let executor = BlockingExecutor()
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<5000 { group.addTask { await executor.run { number } } }
            return try await group.reduce(0, +)
        }
        #expect(sum == 5000 * 4999 / 2)
    }
}

/// The current and the maximum number of running calls.
private final class Counter: Sendable {
    private let state = Mutex((now: 0, most: 0))
    var most: Int { state.withLock { $0.most } }
    func add(_ change: Int) { state.withLock { $0 = ($0.now + change, max($0.most, $0.now + change)) } }
}

/// The numbers of the calls, in the order in which they ran.
private final class Order: Sendable {
    private let state = Mutex<[Int]>([])
    var numbers: [Int] { state.withLock { $0 } }
    func append(_ number: Int) { state.withLock { $0.append(number) } }
}

/// A barrier that releases threads in groups of a fixed size.
private final class Meeting: Sendable {
    private let condition = NSCondition()
    private let arrived = Mutex(0)
    private let size: Int

    init(size: Int) { self.size = size }

    func meet() {
        condition.lock()
        defer { condition.unlock() }
        let number = arrived.withLock { count in
            count += 1
            return count
        }
        let due = (number + size - 1) / size * size
        if number == due { condition.broadcast() }
        while arrived.withLock({ $0 }) < due { condition.wait() }
    }
}

/// An object that calls a closure on deinitialization.
private final class Token: Sendable {
    private let onEnd: @Sendable () -> Void
    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
}
