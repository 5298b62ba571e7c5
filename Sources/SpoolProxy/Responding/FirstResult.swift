#if Proxy
import Synchronization

/// Waits for what a task brings, but not longer than a time.
enum FirstResult {
    /// The task's value; nil if it has not come within `limit`, and then the task goes on.
    ///
    /// - Throws: What the task throws; if the waiting task is cancelled, the other one is, too.
    static func value<Value: Sendable>(
        of task: Task<Value, any Error>, within limit: Duration, on clock: any Clock<Duration>
    ) async throws -> Value? {
        let race = Race<Value?>()
        let timer = Task {
            // Cancelled where the value has come: then nobody waits for it.
            guard (try? await clock.sleep(for: limit)) != nil else { return }
            race.end(.success(nil))
        }
        Task { race.end(await task.result.map { Optional($0) }) }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await race.value()
        } onCancel: {
            task.cancel()
        }
    }

    /// What is decided once, by whoever comes first.
    private final class Race<Value: Sendable>: Sendable {
        private enum State {
            case open
            case waiting(CheckedContinuation<Value, any Error>)
            case decided(Result<Value, any Error>)
        }

        private let state = Mutex(State.open)

        func end(_ result: Result<Value, any Error>) {
            let waiter = state.withLock { state -> CheckedContinuation<Value, any Error>? in
                defer { if case .decided = state {} else { state = .decided(result) } }
                if case .waiting(let waiter) = state { return waiter }
                return nil
            }
            waiter?.resume(with: result)
        }

        func value() async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Value, any Error>? in
                    if case .decided(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        }
    }
}
#endif
