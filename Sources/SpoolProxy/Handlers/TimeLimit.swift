#if Proxy
import Synchronization

/// Functions that run operations with a time limit.
enum TimeLimit {
    /// The outcome of an operation with a time limit.
    enum Outcome<Value: Sendable>: Sendable {
        case value(Value)
        /// The time limit has been exceeded, and the operation continues in this task.
        case late(Task<Value, any Error>)
    }

    /// Starts an operation and waits for it, for at most `limit`.
    ///
    /// The method starts two tasks: one for the operation, and one for a timer that ends with the wait.
    ///
    /// - Throws: Any error from the operation. If the waiting task is cancelled, the operation is cancelled as well.
    static func run<Value: Sendable>(
        within limit: Duration, on clock: any Clock<Duration>, executor: (any TaskExecutor)? = nil,
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Outcome<Value> {
        let wait = Wait<Value?>()
        let task = Task(executorPreference: executor) {
            do {
                let value = try await operation()
                wait.end(.success(value))
                return value
            } catch {
                wait.end(.failure(error))
                throw error
            }
        }
        let timer = Task {
            // The sleep is cancelled when the operation ends.
            guard (try? await clock.sleep(for: limit)) != nil else { return }
            wait.end(.success(nil))
        }
        defer { timer.cancel() }
        let value = try await withTaskCancellationHandler {
            try await wait.value()
        } onCancel: {
            task.cancel()
        }
        guard let value else { return .late(task) }
        return .value(value)
    }

    /// Runs an operation and cancels it after `limit`.
    ///
    /// - Returns: The value of the operation, or `nil` if it was cancelled.
    /// - Throws: Any error from the operation. If the waiting task is cancelled, the operation is cancelled as well.
    static func value<Value: Sendable>(
        within limit: Duration, on clock: any Clock<Duration>, executor: (any TaskExecutor)? = nil,
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        switch try await run(within: limit, on: clock, executor: executor, operation) {
        case .value(let value): return value
        case .late(let task):
            task.cancel()
            return nil
        }
    }

    /// A result that is set once, and the one task that waits for it.
    private final class Wait<Value: Sendable>: Sendable {
        private enum State {
            case open
            case waiting(CheckedContinuation<Value, any Error>)
            case ended(Result<Value, any Error>)
        }

        private let state = Mutex(State.open)

        /// Sets the result. Later results are ignored.
        func end(_ result: Result<Value, any Error>) {
            let waiter = state.withLock { state -> CheckedContinuation<Value, any Error>? in
                switch state {
                case .open:
                    state = .ended(result)
                    return nil
                case .waiting(let waiter):
                    state = .ended(result)
                    return waiter
                case .ended: return nil
                }
            }
            waiter?.resume(with: result)
        }

        func value() async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Value, any Error>? in
                    if case .ended(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        }
    }
}
#endif
