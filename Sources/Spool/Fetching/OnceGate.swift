import Synchronization

/// A gate that lets one of several tasks do a piece of work, while the other tasks wait.
final class OnceGate: Sendable {
    private enum Phase {
        /// The work has not been done. → working
        case idle
        /// A task is doing the work. Other tasks may be waiting for the end of their streams. → done, or idle if the
        /// work fails
        case working([AsyncStream<Void>.Continuation])
        case done
    }

    private enum Entry {
        case done
        case first
        case later(AsyncStream<Void>)
    }

    private let phase: Mutex<Phase>

    init(isDone: Bool) { phase = Mutex(isDone ? .done : .idle) }

    var isDone: Bool { if case .done = phase.withLock({ $0 }) { true } else { false } }

    /// Does the work in the first task that needs it, because a separate task would be slower. If `work` throws an
    /// error, the next task does the work.
    ///
    /// - Throws: The error from `work`; `CancellationError` if the task is cancelled while it waits.
    func pass(_ work: () async throws -> Void) async throws {
        while true {
            switch enter() {
            case .done: return
            case .later(let end):
                for await _ in end {}
                try Task.checkCancellation()
            case .first:
                var isDone = false
                defer { leave(isDone: isDone) }
                try await work()
                isDone = true
                return
            }
        }
    }

    private func enter() -> Entry {
        phase.withLock { phase in
            switch phase {
            case .done: return .done
            case .idle:
                phase = .working([])
                return .first
            case .working(let waiting):
                let (end, ended) = AsyncStream.makeStream(of: Void.self)
                phase = .working(waiting + [ended])
                return .later(end)
            }
        }
    }

    private func leave(isDone: Bool) {
        let waiting = phase.withLock { phase -> [AsyncStream<Void>.Continuation] in
            guard case .working(let waiting) = phase else { return [] }
            phase = isDone ? .done : .idle
            return waiting
        }
        for ended in waiting { ended.finish() }
    }
}
