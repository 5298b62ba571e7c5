import SpoolStorage
import Synchronization

/// Runs calls that may block for as long as somebody outside likes: on a pipe that nobody reads, or nobody writes.
///
/// Such a call can't be stopped. A cancel of the task lets go of it instead: its thread stays behind, and ends with the
/// process.
final class Abandonable: Sendable {
    private let executor: BlockingExecutor

    /// - Parameter name: What the thread is called in a debugger.
    init(name: String) { executor = BlockingExecutor(threadLimit: 1, name: name) }

    /// Runs `body`, and waits for it until the task is cancelled; what it does after that nobody hears of.
    ///
    /// - Throws: What `body` throws; `CancellationError`.
    func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        let wait = Wait<R>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard wait.begin(continuation) else { return continuation.resume(throwing: CancellationError()) }
                Task { [executor] in
                    do {
                        wait.end(.success(try await executor.run(body)))
                    } catch {
                        wait.end(.failure(error))
                    }
                }
            }
        } onCancel: {
            wait.end(.failure(CancellationError()))
        }
    }

    /// Who waits for one call: resumed once, by whichever comes first.
    private final class Wait<R: Sendable>: Sendable {
        private enum State {
            case new
            case waiting(CheckedContinuation<R, any Error>)
            case over
        }

        private let state = Mutex(State.new)

        /// Whether there is anything to wait for; false after a cancel.
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
