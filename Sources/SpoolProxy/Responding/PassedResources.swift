#if Proxy
import SpoolStorage
import Synchronization

/// Resources whose responses set cookies for one client. For some time, requests for them are not looked up in the cache: a
/// client must not wait for another one's response, nor receive its cookies.
///
/// A resource is passed for clients with the same credentials only: an origin that renews one client's cookie may send the
/// others a response that all of them may use.
final class PassedResources: Sendable {
    private let known = Mutex(Remembered<CacheKey, Int64>(count: limit))
    private static let limit = 4096
    /// Seconds after which a resource is tried with the cache again.
    private static let time: Int64 = 120

    /// Whether a resource is passed at a moment in seconds since 1970.
    ///
    /// - Parameter key: The key of the resource with the client's credentials.
    func contains(_ key: CacheKey, at now: Int64) -> Bool { known.withLock { $0[key].map { now < $0 } ?? false } }

    /// Passes a resource from now on.
    func insert(_ key: CacheKey, at now: Int64) {
        known.withLock { $0.note(now + Self.time, for: key, bytes: key.hash.utf8.count) }
    }
}
#endif
