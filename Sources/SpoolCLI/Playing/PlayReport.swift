import AVFoundation
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// How a play went: how it ended, where the bytes came from, and what the player asked for.
struct PlayReport: Encodable, Sendable {
    /// One loading request of the player.
    struct LoadingRequest: Encodable, Sendable {
        var kind: String
        var offset: Int64
        @OrNull var length: Int64?
        var toEnd: Bool
        var bytes: Int64
        var cancelled: Bool
    }

    var url: String
    @OrNull var duration: Double?
    var ended: Bool
    /// Where it was when it ended; not in JSON.
    private var time = 0.0
    var bytesFromCache: Int64 = 0
    var bytesFromOrigin: Int64 = 0
    var originRequests = 0
    var cachedRanges: [[Int64]] = []
    var loadingRequests: [LoadingRequest] = []

    private enum CodingKeys: String, CodingKey {
        case url, duration, ended, bytesFromCache, bytesFromOrigin, originRequests, cachedRanges, loadingRequests
    }

    init(_ outcome: PlaySession.Outcome, of url: URL) {
        self.url = url.isFileURL ? url.path : MediaSource(url: url).displayAddress
        _duration = OrNull(wrappedValue: outcome.duration)
        ended = outcome.ended
        time = outcome.time
    }

    /// Takes in what was counted, after the cache was closed, when nothing is on its way any more.
    mutating func add(_ counts: TransferStatistics, kept: StoredResource?) {
        bytesFromCache = counts.bytesFromCache
        bytesFromOrigin = counts.bytesFromOrigin
        originRequests = counts.originRequests
        cachedRanges = kept?.storedRanges.map(\.pair) ?? []
    }

    /// Takes in what the player asked for. Apple's AVFoundation keeps no log of that.
    mutating func add(requestsOf asset: AVURLAsset) {
        #if os(Linux)
        loadingRequests = asset.requestLog.map { request in
            LoadingRequest(
                kind: request.kind.rawValue, offset: request.offset, length: request.length, toEnd: request.toEnd,
                bytes: request.bytes, cancelled: request.isCancelled)
        }
        #endif
    }

    /// A few words for a person.
    var text: String {
        let length = duration.map { " of \(ProgressLine.clock($0))" } ?? ""
        let how = (ended ? "played to the end" : "stopped at \(ProgressLine.clock(time))") + length
        if bytesFromCache == 0, originRequests == 0 { return how + ", without the cache" }
        return how + ": "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request"))"
    }
}
