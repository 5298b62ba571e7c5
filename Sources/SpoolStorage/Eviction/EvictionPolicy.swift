package import Foundation

/// What goes first when room is needed: chosen by ``MediaCacheConfiguration/eviction``.
///
/// What is pinned, and what a player is near to, stays under every policy.
public struct EvictionPolicy: Sendable {
    /// Puts first what is to go first, of some of the resources that may go: those least recently used, in that order.
    package let order: @Sendable ([EvictableResource]) -> [EvictableResource]
    /// Whether anything goes to make room.
    package let makesRoom: Bool

    package init(makesRoom: Bool = true, order: @escaping @Sendable ([EvictableResource]) -> [EvictableResource]) {
        self.makesRoom = makesRoom
        self.order = order
    }

    /// What was used longest ago goes first.
    public static let leastRecentlyUsed = EvictionPolicy { $0 }

    /// Of what was not used lately, the largest goes first: keeps many songs rather than one film.
    public static let largestFirst = EvictionPolicy { candidates in
        candidates.sorted { $0.storedByteCount > $1.storedByteCount }
    }

    /// Nothing goes to make room: once the cache is full, what is not stored is played without being kept.
    ///
    /// What is asked for still goes, least recently used first: by ``MediaCache/evict(to:)``, a smaller capacity, or
    /// ``MediaCacheConfiguration/maximumAge``.
    public static let never = EvictionPolicy(makesRoom: false) { $0 }
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
