#if Proxy
import Synchronization

/// Resources whose responses are for one user each, so that for some time they are not looked for in the cache: one user must
/// not wait for another's response, nor get its cookies.
final class PassedResources: Sendable {
    private let known = Mutex(Remembered<String, Int64>(count: limit))
    private static let limit = 4096
    /// Seconds after which a resource is tried with the cache again.
    private static let time: Int64 = 120

    /// Whether a resource is passed by at a moment in seconds since 1970.
    func contains(_ name: String, at now: Int64) -> Bool { known.withLock { $0[name].map { now < $0 } ?? false } }

    /// Passes a resource by from now on.
    func insert(_ name: String, at now: Int64) {
        known.withLock { $0.note(now + Self.time, for: name, bytes: name.utf8.count) }
    }
}
#endif
