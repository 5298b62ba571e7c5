#if Tools
import SpoolStorage
import Synchronization

/// An executor for calls that another process may block forever, such as those that use a pipe without a reader or
/// writer.
///
/// Such a call cannot be interrupted. Instead, a cancelled task stops waiting for it. If the thread stays blocked, it
/// ends with the process.
final class InterruptibleExecutor: Sendable {
    private let executor: BlockingExecutor

    /// Creates an executor.
    ///
    /// - Parameter name: The name of the thread in a debugger.
    init(name: String) { executor = BlockingExecutor(threadLimit: 1, name: name) }

    /// Runs `body`, and waits for its result until the task is cancelled. A later result is discarded.
    ///
    /// - Throws: The error that `body` throws, or `CancellationError`.
    func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        let call = PendingCall<R>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard call.begin(continuation) else { return continuation.resume(throwing: CancellationError()) }
                Task { [executor] in
                    do {
                        call.end(.success(try await executor.run(body)))
                    } catch {
                        call.end(.failure(error))
                    }
                }
            }
        } onCancel: {
            call.end(.failure(CancellationError()))
        }
    }

    /// The result of one call, for the task that waits for it. The task is resumed once, by the result or by a
    /// cancellation.
    private final class PendingCall<R: Sendable>: Sendable {
        private enum State {
            case new
            case waiting(CheckedContinuation<R, any Error>)
            case over
        }

        private let state = Mutex(State.new)

        /// Returns whether the task must wait. The result is `false` after a cancellation.
        func begin(_ continuation: CheckedContinuation<R, any Error>) -> Bool {
            state.withLock { state in
                guard case .new = state else { return false }
                state = .waiting(continuation)
                return true
            }
        }

        func end(_ result: Result<R, any Error>) {
            let waiting: CheckedContinuation<R, any Error>? = state.withLock { state in
                defer { state = .over }
                if case .waiting(let continuation) = state { return continuation }
                return nil
            }
            waiting?.resume(with: result)
        }
    }
}
#endif
