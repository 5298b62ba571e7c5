import SpoolStorage
import Synchronization

/// A timer that measures the time until a reader's first bytes, and reports it once to the cache's instruments.
final class FirstByteTimer: Sendable {
    private enum Phase {
        case idle
        case waiting(since: Duration)
        case over
    }

    private let resource: OpenResource
    private let phase = Mutex(Phase.idle)

    /// Creates a timer for a reader of a resource.
    ///
    /// - Returns: `nil` if there are no instruments.
    init?(_ resource: OpenResource?) {
        guard let resource, !resource.context.instruments.isEmpty else { return nil }
        self.resource = resource
    }

    /// Records that the first bytes were requested.
    func begin() {
        let now = resource.context.clock.elapsed()
        phase.withLock { phase in
            if case .idle = phase { phase = .waiting(since: now) }
        }
    }

    /// Records that the first bytes were returned.
    ///
    /// - Parameter isStored: Whether all of these bytes had been stored before they were requested.
    func end(isStored: Bool) {
        let start = phase.withLock { phase -> Duration? in
            guard case .waiting(let start) = phase else { return nil }
            phase = .over
            return start
        }
        guard let start else { return }
        let context = resource.context
        context.instruments.note(
            .firstBytes(after: context.clock.elapsed() - start, isStored: isStored, redactedURL: resource.redactedURL))
    }
}
