import Synchronization

/// The current waits for an app or an origin. A wait may take any amount of time, so other callers can end it.
final class CancellableWaits: Sendable {
    private struct State {
        var turn: UInt64 = 0
        var tasks: [Int: @Sendable () -> Void] = [:]
        var last = 0
    }

    private let state = Mutex(State())

    /// The number of times that all waits have been ended.
    var turn: UInt64 { state.withLock { $0.turn } }

    /// Ends the current waits, and all waits that still start in this turn.
    func end() {
        let cancels = state.withLock { state in
            state.turn += 1
            defer { state.tasks = [:] }
            return state.tasks.sorted { $0.key < $1.key }
        }
        for (_, cancel) in cancels { cancel() }
    }

    /// Runs `body` in a separate task, and waits for it.
    ///
    /// - Parameter turn: The turn in which the caller decided to wait.
    /// - Throws: The error from `body`; `CancellationError` if the waits were ended, or the waiting task is cancelled.
    func run<R: Sendable>(
        _ turn: UInt64, on executor: any TaskExecutor, _ body: @escaping @Sendable () async throws -> R
    ) async throws -> R {
        let task = Task(executorPreference: executor, operation: body)
        let number = state.withLock { state -> Int? in
            guard state.turn == turn else { return nil }
            state.last += 1
            state.tasks[state.last] = { task.cancel() }
            return state.last
        }
        if number == nil { task.cancel() }
        defer { if let number { state.withLock { $0.tasks[number] = nil } } }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}
