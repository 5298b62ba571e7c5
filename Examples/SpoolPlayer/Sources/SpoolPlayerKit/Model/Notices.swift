import Observation
import SpoolAVFoundation

/// The text for the cache's latest event that may concern the user.
@MainActor @Observable final class Notices {
    private(set) var last: String?

    func clear() { last = nil }

    /// Records an event if it may concern the user.
    func note(_ event: CacheEvent) {
        switch event.kind {
        case .retrying(let delay, let cause):
            last = "Retrying in \(delay.formatted(.units())): \(cause.localizedDescription)"
        case .failed(let error): last = error.localizedDescription
        case .notCached(let cause), .cacheUnavailable(let cause): last = "Not cached: \(cause.localizedDescription)"
        case .bypassed(let reason): last = "Plays without the cache: \(reason)"
        case .warning(let text): last = text
        default: break  // Other events, including future ones.
        }
    }
}
