#if Tools
import ByteRanges
import Foundation
import HTTPTypes
import Spool
import SpoolProxy
import Synchronization

/// The delivery of a range of a resource through the cache, one chunk at a time.
///
/// One chunk is written while the next one is read. At most these two chunks are in memory.
final class Fetch: Sendable {
    /// The result of a fetch.
    struct Outcome: Sendable {
        /// The delivered bytes.
        var range: Range<Int64>
        /// The length of the resource, or `nil` if no response included it.
        var length: Int64?
        /// The duration, in seconds.
        var seconds: Double
    }

    private let cache: MediaCache
    private let media: MediaResource
    private let range: MediaRange
    private let target: OutputTarget
    private let start = ContinuousClock.now
    private let progress: Mutex<(line: ProgressLine, rate: RateEstimate)>

    /// Creates a fetch that delivers `range` of `media`, which is opened through `cache`, to `target`.
    init(_ media: MediaResource, _ range: MediaRange, in cache: MediaCache, to target: OutputTarget) {
        self.cache = cache
        self.media = media
        self.range = range
        self.target = target
        progress = Mutex((ProgressLine(name: media.source.url.lastPathComponent.shown), RateEstimate()))
    }

    /// Delivers all bytes of the range.
    ///
    /// - Throws: The errors of `MediaReader.next()`, ``CommandFailure`` if the target cannot be written, or
    ///   `CancellationError`.
    func run() async throws -> Outcome {
        let live = LiveLine { self.line(columns: $0) }
        do {
            let outcome = try await deliverInAnyWay()
            try await target.finish()
            await live.end()
            return outcome
        } catch {
            target.discard()
            await live.end()
            throw error
        }
    }

    private func deliverInAnyWay() async throws -> Outcome {
        do {
            return try await deliver()
        } catch let error as CacheError where mayPassOn(error) {
            Output.remark("\(error); the response is forwarded without being cached")
            return try await passOn()
        }
    }

    /// Returns whether the cache can't use the origin's response, such as a compressed one, but the user may be able to
    /// use it. In that case, no bytes of the response have been delivered.
    private func mayPassOn(_ error: CacheError) -> Bool {
        error.code == .malformedResponse && error.httpStatus.map { [200, 203, 206].contains($0) } ?? false
            && range == .all && !target.isCacheOnly && progress.withLock { $0.line.done == 0 }
    }

    /// Requests the resource without the cache, and delivers the body of the response.
    private func passOn() async throws -> Outcome {
        let resolved = try await media.source.resolved()
        var request = UpstreamRequest(url: resolved.url, headerFields: resolved.headerFields)
        request.headerFields[.acceptEncoding] = "identity"
        let response = try await cache.relay(request)
        guard [200, 203].contains(response.head.status.code) else {
            throw CacheError(
                .originErrorStatus,
                "\(media.source.redactedURL): the origin responded with status \(response.head.status.code)",
                status: response.head.status.code, key: media.key)
        }
        var end: Int64 = 0
        for try await chunk in response.body {
            try await target.write(chunk.withUnsafeBytes { Data($0) })
            end += Int64(chunk.count)
            progress.withLock { [end] in $0.line.done = end }
        }
        return Outcome(range: 0..<end, length: end, seconds: elapsed)
    }

    private func deliver() async throws -> Outcome {
        // If the cache is the only destination, a slice proves that the bytes are stored and verified. They are not
        // read again.
        let reader = target.isCacheOnly ? media.sliceReader(range) : media.reader(range, chunkSize: 256 << 10)
        var next = try await firstChunk(of: reader)
        let length = try await media.contentInformation().length
        let start = next?.offset ?? range.start(in: length ?? 0)
        let goal = length.map { min($0, range.end ?? $0) - start }
        progress.withLock { ($0.line.length, $0.line.goal) = (length, goal) }
        var end = start
        while let chunk = next {
            if target.isCacheOnly {
                next = try await reader.next()
            } else {
                async let written: Void = target.write(chunk.data)
                next = try await reader.next()
                try await written
            }
            end = chunk.range.upperBound
            progress.withLock { $0.line.done = end - start }
        }
        return Outcome(
            range: start..<end, length: length ?? media.knownStoredRanges.bounds?.upperBound, seconds: elapsed)
    }

    /// Returns the first chunk, or `nil` if the whole resource is requested and is empty.
    private func firstChunk(of reader: MediaReader) async throws -> MediaChunk? {
        do {
            return try await reader.next()
        } catch let error as CacheError where error.code == .unsatisfiableRange && range == .all {
            guard try await media.contentInformation().length == 0 else { throw error }
            return nil
        }
    }

    private var elapsed: Double { (ContinuousClock.now - start) / .seconds(1) }

    private func line(columns: Int) -> String {
        let (storedRanges, now) = (media.knownStoredRanges, elapsed)
        return progress.withLock { progress in
            progress.line.storedRanges = storedRanges
            progress.line.rate = progress.rate.note(progress.line.done, at: now)
            return progress.line.text(columns: columns)
        }
    }
}

extension MediaRange {
    /// Returns the offset of the first byte in a resource of `length` bytes.
    func start(in length: Int64) -> Int64 {
        switch self {
        case .from(let offset): min(offset, length)
        case .bytes(let range): min(range.lowerBound, length)
        case .suffix(let count): max(0, length - max(0, count))
        }
    }

    /// The requested end, or `nil` for the end of the resource.
    var end: Int64? {
        if case .bytes(let range) = self { range.upperBound } else { nil }
    }
}

/// The bytes that `spool get` delivered, and their sources.
struct FetchReport: Encodable, Sendable {
    var url: String
    @EncodedAsNull var length: Int64?
    var range: [Int64]
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double
    var complete: Bool

    /// Creates a report.
    ///
    /// - Parameters:
    ///   - counts: The statistics after the cache has been closed, when no bytes are in transit.
    ///   - kept: The stored part of the resource, or `nil` if nothing is stored.
    init(_ outcome: Fetch.Outcome, of source: MediaSource, counts: TransferStatistics, kept: StoredResource?) {
        url = source.redactedURL
        _length = EncodedAsNull(wrappedValue: kept?.length ?? outcome.length)
        range = outcome.range.pair
        bytes = outcome.range.upperBound - outcome.range.lowerBound
        bytesFromCache = counts.bytesFromCache
        bytesFromOrigin = counts.bytesFromOrigin
        originRequests = counts.originRequests
        seconds = outcome.seconds
        complete = kept?.isComplete ?? false
    }

    /// A one-line summary.
    var text: String {
        let rate = seconds > 0 ? ", \(ByteCount(bytes: Int64(saturating: Double(bytes) / seconds)).text)/s" : ""
        return "\(ByteCount(bytes: bytes).text) in \(String(format: "%.1f", seconds)) s\(rate): "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request"))"
            + (complete ? "; all of it is cached" : "")
    }
}
#endif
