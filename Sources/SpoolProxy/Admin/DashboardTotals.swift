#if Proxy
import Foundation
import Spool

/// The counts since the server started, as the live page shows them.
struct DashboardTotals: Encodable, Sendable, Equatable {
    /// The number of stored bytes, and the capacity, which is `null` if there is no limit.
    var storedBytes: Int64
    @EncodedAsNull var capacityBytes: Int64?
    /// The number of stored files.
    var fileCount: Int
    /// The number of bytes that readers received.
    var servedBytes: Int64
    /// The part of ``servedBytes`` that did not have to be requested from an origin.
    var savedBytes: Int64
    /// The part of ``savedBytes`` since midnight in UTC.
    var savedBytesToday: Int64
    /// The number of bytes that origins sent, and the number of requests to them.
    var originBytes: Int64
    var originRequests: Int
    /// The number of requests to the server, by result.
    var requests: [String: Int]
    var openRequests: Int
    var openReaders: Int
    var evictions: Int
    var evictedBytes: Int64
    var retries: Int
    var errors: Int

    init(
        _ cache: MediaCache, _ activity: CacheActivity, _ counts: ProxyMetrics.Counts, fileCount: Int,
        savedBytesToday: (Int64) -> Int64
    ) {
        let statistics = cache.statistics
        storedBytes = cache.storedByteCount
        _capacityBytes = EncodedAsNull(wrappedValue: cache.capacity)
        self.fileCount = fileCount
        servedBytes = statistics.bytesServed
        savedBytes = statistics.bytesFromCache
        self.savedBytesToday = savedBytesToday(statistics.bytesFromCache)
        originBytes = statistics.bytesFromOrigin
        originRequests = statistics.originRequests
        requests = Dictionary(uniqueKeysWithValues: counts.requests.map { ($0.rawValue, $1) })
        openRequests = counts.openRequests
        openReaders = activity.readers
        evictions = activity.counts.evictions
        evictedBytes = activity.counts.evictedBytes
        retries = activity.counts.retries
        errors = activity.counts.errors.values.reduce(0, +)
    }
}
#endif
