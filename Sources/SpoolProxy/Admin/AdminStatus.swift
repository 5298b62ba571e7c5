#if Proxy
import Foundation
import Spool

/// What the owner's page shows, as `/.spool/api/status` gives it: the cache and the server at a moment.
struct AdminStatus: Encodable, Sendable {
    struct Transfer: Encodable, Sendable {
        /// Scheme, host and path.
        var url: String
        /// Where it began, and the next byte that it brings.
        var start: Int64
        var position: Int64
        /// Where it ends; null where that is not known.
        @OrNull var end: Int64?
    }

    struct Media: Encodable, Sendable {
        /// Scheme, host and path.
        var url: String
        /// Bytes that are stored, of a stream those of all its files.
        var storedBytes: Int64
        /// Of the file, or a stream's playlist: its length, null where that is not known, and what is stored.
        @OrNull var length: Int64?
        var ranges: [[Int64]]
        /// How many files have come, and how many of these are stored whole.
        var files: Int
        var completeFiles: Int
        var pinned: Bool
        var lastUsed: Date
    }

    /// Bytes that are stored, and the most that may be; null: no limit.
    var storedBytes: Int64
    @OrNull var capacityBytes: Int64?
    /// Files that are stored, and what was used last, the last one first; a stream is one.
    var fileCount: Int
    var media: [Media]
    /// Bytes that readers were given, of these bytes that no origin had to send for them, and bytes that origins sent.
    var servedBytes: Int64
    var savedBytes: Int64
    var originBytes: Int64
    /// Requests to origins.
    var originRequests: Int
    /// Requests to the server, by what they cost.
    var requests: [String: Int]
    /// Requests that are open, and readers in the cache.
    var openRequests: Int
    var openReaders: Int
    /// Requests to origins that are under way.
    var transfers: [Transfer]
    var evictions: Int
    var errors: Int

    /// What is read of the catalog each time.
    private static let recordLimit = 5000
    /// What is shown of it.
    private static let mediaLimit = 100

    /// Of a stream with more files than are read each time, those count that were used last.
    ///
    /// - Throws: `CacheError` with code `.storage` where the catalog can't be read.
    init(of cache: MediaCache, _ metrics: ProxyMetrics) async throws {
        let (statistics, activity) = (cache.statistics, cache.activity)
        let (recent, count) = try await cache.recentResources(limit: Self.recordLimit)
        storedBytes = cache.storedByteCount
        _capacityBytes = OrNull(wrappedValue: cache.capacity)
        fileCount = count
        media = StoredPresentation.presentations(in: recent).prefix(Self.mediaLimit).map(Media.init)
        servedBytes = statistics.bytesServed
        savedBytes = statistics.bytesFromCache
        originBytes = statistics.bytesFromOrigin
        originRequests = statistics.originRequests
        let counts = metrics.counts
        requests = Dictionary(uniqueKeysWithValues: counts.requests.map { ($0.rawValue, $1) })
        openRequests = counts.openRequests
        openReaders = activity.readers
        transfers = activity.transfers.map {
            Transfer(url: $0.address, start: $0.start, position: $0.position, end: $0.end)
        }
        evictions = activity.counts.evictions
        errors = activity.counts.errors.values.reduce(0, +)
    }
}

extension AdminStatus.Media {
    init(_ stored: StoredPresentation) {
        url = stored.media.address
        storedBytes = stored.byteCount
        _length = OrNull(wrappedValue: stored.media.length)
        ranges = stored.media.storedRanges.prefix(500).map { [$0.lowerBound, $0.upperBound] }
        files = stored.fileCount
        completeFiles = stored.completeFileCount
        pinned = stored.media.isPinned
        lastUsed = stored.media.lastUsed
    }
}
#endif
