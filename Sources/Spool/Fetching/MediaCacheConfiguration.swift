import ByteRanges
public import Logging
public import SpoolScheduling
public import SpoolStorage

/// How a cache works: how much it keeps, what it takes for the same media, how it asks origins.
///
/// Every value is checked when the cache's directory is opened; one that is not possible makes that fail with
/// `.invalidArgument`, and media plays without being kept.
public struct MediaCacheConfiguration: Sendable {
    /// The most to keep.
    public var capacity = CacheCapacity.standard
    /// Whether the directory is only read, as by an app's extension beside the app: what is stored plays from it, also
    /// while another process has it; nothing else is kept, nothing in it is changed, and it is never locked.
    public var isReadOnly = false
    /// What the files and the catalog are enciphered with; nil: with nothing.
    ///
    /// A directory in which there is no cache yet is begun with it. One that has another key, or none, is not opened:
    /// media plays without being kept. ``MediaCache/rekey(_:from:to:byteStore:)`` changes it.
    public var encryptionKey: EncryptionKey?
    /// Where the bytes of media are kept; nil: in files of the directory, or in memory for a cache in memory. One that
    /// has been closed may be given to the next cache of the same directory, and to no other.
    public var byteStore: (any ByteStore)?
    /// When what is stored may be used without asking the origin.
    public var freshness = FreshnessPolicy.immutable
    /// Which URLs mean the same media file.
    public var keyPolicy = CacheKeyPolicy.url
    /// How much is asked for at once, and how far ahead of the player.
    public var readAhead = ReadAheadPolicy()
    /// When a failed request is tried again.
    public var retry = RetryPolicy()
    /// The number of concurrent requests to one origin. The default is 8.
    ///
    /// Requests that back-pressure pauses do not count, and neither do up to 64 long responses without ranges. Such a
    /// response has no known end, or more bytes than `ReadAheadPolicy.largestRequest`, and its origin does not
    /// support range requests. An endless stream would otherwise keep its connection from other readers.
    public var connectionsPerOrigin = 8
    /// Bytes that the whole cache may hold in memory where the disk can't take them; at least 1 MiB.
    public var memoryLimit: Int64 = 16 << 20
    /// What goes first when room is needed.
    public var eviction = EvictionPolicy.standard
    /// The most that is kept of some of it: of a host, or of what has a ``MediaSource/tag``. Of several that count the
    /// same media, the first does.
    public var quotas: [EvictionQuota] = []
    /// Bytes that are to stay free on the volume on which the directory lies: what the cache has goes for them, and
    /// what would take of them is played without being kept. Looked at when the cache is opened, and every ten seconds.
    /// 0: none.
    public var minimumFreeSpace: Int64 = 0
    /// How long unplayed media stays in the cache, even if there is free space. The default, `nil`, evicts nothing by
    /// age.
    ///
    /// The maximum is 10,000 years. Pinned media is never evicted by age.
    ///
    /// All ages restart when the clock jumps, because Spool can't know which time is right. They also restart if all
    /// media in the cache is older than the maximum age when the cache opens. Either the cache was closed for that
    /// long, or the clock is wrong.
    public var maximumAge: Duration?
    /// Whether redirects are followed; if not, one is a refusal (``CacheError/response``).
    package var followsRedirects = true
    /// Whether responses of any final status are kept as HTTP allows, and web pages, too: for a cache before a site,
    /// rather than before media. Under ``FreshnessPolicy/http`` only.
    package var storesEveryStatus = false
    /// Whether an origin's first response is handed on at once where it is an error that might go away (5xx, 429),
    /// rather than asked for again: for a proxy, whose clients try again by themselves. What has begun is still gone on
    /// with.
    package var handsOnErrors = false
    /// What is told of all that the cache does, when it does it: counts, and marks for Instruments.
    public var instruments: [CacheInstrument] = []
    /// Where messages go.
    public var logger = Logger(label: "spool")

    /// The default configuration.
    public init() {}

    /// Checks every value.
    ///
    /// - Throws: `CacheError` with code `.invalidArgument`, naming the value.
    func validate() throws {
        func check(_ isPossible: Bool, _ name: String, _ value: some Any, _ demand: String) throws {
            guard isPossible else {
                throw CacheError(.invalidArgument, "invalid \(name) \(value): \(demand)")
            }
        }
        try check(memoryLimit >= 1 << 20, "memoryLimit", memoryLimit, "must be at least 1048576 bytes")
        try check(minimumFreeSpace >= 0, "minimumFreeSpace", minimumFreeSpace, "must not be negative")
        for quota in quotas { try check(quota.byteCount >= 0, "quota", quota.byteCount, "must not be negative") }
        if let maximumAge {
            let isPossible = maximumAge > .zero && maximumAge <= .seconds(NumberLimits.seconds)
            try check(isPossible, "maximumAge", maximumAge, "must be positive and at most 10,000 years")
        }
        try check(connectionsPerOrigin >= 1, "connectionsPerOrigin", connectionsPerOrigin, "must be at least 1")
        try check(readAhead.firstRequest >= 1, "readAhead.firstRequest", readAhead.firstRequest, "must be positive")
        try check(
            readAhead.largestRequest >= 1, "readAhead.largestRequest", readAhead.largestRequest, "must be positive")
        try check(readAhead.window >= 1, "readAhead.window", readAhead.window, "must be positive")
        try check(
            readAhead.transfersPerResource >= 1, "readAhead.transfersPerResource", readAhead.transfersPerResource,
            "must be at least 1")
        try check(
            readAhead.drainTime >= .zero && readAhead.drainTime <= .seconds(60), "readAhead.drainTime",
            readAhead.drainTime, "must be between 0 and 60 seconds")
        try check(
            readAhead.cancellationDelay >= .zero && readAhead.cancellationDelay <= .seconds(60),
            "readAhead.cancellationDelay", readAhead.cancellationDelay, "must be between 0 and 60 seconds")
        try check(retry.retries >= 0, "retry.retries", retry.retries, "must not be negative")
        try check(retry.firstDelay >= .zero, "retry.firstDelay", retry.firstDelay, "must not be negative")
        try check(retry.longestDelay >= .zero, "retry.longestDelay", retry.longestDelay, "must not be negative")
    }
}
