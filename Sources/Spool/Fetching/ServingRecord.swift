import Synchronization

/// The counts of one resource's bytes: those that its origin sent, and those that its readers received.
///
/// The lock is held only while a counter changes, so that readers of stored bytes do not wait for each other here.
final class ServingRecord: Sendable {
    private let counts = Mutex(TransferStatistics())
    private let unserved: UnservedBytes
    private let instruments: CacheInstruments

    init(_ instruments: CacheInstruments, _ unserved: UnservedBytes) {
        self.instruments = instruments
        self.unserved = unserved
    }

    /// The counts since the resource was opened.
    var statistics: TransferStatistics {
        var statistics = counts.withLock { $0 }
        (statistics.freshBytes, statistics.bytesStored) = unserved.counts
        return statistics
    }

    /// Counts a request to the origin.
    func recordRequest() {
        counts.withLock { $0.originRequests += 1 }
        instruments.note(.requestSent)
    }

    /// Counts received bytes of a body.
    func received(_ count: Int) {
        counts.withLock { $0.bytesFromOrigin += Int64(count) }
        instruments.note(.received(bytes: Int64(count)))
    }

    /// Counts bytes that a reader has read.
    ///
    /// - Returns: The number of these bytes that were stored after the resource was opened, and that no reader had read
    ///   before.
    @discardableResult
    func served(_ range: Range<Int64>) -> Int64 {
        let count = range.upperBound - range.lowerBound
        let fresh = unserved.take(range)
        counts.withLock { counts in
            counts.bytesServed += count
            counts.bytesFromCache += count - fresh
        }
        instruments.note(.served(bytes: count, stored: count - fresh))
        return fresh
    }

    /// Records that a different version has become current.
    func versionChanged() { unserved.removeAll() }
}
