#if Tools
import ByteRanges
import Foundation
import Spool
import SpoolProxy
import Synchronization

/// A download of an entire stream into the cache, which shows its progress.
final class StreamFetch: Sendable {
    /// The result of the download.
    struct Outcome: Sendable {
        var summary: HLSDownloader.Summary
        /// The duration, in seconds.
        var seconds: Double
    }

    private let download: HLSDownloader
    private let name: String
    private let start = ContinuousClock.now
    private let state = Mutex((progress: HLSDownloader.Progress?.none, rate: RateEstimate()))

    init(_ download: HLSDownloader, of source: MediaSource) {
        self.download = download
        name = source.url.lastPathComponent.shown
    }

    /// Downloads the stream.
    ///
    /// - Throws: The errors of `HLSDownloader.run(_:)`.
    func run() async throws -> Outcome {
        let live = LiveLine { self.line(columns: $0) }
        do {
            let summary = try await download.run { progress in self.state.withLock { $0.progress = progress } }
            await live.end()
            return Outcome(summary: summary, seconds: elapsed)
        } catch {
            await live.end()
            throw error
        }
    }

    private var elapsed: Double { (ContinuousClock.now - start) / .seconds(1) }

    private func line(columns: Int) -> String {
        let now = elapsed
        return state.withLock { state in
            guard let progress = state.progress else { return name }
            let rate = state.rate.note(progress.bytes, at: now)
            return Self.line(name, progress, rate: rate, columns: columns)
        }
    }

    /// Returns the progress line, in fewer than `columns` characters. Its bar shows segments.
    static func line(_ name: String, _ progress: HLSDownloader.Progress, rate: Double?, columns: Int) -> String {
        var facts = ["\(progress.storedSegmentCount) of \(progress.segmentCount.counted("segment"))"]
        facts.append(ByteCount(bytes: progress.bytes).text)
        if let rate { facts.append(ByteCount(bytes: Int64(saturating: rate)).text + "/s") }
        let (stored, all) = (Int64(progress.storedSegmentCount), Int64(progress.segmentCount))
        return RangeBar.line(
            before: name, ByteRangeSet(0..<stored), length: all, after: facts.joined(separator: "  "), columns: columns)
    }
}

/// The stream that `spool get --hls` downloaded, and the sources of its bytes.
struct StreamReport: Encodable, Sendable {
    var url: String
    var variant: String
    var segments: Int
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double

    /// Creates a report.
    ///
    /// - Parameter counts: The statistics of the entire cache after it has been closed.
    init(_ outcome: StreamFetch.Outcome, of source: MediaSource, counts: TransferStatistics) {
        let progress = outcome.summary.progress
        url = source.redactedURL
        variant = MediaSource(url: outcome.summary.variant).redactedURL
        segments = progress.segmentCount
        bytes = progress.bytes
        bytesFromOrigin = counts.bytesFromOrigin
        // Bytes that were read twice are counted once.
        bytesFromCache = max(0, progress.bytes - counts.freshBytes)
        originRequests = counts.originRequests
        seconds = outcome.seconds
    }

    /// A one-line summary.
    var text: String {
        "\(segments.counted("segment")), \(ByteCount(bytes: bytes).text) in \(String(format: "%.1f", seconds)) s: "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request")); "
            + "the whole stream is cached"
    }
}
#endif
