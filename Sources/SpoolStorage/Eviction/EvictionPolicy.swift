import ByteRanges
import Foundation

/// The order in which media is evicted when space is needed; see ``/Spool/MediaCacheConfiguration/eviction``.
///
/// Every policy keeps pinned media and the bytes that a player needs next.
public struct EvictionPolicy: Sendable {
    /// A function that creates the strategy of one cache.
    package let makeStrategy: @Sendable () -> any EvictionStrategy
    /// Whether media is evicted to free space for new media.
    package let makesSpace: Bool

    package init(makesSpace: Bool = true, _ makeStrategy: @escaping @Sendable () -> any EvictionStrategy) {
        self.makesSpace = makesSpace
        self.makeStrategy = makeStrategy
    }

    /// Returns whether both policies evict in the same order.
    package func isEqual(to other: EvictionPolicy) -> Bool {
        makesSpace == other.makesSpace && type(of: makeStrategy()) == type(of: other.makeStrategy())
    }

    /// The policy that keeps media that is played repeatedly, and the start of all other media.
    ///
    /// New media that was played in only one session is evicted first, starting with the largest. Media that was played
    /// again stays longer (S3-FIFO: Yang et al., “FIFO queues are all you need for cache eviction”, SOSP 2023). The
    /// first 256 KiB of all media, and the bytes around the offset where the last session stopped, also stay longer. A
    /// fifth of the cache is reserved for these bytes. Playing a lot of new media once therefore does not evict the
    /// media that is played every day.
    public static let standard = EvictionPolicy { StandardEviction() }

    /// The policy that evicts the least recently used media.
    public static let leastRecentlyUsed = EvictionPolicy { LeastRecentlyUsed() }

    /// The policy that evicts the largest of the least recently used media. Many short resources therefore stay in the
    /// cache instead of one long one.
    public static let largestFirst = EvictionPolicy { LargestFirst() }

    /// The policy that does not evict media to free space for new media. When the cache is full, media that is not
    /// stored plays without being stored.
    ///
    /// ``/Spool/MediaCache/evict(to:)``, a smaller capacity and ``/Spool/MediaCacheConfiguration/maximumAge`` still
    /// evict media, the least recently used first.
    public static let never = EvictionPolicy(makesSpace: false) { LeastRecentlyUsed() }
}

/// The maximum size of one part of the media: the media from one host, or the media with one of the app's tags.
///
/// Media that exceeds the quota is evicted soon, according to the cache's policy. Media that is being read stays until
/// its readers close. Pinned media does not count. The cache's capacity also applies.
public struct EvictionQuota: Sendable, Hashable {
    enum Subject: Sendable, Hashable {
        case host(String)
        case tag(String)
    }

    let subject: Subject
    /// The maximum size, in bytes.
    public let byteCount: Int64

    /// Returns a quota for the media whose URL has this host, regardless of case. Subdomains do not count.
    public static func host(_ host: String, _ byteCount: Int64) -> EvictionQuota {
        EvictionQuota(subject: .host(host.lowercased()), byteCount: byteCount)
    }

    /// Returns a quota for the media whose source had this ``/Spool/MediaSource/tag`` when it was last played or
    /// preloaded.
    public static func tag(_ tag: String, _ byteCount: Int64) -> EvictionQuota {
        EvictionQuota(subject: .tag(tag), byteCount: byteCount)
    }

}

/// The quotas of a cache, by host and tag. The URL of a resource is parsed at most once, for any number of quotas.
struct QuotaIndex: Sendable {
    private var hosts: [String: Int] = [:]
    private var tags: [String: Int] = [:]
    /// A function that returns the host of a URL, in lower case.
    private let host: @Sendable (String) -> String?

    init(
        _ quotas: [EvictionQuota],
        host: @escaping @Sendable (String) -> String? = { URL(string: $0)?.host()?.lowercased() }
    ) {
        self.host = host
        // If two quotas limit the same host or tag, the first one applies.
        for (number, quota) in quotas.enumerated() {
            switch quota.subject {
            case .host(let host): hosts[host] = hosts[host] ?? number
            case .tag(let tag): tags[tag] = tags[tag] ?? number
            }
        }
    }

    /// Returns the number of the first quota that limits the media at `url` with this tag; `nil` if there is none.
    func quota(of url: String, tag: String?) -> Int? {
        let byTag = tag.flatMap { tags[$0] }
        let byHost = hosts.isEmpty ? nil : host(url).flatMap { hosts[$0] }
        guard let byTag, let byHost else { return byTag ?? byHost }
        return min(byTag, byHost)
    }
}

/// The maximum size of the media in a cache.
///
/// Storing bytes never exceeds the limit, because space is freed first. When it is reached, the media that is least
/// likely to be played again is evicted (``EvictionPolicy``). If all media is in use or pinned, new media plays without
/// being stored.
public struct CacheCapacity: Sendable, Hashable {
    enum Kind: Hashable, Sendable {
        case bytes(Int64)
        case fraction(Double)
        case unlimited
        case remembered
    }

    let kind: Kind

    /// Limits the cache to a number of bytes. If the number is negative, the directory can't be opened.
    public static func bytes(_ count: Int64) -> CacheCapacity { CacheCapacity(kind: .bytes(count)) }

    /// Limits the cache to a fraction of the size of the directory's volume, from 0 to 1. The limit is computed when
    /// the directory is opened.
    public static func fractionOfVolume(_ fraction: Double) -> CacheCapacity {
        CacheCapacity(kind: .fraction(fraction))
    }

    /// No limit. If the volume is full, media plays without being stored.
    public static let unlimited = CacheCapacity(kind: .unlimited)

    /// A capacity of one gibibyte, which is the default.
    public static let standard = bytes(standardByteCount)
    static let standardByteCount: Int64 = 1 << 30

    /// The capacity that is recorded in the directory; unlimited if none is recorded.
    package static let remembered = CacheCapacity(kind: .remembered)

    /// Checks that the capacity is valid.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` for an invalid number.
    func validate() throws {
        switch kind {
        case .bytes(let count) where count < 0:
            throw CacheError(.invalidArgument, "invalid capacity of \(count.counted("byte")): must not be negative")
        case .fraction(let fraction) where !(0...1).contains(fraction):
            throw CacheError(
                .invalidArgument,
                "invalid capacity: the fraction of the volume is \(fraction), but must be between 0 and 1")
        default: break
        }
    }
}
