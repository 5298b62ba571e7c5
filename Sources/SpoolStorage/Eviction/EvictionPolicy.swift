public import Foundation

/// A stored resource that nobody reads and nobody has pinned: it may be evicted.
public struct EvictableResource: Sendable, Hashable {
    /// The resource.
    public var key: CacheKey
    /// Bytes of it that are kept.
    public var storedByteCount: Int64
    /// When it was last opened by a reader.
    public var lastUsed: Date

    /// Creates a candidate.
    public init(key: CacheKey, storedByteCount: Int64, lastUsed: Date) {
        self.key = key
        self.storedByteCount = storedByteCount
        self.lastUsed = lastUsed
    }
}

/// Says in which order stored resources go when room is needed.
public protocol EvictionPolicy: Sendable {
    /// Puts first what is to go first.
    ///
    /// - Parameter candidates: Some of the resources that may go: those least recently used, in that order.
    func order(_ candidates: [EvictableResource]) -> [EvictableResource]
}

/// What was used longest ago goes first.
public struct LeastRecentlyUsed: EvictionPolicy {
    /// Creates the policy.
    public init() {}

    /// The candidates as they come.
    public func order(_ candidates: [EvictableResource]) -> [EvictableResource] { candidates }
}

/// Of what was not used lately, the largest goes first: keeps many songs rather than one film.
public struct LargestFirst: EvictionPolicy {
    /// Creates the policy.
    public init() {}

    /// The candidates by size, the largest first.
    public func order(_ candidates: [EvictableResource]) -> [EvictableResource] {
        candidates.sorted { $0.storedByteCount > $1.storedByteCount }
    }
}
