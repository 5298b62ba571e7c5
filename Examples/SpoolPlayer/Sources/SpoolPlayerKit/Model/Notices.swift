import Observation
import SpoolAVFoundation

/// The last thing that a person might wonder about, out of all that the cache tells of itself.
@MainActor @Observable final class Notices {
    private(set) var last: String?

    func clear() { last = nil }

    /// Takes notice of an event, if it is for people.
    func note(_ event: CacheEvent) {
        switch event.kind {
        case .retrying(let delay, let cause):
            last = "Trying again in \(delay.formatted(.units())): \(cause.localizedDescription)"
        case .failed(let error): last = error.localizedDescription
        case .notKept(let cause), .unusable(let cause): last = "Not kept: \(cause.localizedDescription)"
        case .bypassed(let reason): last = "Plays without the cache: \(reason)"
        case .notice(let text): last = text
        default: break  // There are more, and will be.
        }
    }
}
