import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// The bytes that `get` delivered, and where they came from.
struct FetchReport: Encodable, Sendable {
    var url: String
    @OrNull var length: Int64?
    var range: [Int64]
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double
    var complete: Bool

    /// - Parameters:
    ///   - counts: What was counted, taken after the cache was closed, when nothing is on its way any more.
    ///   - kept: What the cache holds now; nil if nothing.
    init(_ outcome: Fetch.Outcome, of source: MediaSource, counts: TransferStatistics, kept: StoredResource?) {
        url = source.displayAddress
        _length = OrNull(wrappedValue: kept?.length ?? outcome.length)
        range = outcome.range.pair
        bytes = outcome.range.upperBound - outcome.range.lowerBound
        bytesFromCache = counts.bytesFromCache
        bytesFromOrigin = counts.bytesFromOrigin
        originRequests = counts.originRequests
        seconds = outcome.seconds
        complete = kept?.isComplete ?? false
    }

    /// One line for a person.
    var text: String {
        let rate = seconds > 0 ? ", \(ByteCount(bytes: Int64(Double(bytes) / seconds)).text)/s" : ""
        return "\(ByteCount(bytes: bytes).text) in \(String(format: "%.1f", seconds)) s\(rate): "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request"))"
            + (complete ? "; the cache has all of it" : "")
    }
}
