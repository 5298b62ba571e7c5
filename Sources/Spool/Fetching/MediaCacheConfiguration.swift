import ByteRanges
public import Logging
public import SpoolScheduling
public import SpoolStorage

/// The configuration of a cache: its size, the freshness and the keys of media, and its requests to origins.
///
/// All values are checked when the directory of the cache is opened. If a value is invalid, opening fails with
/// `.invalidArgument`, and media plays without being stored.
public struct MediaCacheConfiguration: Sendable {
    /// The maximum size of the cache.
    ///
    /// If the directory contains more when it is opened, the excess is evicted when the next bytes are stored, or by
    /// ``MediaCache/evict(to:)``.
    public var capacity = CacheCapacity.standard
    /// Whether the cache only reads its directory, for example in an app extension. The default is `false`.
    ///
    /// Stored media plays, even while another process uses the directory. Nothing else is stored, nothing in the
    /// directory changes, and the directory is never locked.
    public var isReadOnly = false
    /// The key with which files and the catalog are encrypted. The default, `nil`, means no encryption.
    ///
    /// A new cache is created with this key. If the cache in the directory uses a different key, or no key, that cache
    /// is not opened, and media plays without being stored. ``MediaCache/rekey(_:from:to:byteStore:)`` changes the key.
    public var encryptionKey: EncryptionKey?
    /// The storage of media bytes. The default, `nil`, means files in the directory, or memory for a cache in memory.
    ///
    /// After a cache has been closed, its storage may be used by the next cache in the same directory, but by no other
    /// cache.
    public var byteStore: (any ByteStore)?
    /// The policy that decides whether stored media may be used without a request to the origin.
    public var freshness = FreshnessPolicy.immutable
    /// The policy that decides which URLs identify the same resource.
    public var keyPolicy = CacheKeyPolicy.url
    /// The sizes of requests, and the number of bytes that are fetched ahead of the player.
    public var readAhead = ReadAheadPolicy()
    /// The policy for retrying failed requests.
    public var retry = RetryPolicy()
    /// The maximum number of concurrent requests to one origin. The default is 8.
    ///
    /// Requests that are paused by back-pressure do not count toward this limit. Up to 64 long responses without ranges
    /// do not count either. Such a response has no known end, or contains more bytes than
    /// `ReadAheadPolicy.maximumRequestSize`, and its origin does not support range requests. Otherwise, an endless
    /// stream would permanently use a connection that other readers need.
    public var maximumConnectionsPerOrigin = 8
    /// The maximum number of open connections to one origin, including paused and endless ones.
    ///
    /// The default, `nil`, means that the cache learns the number from the origin's responses. Some origins accept only
    /// a few connections for each account. By default, a request that is rejected while other connections are open is
    /// sent again when one of them is closed, or after two seconds. If the origin then accepts the request, the cache
    /// limits its open connections to that origin for a day. It does not learn limits above 16.
    ///
    /// If this number is set, it is never exceeded. Requests wait until a connection is closed. A player fails with
    /// ``CacheError/Code/originUnavailable`` if no connection is closed within `RetryPolicy.maximumWait`. Requests that
    /// bypass the cache do not count.
    ///
    /// At a configured or learned limit, players take turns. While a request waits, the cache cancels another transfer
    /// if its media supports range requests:
    ///
    /// - For a player, it cancels a transfer that is paused by back-pressure and whose connection has been open for two
    ///   seconds. If there is none, it cancels any transfer whose connection has been open for five seconds.
    /// - For a preload, it cancels a transfer that has been paused for ten seconds.
    public var maximumOpenConnectionsPerOrigin: Int?
    /// The maximum amount of memory, in bytes, that the whole cache uses for media that can't be stored on disk. The
    /// default is 16 MiB, and the minimum is 1 MiB.
    public var memoryLimit: Int64 = 16 << 20
    /// The order in which media is evicted when space is needed.
    public var eviction = EvictionPolicy.standard
    /// The maximum sizes of parts of the cache, such as the media of one host or the media with a ``MediaSource/tag``.
    /// If several quotas apply to a resource, the resource counts toward the first of them.
    public var evictionQuotas: [EvictionQuota] = []
    /// The number of bytes to leave free on the volume of the directory; 0 for none.
    ///
    /// The default, `nil`, is 500 MB or 5 % of the volume, whichever is less, on Apple platforms, and 0 elsewhere.
    ///
    /// If there is less free space, media is evicted, and new media plays without being stored. The free space is
    /// checked when the cache is opened, and every ten seconds. On iOS, macOS and visionOS, it is the space that the
    /// system offers for content that can be fetched again (`volumeAvailableCapacityForOpportunisticUsage`).
    public var minimumFreeSpace: Int64?
    /// The time after which unplayed media is evicted, even if there is free space. If this is `nil`, the default,
    /// media is not evicted by age.
    ///
    /// The maximum is 10,000 years. Pinned media is never evicted by age.
    ///
    /// All ages are reset after a sudden clock change, because Spool can't determine which time is right. They are also
    /// reset if all media in the cache is older than the maximum age when the cache is opened. In this case, either the
    /// cache was closed for that long, or the clock is wrong.
    public var maximumAge: Duration?
    /// The maximum time for which a player waits for space on disk. After that, the player's bytes are held in memory.
    package var spaceTimeout = Store.Configuration().spaceTimeout
    /// Whether redirects are followed. If it is `false`, a redirect counts as a rejection (``CacheError/response``).
    package var followsRedirects = true
    /// Whether responses with any final status, and web pages, are stored if HTTP allows it. Use this setting for a
    /// cache in front of a site. This setting requires ``FreshnessPolicy/http``.
    package var storesEveryStatus = false
    /// Whether a temporary error from the origin (5xx, 429) is returned immediately instead of being retried. Use this
    /// setting for a proxy, whose clients retry. A response that has already started is still resumed after an error.
    package var forwardsErrors = false
    /// The instruments that receive the events of the cache, for monitoring or profiling.
    public var instruments: [CacheInstrument] = []
    /// The logger that receives the cache's log messages.
    ///
    /// The default on Apple platforms writes to the system's log, with the subsystem and the category `spool`. On other
    /// platforms, it writes to the handler that the app passed to `LoggingSystem.bootstrap`, or to standard error.
    public var logger = Logger.standard("spool")

