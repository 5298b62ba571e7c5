import Synchronization

/// The turns of keys. One task at a time decides about a key, first come, first served. A task that waits holds no
/// thread.
///
/// Turns of different keys are independent. A task may hold one across slow I/O of its key, and must not wait for the
/// turn of another key.
package final class KeyTurns<Key: Hashable & Sendable>: Sendable {
    /// The tasks that wait, by key. Each key in this dictionary is taken.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Creates turns that are all free.
    package init() {}

    /// Waits for the turn, and runs `body`.
    package func run<R: ~Copyable, Failure: Error>(
        _ key: Key, _ body: () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        await take(key)
        defer { end(key) }
        return try await body()
    }

    /// Waits for the turn. End it with ``end(_:)``.
    private func take(_ key: Key) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key, default: []].append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    /// Takes the turn if it is free. End it with ``end(_:)``.
    func tryTake(_ key: Key) -> Bool {
        waiting.withLock { waiting in
            guard waiting[key] == nil else { return false }
            waiting[key] = []
            return true
        }
    }

    /// The number of tasks that wait for a key's turn.
    package func waiterCount(_ key: Key) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }

    /// Passes the turn to the next task.
    func end(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard var queue = waiting[key] else { return nil }
            guard !queue.isEmpty else {
                waiting[key] = nil
                return nil
            }
            let next = queue.removeFirst()
            waiting[key] = queue
            return next
        }
        next?.resume()
    }
}

/// Background work, which is counted so that a close or a test can wait for all of it.
final class BackgroundWork: Sendable {
    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let executor: BlockingExecutor

    init(executor: BlockingExecutor) { self.executor = executor }

    /// Starts work in a lane. It may block.
    func start(in lane: BlockingExecutor.Lane, _ body: @escaping @Sendable () async -> Void) {
        state.withLock { $0.running += 1 }
        Task(executorPreference: executor.executor(for: lane)) {
            await body()
            self.end()
        }
    }

    /// Counts `body`, and the work that it starts, as one. A task that waits for all work therefore never finds it half
    /// done.
    func counting<Value>(_ body: () throws -> Value) rethrows -> Value {
        state.withLock { $0.running += 1 }
        defer { end() }
        return try body()
    }

    private func end() {
        let waiting = state.withLock { state in
            state.running -= 1
            guard state.running == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when no work is in progress.
    func waitUntilIdle() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if state.running > 0 { state.waiting.append(continuation) }
                return state.running == 0
            }
            if isIdle { continuation.resume() }
        }
    }
}

/// Work that is repeated at an interval.
final class RepeatedWork: Sendable {
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Starts the work now, and again after each interval, until it is stopped or `body` returns `false`.
    func start(
        every interval: Duration, _ clock: CacheClock, on executor: BlockingExecutor,
        _ body: @escaping @Sendable () -> Bool
    ) {
        let task = Task(executorPreference: executor.executor(for: .maintenance)) { [clock] in
            repeat {
                guard body() else { return }
            } while (try? await clock.sleep(interval)) != nil  // Cancelled: the store is being closed.
        }
        self.task.withLock { $0 = task }
    }

    /// Stops the repetition.
    func stop() { task.withLock { $0?.cancel() } }
}
