import ByteRanges
import Synchronization

/// Counts what a resource's readers were handed and what its origin sent.
///
/// Held for a counter's time, so that readers of landed bytes do not wait for one another here.
final class ServingRecord: Sendable {
    private struct State {
        var statistics = TransferStatistics()
        /// What has landed and was handed to nobody yet.
        var unserved = ByteRangeSet()
    }

    private let state = Mutex(State())
    private let instruments: CacheInstruments

    init(_ instruments: CacheInstruments = CacheInstruments()) { self.instruments = instruments }

    /// What has been counted since the resource was opened.
    var statistics: TransferStatistics { state.withLock { $0.statistics } }

    /// An origin is sent a request.
    func asked() {
        state.withLock { $0.statistics.originRequests += 1 }
        instruments.note(.asked)
    }

    /// Body bytes have come from an origin.
    func received(_ count: Int) {
        state.withLock { $0.statistics.bytesFromOrigin += Int64(count) }
        instruments.note(.received(bytes: Int64(count)))
    }

    /// Bytes have landed that were not there.
    func landed(_ fresh: ByteRangeSet) {
        state.withLock { state in
            state.statistics.bytesLanded += fresh.byteCount
            for range in fresh { state.unserved.insert(range) }
        }
    }

    /// Bytes have been handed to a reader.
    ///
    /// - Returns: How many of them had landed freshly for it.
    @discardableResult
    func served(_ range: Range<Int64>) -> Int64 {
        let count = range.upperBound - range.lowerBound
        let fresh = state.withLock { state in
            var fresh: Int64 = 0
            if !state.unserved.isEmpty {
                fresh = state.unserved.intersection(range).byteCount
                if fresh > 0 { state.unserved.remove(range) }
            }
            state.statistics.bytesServed += count
            state.statistics.bytesFromCache += count - fresh
            return fresh
        }
        instruments.note(.served(bytes: count, stored: count - fresh))
        return fresh
    }

    /// Another version takes the place of the one that was counted.
    func versionChanged() { state.withLock { $0.unserved = ByteRangeSet() } }
}
