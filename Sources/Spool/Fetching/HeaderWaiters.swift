import Synchronization

/// The callers that wait for the content information of a resource, which the headers of a response contain.
final class HeaderWaiters: Sendable {
    private struct State {
        var waiting: [Int: CheckedContinuation<ContentInformation?, Never>] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    /// Waits until a response contains the information, or until `pull`, which requests the response, has returned.
    ///
    /// - Parameter known: A function that returns the information known after `pull`.
    func wait(
        on executor: any TaskExecutor, for pull: @escaping @Sendable () async -> Void,
        otherwise known: @escaping @Sendable () -> ContentInformation?
    ) async -> ContentInformation? {
        // The waiters receive the information itself. If the resource were opened again in the meantime, the
        // information in the resource might need to be validated again.
        await withCheckedContinuation { continuation in
            let number = state.withLock { state in
                state.count += 1
                state.waiting[state.count] = continuation
                return state.count
            }
            Task(executorPreference: executor) {
                await pull()
                self.state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: known())
            }
        }
    }

    /// Resumes all callers with the information that a response contains.
    func resume(with information: ContentInformation) {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting
        }
        for (_, continuation) in waiting.sorted(by: { $0.key < $1.key }) { continuation.resume(returning: information) }
    }
}
