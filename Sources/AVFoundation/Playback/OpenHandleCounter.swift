import Synchronization

/// Counts the libmpv handles that play an item, so that a test can see that none is left behind.
final class OpenHandleCounter: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Handles that are open now.
    var count: Int { state.withLock { $0.count } }

    func opened() { state.withLock { $0.count += 1 } }

    func closed() {
        let waiters = state.withLock { state in
            state.count -= 1
            guard state.count == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until no handle is open.
    func waitUntilNone() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.count > 0 { state.waiters.append(continuation) }
                return state.count == 0
            }
            if isDone { continuation.resume() }
        }
    }
}
