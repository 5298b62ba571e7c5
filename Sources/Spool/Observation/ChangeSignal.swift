import Synchronization

/// A signal that wakes the tasks waiting for a change. Several changes while no task waits are treated as one change.
final class ChangeSignal: Sendable {
    private struct State {
        var version: UInt64 = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
        var isFinished = false
    }

    private let state = Mutex(State())

    /// A number that increases with each change.
    var version: UInt64 { state.withLock { $0.version } }

    /// Reports a change.
    func change() { wake { $0.version += 1 } }

    /// Reports that no more changes follow.
    func finish() { wake { $0.isFinished = true } }

    private func wake(_ update: (inout State) -> Void) {
        let waiters = state.withLock { state in
            update(&state)
            defer { state.waiters.removeAll() }
            return state.waiters.sorted { $0.key < $1.key }
        }
        for (_, waiter) in waiters { waiter.resume() }
    }

    /// Waits until the version is greater than `version`.
    ///
    /// - Returns: `false` if no more changes follow, or the task is cancelled.
    func wait(beyond version: UInt64) async -> Bool {
        while true {
            if Task.isCancelled { return false }
            let (hasChanged, isFinished) = state.withLock { ($0.version > version, $0.isFinished) }
            if hasChanged || isFinished { return hasChanged }
            await park(beyond: version)
        }
    }

    private func park(beyond version: UInt64) async {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mayWait = state.withLock { state in
                    // A cancellation before this point did not find a waiter to wake.
                    guard state.version <= version, !state.isFinished, !Task.isCancelled else { return false }
                    state.waiters[number] = continuation
                    return true
                }
                if !mayWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
