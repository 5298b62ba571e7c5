#if Proxy
import Foundation
import Spool

/// The current state of the cache and the server, for the status page and `/.spool/api/status`.
struct AdminStatus: Encodable, Sendable {
    struct Transfer: Encodable, Sendable {
        /// The scheme, the host and the path.
        var url: String
        /// The offset of the first byte.
        var start: Int64
        /// The offset of the next byte.
        var position: Int64
        /// The offset after the last byte, or `null` if it is unknown.
        @OrNull var end: Int64?
    }

    struct Media: Encodable, Sendable {
        /// The scheme, the host and the path.
        var url: String
        /// The number of stored bytes. For a stream, it includes all its files.
        var storedBytes: Int64
        /// The length of the file, or of a stream's playlist. It is `null` if it is unknown.
        @OrNull var length: Int64?
        /// The stored ranges of the file, or of a stream's playlist.
        var ranges: [[Int64]]
        /// The number of files that are stored at least partly.
        var files: Int
        /// The number of completely stored files.
        var completeFiles: Int
        var pinned: Bool
        var lastUsed: Date
    }

    /// The number of stored bytes.
    var storedBytes: Int64
    /// The maximum number of stored bytes, or `null` if there is no limit.
    @OrNull var capacityBytes: Int64?
    /// The number of stored files.
    var fileCount: Int
    /// The most recently used media, with the last used first. All files of a stream are one entry.
    var media: [Media]
    /// The number of bytes that readers received.
    var servedBytes: Int64
    /// The part of ``servedBytes`` that did not have to be requested from an origin.
    var savedBytes: Int64
    /// The number of bytes that origins sent.
    var originBytes: Int64
    /// The number of requests to origins.
    var originRequests: Int
    /// The number of requests to the server, by result.
    var requests: [String: Int]
    /// The number of running requests to the server.
    var openRequests: Int
    /// The number of open readers of the cache.
    var openReaders: Int
    /// The running requests to origins.
    var transfers: [Transfer]
    var evictions: Int
    var errors: Int

    /// The maximum number of records to read from the catalog.
    private static let recordLimit = 5000
    /// The maximum number of entries in ``media``.
    private static let mediaLimit = 100

    /// Reads the state. If there are too many records to read, only the most recently used ones are included.
    ///
    /// - Throws: `CacheError` with code `.storage` if the catalog cannot be read.
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
            Transfer(url: $0.redactedURL, start: $0.start, position: $0.position, end: $0.end)
        }
        evictions = activity.counts.evictions
        errors = activity.counts.errors.values.reduce(0, +)
    }
}

extension AdminStatus.Media {
    init(_ stored: StoredPresentation) {
        url = stored.media.redactedURL
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
