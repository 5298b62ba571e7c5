/// What goes first when room is needed: chosen by ``/Spool/MediaCacheConfiguration/eviction``.
///
/// What is pinned, and what a player is near to, stays under every policy.
public struct EvictionPolicy: Sendable {
    /// Makes what decides, for one cache.
    package let makeStrategy: @Sendable () -> any EvictionStrategy
    /// Whether anything goes to make room.
    package let makesRoom: Bool

    package init(makesRoom: Bool = true, _ makeStrategy: @escaping @Sendable () -> any EvictionStrategy) {
        self.makesRoom = makesRoom
        self.makeStrategy = makeStrategy
    }

    /// Keeps what is played again, and of everything else that with which its next play begins.
    ///
    /// What is new, and has been played in one sitting, goes first, the largest of it before the rest; what has been played
    /// again stays longer (S3-FIFO: Yang et al., “FIFO queues are all you need for cache eviction”, SOSP 2023). Of what goes,
    /// the first 256 KiB stay, and what lies around where its last play stopped: a fifth of the cache is for these. So a
    /// night in which everything is played once does not cost what is played each day.
    public static let standard = EvictionPolicy { StandardEviction() }

    /// What was used longest ago goes first.
    public static let leastRecentlyUsed = EvictionPolicy { LeastRecentlyUsed() }

    /// Of what was not used lately, the largest goes first: keeps many songs rather than one film.
    public static let largestFirst = EvictionPolicy { LargestFirst() }

    /// Nothing goes to make room: once the cache is full, what is not stored is played without being kept.
    ///
    /// What is asked for still goes, least recently used first: by ``/Spool/MediaCache/evict(to:)``, a smaller capacity, or
    /// ``/Spool/MediaCacheConfiguration/maximumAge``.
    public static let never = EvictionPolicy(makesRoom: false) { LeastRecentlyUsed() }
}
