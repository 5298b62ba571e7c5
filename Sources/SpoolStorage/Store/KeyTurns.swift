import Synchronization

/// The turns of tasks that change the state of a key. Tasks get the turn one at a time, first come, first served. A
/// waiting task does not occupy a thread.
///
/// Turns of different keys are independent. A task may retain the turn of its key during slow I/O. Meanwhile, it may
/// wait only for turns of a later ``TurnKind``, and not for the turn of another key. Debug builds check this.
package final class KeyTurns<Key: Hashable & Sendable>: Sendable {
    private struct Waiter {
        let number: UInt64
        /// The continuation, which is resumed with `true` if the task has the turn.
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        /// The waiting tasks, by key. Each key in this dictionary is taken.
        var waiting: [Key: [Waiter]] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = ClassedMutex(State(), .neverWaits)
    private let kind: TurnKind

    /// Creates turns that are all free.
    package init(_ kind: TurnKind) { self.kind = kind }

    /// Waits for the turn, even if the task is cancelled, and runs `body`.
    ///
    /// Use this method for work that must be done even if its result is no longer needed.
    package func run<R: ~Copyable, Failure: Error>(
        _ key: Key, _ body: () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        recordWait()
        _ = await take(key)
        recordTurn()
        defer {
            recordEnd()
            end(key)
        }
        return try await body()
    }

    /// Waits for the turn, unless the task is cancelled, and runs `body`.
    ///
    /// - Throws: `CancellationError` if the task was cancelled before its turn. Also throws the errors from `body`.
    package func runUnlessCancelled<R: ~Copyable>(_ key: Key, _ body: () async throws -> R) async throws -> R {
        recordWait()
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let isTaken = await withTaskCancellationHandler {
            await take(key, number, isCancellable: true)
        } onCancel: {
            leave(key, number)
        }
        guard isTaken else { throw CancellationError() }
        recordTurn()
        defer {
            recordEnd()
            end(key)
        }
        return try await body()
    }

    private func recordWait() {
        #if DEBUG
        HeldTurns.check(kind)
        #endif
    }

    private func recordTurn() {
        #if DEBUG
        HeldTurns.add(kind)
        #endif
    }

    private func recordEnd() {
        #if DEBUG
        HeldTurns.remove(kind)
        #endif
    }

    /// Waits for the turn. End it with ``end(_:)``.
    ///
    /// - Returns: `false` if the task was cancelled before its turn, in which case it does not have the turn.
    private func take(_ key: Key, _ number: UInt64 = 0, isCancellable: Bool = false) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let isTaken = state.withLock { state -> Bool? in
                guard state.waiting[key] != nil else {
                    state.waiting[key] = []
                    return true
                }
                // If the task is cancelled later, its waiter is in the queue.
                guard !isCancellable || !Task.isCancelled else { return false }
                state.waiting[key, default: []].append(Waiter(number: number, continuation: continuation))
                return nil
            }
            if let isTaken { continuation.resume(returning: isTaken) }
        }
    }

    /// Removes a waiting task from the queue.
    private func leave(_ key: Key, _ number: UInt64) {
        let left = state.withLock { state -> Waiter? in
            guard let place = state.waiting[key]?.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiting[key]?.remove(at: place)
        }
        left?.continuation.resume(returning: false)
    }

    /// Takes the turn if it is free. End it with ``end(_:)``.
    func tryTake(_ key: Key) -> Bool {
        state.withLock { state in
            guard state.waiting[key] == nil else { return false }
            state.waiting[key] = []
            return true
        }
    }

    /// Returns the number of tasks that are waiting for a key's turn.
    package func waiterCount(_ key: Key) -> Int { state.withLock { $0.waiting[key]?.count ?? 0 } }

    /// Passes the turn to the next task.
    func end(_ key: Key) {
        let next = state.withLock { state -> Waiter? in
            guard var queue = state.waiting[key] else { return nil }
            guard !queue.isEmpty else {
                state.waiting[key] = nil
                return nil
            }
            let next = queue.removeFirst()
            state.waiting[key] = queue
            return next
        }
        next?.continuation.resume(returning: true)
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

    /// Starts work, which may block, in a lane.
    func start(in lane: BlockingExecutor.Lane, _ body: @escaping @Sendable () async -> Void) {
        state.withLock { $0.running += 1 }
        Task(executorPreference: executor.executor(for: lane)) {
            await body()
            self.end()
        }
    }

    /// Counts `body`, and the work that it starts, as one unit. A task that waits for all work therefore waits for the
    /// whole unit.
    func counting<Value>(_ body: () throws -> Value) rethrows -> Value {
        state.withLock { $0.running += 1 }
        defer { end() }
        return try body()
    }

    /// Counts `body`, which may suspend, and the work that it starts, as one unit.
    func countingTask<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        state.withLock { $0.running += 1 }
        defer { end() }
        return try await body()
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

    /// Waits until no work is in progress.
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

    /// Runs `body` now, and again after each interval, until the work is stopped or `body` returns `false`.
    func start(
        every interval: Duration, _ clock: CacheClock, on executor: BlockingExecutor,
        _ body: @escaping @Sendable () -> Bool
    ) {
        let task = Task(executorPreference: executor.executor(for: .maintenance)) { [clock] in
            repeat {
                guard body() else { return }
            } while (try? await clock.sleep(interval)) != nil  // If the sleep was cancelled, the store is being closed.
        }
        self.task.withLock { $0 = task }
    }

    /// Stops the repetition.
    func stop() { task.withLock { $0?.cancel() } }
}
