import SpoolStorage
import Synchronization

/// How long a player waits for the first bytes that a reader of its asks for; told to the cache's instruments once.
final class FirstBytesWatch: Sendable {
    private enum Phase {
        case idle
        case waiting(since: Duration)
        case over
    }

    private let resource: OpenResource
    private let phase = Mutex(Phase.idle)

    /// - Returns: Nil where nobody is to be told.
    init?(_ resource: OpenResource?) {
        guard let resource, !resource.context.instruments.isEmpty else { return nil }
        self.resource = resource
    }

    /// They are asked for.
    func begin() {
        let now = resource.context.clock.elapsed()
        phase.withLock { phase in
            if case .idle = phase { phase = .waiting(since: now) }
        }
    }

    /// They are handed over.
    ///
    /// - Parameter isStored: Whether none of them is fresh.
    func end(isStored: Bool) {
        let start = phase.withLock { phase -> Duration? in
            guard case .waiting(let start) = phase else { return nil }
            phase = .over
            return start
        }
        guard let start else { return }
        let context = resource.context
        context.instruments.note(
            .firstBytes(after: context.clock.elapsed() - start, isStored: isStored, address: resource.address))
    }
}
