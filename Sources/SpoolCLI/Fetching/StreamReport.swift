import Foundation
import Spool
import SpoolProxy

/// The stream that `get --hls` brought, and where its bytes came from.
struct StreamReport: Encodable, Sendable {
    var url: String
    var variant: String
    var segments: Int
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double

    /// - Parameter counts: What the whole cache counted, taken after it was closed.
    init(_ outcome: StreamFetch.Outcome, of source: MediaSource, counts: TransferStatistics) {
        let progress = outcome.summary.progress
        url = source.displayAddress
        variant = MediaSource(url: outcome.summary.variant).displayAddress
        segments = progress.segmentCount
        bytes = progress.bytes
        bytesFromOrigin = counts.bytesFromOrigin
        // What was read twice on the way is not counted twice.
        bytesFromCache = max(0, progress.bytes - counts.bytesLanded)
        originRequests = counts.originRequests
        seconds = outcome.seconds
    }

    /// One line for a person.
    var text: String {
        "\(segments.counted("segment")), \(ByteCount(bytes: bytes).text) in \(String(format: "%.1f", seconds)) s: "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request")); "
            + "the cache has all of the stream"
    }
}