    /// Creates the default configuration.
    public init() {}

    /// The free space to leave on the volume, in bytes. If it is not configured, the value is 0, or `nil` on Apple
    /// platforms, where the store determines it.
    var freeSpaceToLeave: Int64? {
        #if canImport(Darwin)
        minimumFreeSpace
        #else
        minimumFreeSpace ?? 0
        #endif
    }

    /// Checks the numbers of the configuration, except the capacity, which the store checks.
    ///
    /// - Throws: `CacheError` with code `.invalidArgument`, whose message names the invalid value.
    func validate() throws {
        func check(_ isPossible: Bool, _ name: String, _ value: some Any, _ demand: String) throws {
            guard isPossible else {
                throw CacheError(.invalidArgument, "invalid \(name) \(value): \(demand)")
            }
        }
        try check(memoryLimit >= 1 << 20, "memoryLimit", memoryLimit, "must be at least 1,048,576 bytes")
        if let minimumFreeSpace {
            try check(minimumFreeSpace >= 0, "minimumFreeSpace", minimumFreeSpace, "must not be negative")
        }
        for quota in evictionQuotas {
            try check(quota.byteCount >= 0, "quota", quota.byteCount, "must not be negative")
        }
        if let maximumAge {
            let isPossible = maximumAge > .zero && maximumAge <= .seconds(NumberLimits.seconds)
            try check(isPossible, "maximumAge", maximumAge, "must be positive and at most 10,000 years")
        }
        try check(
            maximumConnectionsPerOrigin >= 1, "maximumConnectionsPerOrigin", maximumConnectionsPerOrigin,
            "must be at least 1")
        if let count = maximumOpenConnectionsPerOrigin {
            try check(count >= 1, "maximumOpenConnectionsPerOrigin", count, "must be at least 1")
        }
        try check(
            readAhead.initialRequestSize >= 1, "readAhead.initialRequestSize", readAhead.initialRequestSize,
            "must be positive")
        try check(
            readAhead.maximumRequestSize >= 1, "readAhead.maximumRequestSize", readAhead.maximumRequestSize,
            "must be positive")
        try check(
            readAhead.maximumReadAhead >= 1, "readAhead.maximumReadAhead", readAhead.maximumReadAhead,
            "must be positive")
        try check(
            readAhead.maximumConcurrentRequests >= 1, "readAhead.maximumConcurrentRequests",
            readAhead.maximumConcurrentRequests,
            "must be at least 1")
        try check(
            readAhead.drainTimeout >= .zero && readAhead.drainTimeout <= .seconds(60), "readAhead.drainTimeout",
            readAhead.drainTimeout, "must be between 0 and 60 seconds")
        try check(
            readAhead.cancellationDelay >= .zero && readAhead.cancellationDelay <= .seconds(60),
            "readAhead.cancellationDelay", readAhead.cancellationDelay, "must be between 0 and 60 seconds")
        try check(
            retry.maximumRetryCount >= 0, "retry.maximumRetryCount", retry.maximumRetryCount, "must not be negative")
        try check(retry.initialDelay >= .zero, "retry.initialDelay", retry.initialDelay, "must not be negative")
        try check(retry.maximumDelay >= .zero, "retry.maximumDelay", retry.maximumDelay, "must not be negative")
    }
}
