import Synchronization

/// Limits how many requests go to one host at once; the others wait in the order in which they came.
///
/// Waiting has no timeout of its own and ends early only by cancellation.
final class PerHostLimiter: Sendable {
    private struct Waiter {
        var id: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct Host {
        var used = 0
        var waiters: [Waiter] = []
    }

    private struct State {
        var hosts: [String: Host] = [:]
        var nextID: UInt64 = 0
        var cancelled: Set<UInt64> = []
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) { self.limit = max(1, limit) }

    /// Takes a place at `host`, waiting until one is free. Whoever returns from here must call ``release(_:)`` once.
    ///
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    func acquire(_ host: String) async throws {
        let id: UInt64? = state.withLock { state in
            if state.hosts[host, default: Host()].used < limit {
                state.hosts[host, default: Host()].used += 1
                return nil
            }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.hosts[host, default: Host()].used < limit {
                        state.hosts[host, default: Host()].used += 1
                        return .success(())
                    }
                    state.hosts[host, default: Host()].waiters.append(Waiter(id: id, continuation: continuation))
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.hosts[host]?.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.hosts[host]?.waiters.remove(at: index)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    /// Gives a place back, to the one who has waited longest if anyone has.
    func release(_ host: String) {
        let next = state.withLock { state -> Waiter? in
            guard var entry = state.hosts[host] else { return nil }
            let next = entry.waiters.isEmpty ? nil : entry.waiters.removeFirst()
            if next == nil { entry.used -= 1 }
            state.hosts[host] = entry.used > 0 ? entry : nil
            return next
        }
        next?.continuation.resume()
    }
}
