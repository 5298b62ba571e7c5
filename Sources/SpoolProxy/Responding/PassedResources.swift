#if Proxy
import SpoolStorage
import Synchronization

/// Resources whose responses set cookies for one client.
///
/// For some time, requests for them bypass the cache. A client must neither wait for another client's response nor
/// receive its cookies.
///
/// Only clients with the same credentials bypass the cache. An origin that renews one client's cookie may send other
/// clients a response that they can share.
final class PassedResources: Sendable {
    private let known = Mutex(Remembered<CacheKey, Int64>(count: limit))
    private static let limit = 4096
    /// Seconds after which a resource is tried with the cache again.
    private static let time: Int64 = 120

    /// Whether requests for a resource bypass the cache at a time, in seconds since 1970.
    ///
    /// - Parameter key: The key of the resource with the client's credentials.
    func contains(_ key: CacheKey, at now: Int64) -> Bool { known.withLock { $0[key].map { now < $0 } ?? false } }

    /// Makes requests for a resource bypass the cache for some time from now on.
    func insert(_ key: CacheKey, at now: Int64) {
        known.withLock { $0.note(now + Self.time, for: key, bytes: key.hash.utf8.count) }
    }
}
#endif
