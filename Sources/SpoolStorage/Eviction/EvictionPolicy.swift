package import Foundation

/// What goes first when room is needed: chosen by ``MediaCacheConfiguration/eviction``.
///
/// What is pinned, and what a player is near to, stays under every policy.
public struct EvictionPolicy: Sendable {
    /// Puts first what is to go first, of some of the resources that may go: those least recently used, in that order.
    package let order: @Sendable ([EvictableResource]) -> [EvictableResource]

    package init(order: @escaping @Sendable ([EvictableResource]) -> [EvictableResource]) { self.order = order }

    /// What was used longest ago goes first.
    public static let leastRecentlyUsed = EvictionPolicy { $0 }

    /// Of what was not used lately, the largest goes first: keeps many songs rather than one film.
    public static let largestFirst = EvictionPolicy { candidates in
        candidates.sorted { $0.storedByteCount > $1.storedByteCount }
    }
}

/// A stored resource that nobody reads and nobody has pinned: it may be evicted.
package struct EvictableResource: Sendable, Hashable {
    package var key: CacheKey
    /// Bytes of it that are kept.
    package var storedByteCount: Int64
    /// When it was last opened by a reader.
    package var lastUsed: Date

    package init(key: CacheKey, storedByteCount: Int64, lastUsed: Date) {
        self.key = key
        self.storedByteCount = storedByteCount
        self.lastUsed = lastUsed
    }
}
