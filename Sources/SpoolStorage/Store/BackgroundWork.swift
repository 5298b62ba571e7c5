import Synchronization

/// Work that nobody waits for, counted, so that whoever closes or tests can wait for all of it.
final class BackgroundWork: Sendable {
    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let executor: BlockingExecutor

    init(executor: BlockingExecutor) { self.executor = executor }

    /// Begins work in a lane; it may block.
    func start(in lane: BlockingExecutor.Lane, _ body: @escaping @Sendable () async -> Void) {
        state.withLock { $0.running += 1 }
        Task(executorPreference: executor.executor(for: lane)) {
            await body()
            self.end()
        }
    }

    /// Counts what is done here, and what that starts, as one: whoever waits for all of it meets no half-done change.
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

    /// Returns when none is under way.
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
