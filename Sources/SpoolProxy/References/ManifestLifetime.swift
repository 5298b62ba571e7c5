#if Proxy
/// For how long a manifest stays right, by what it says of itself.
///
/// An upper bound: what HTTP allows may be less. A stale live manifest stops players for good, so whatever is not known to
/// be finished is kept for less time than a player waits before it asks again.
package enum ManifestLifetime: Hashable, Sendable {
    /// It is finished, and won't change.
    case unchanging
    /// It says nothing of it, as a master playlist: as long as HTTP allows, and no longer than what it refers to is kept.
    case unstated
    /// It is live: that many seconds at most.
    case seconds(Double)
    /// Not at all.
    case none
}
#endif
