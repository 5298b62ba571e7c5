import ByteRanges
import Foundation
import Spool
import SpoolProxy
import Synchronization

/// Brings a whole stream into the cache, and shows how far it has come.
final class StreamFetch: Sendable {
    /// How it ended.
    struct Outcome: Sendable {
        var summary: HLSDownloader.Summary
        /// How long it took, in seconds.
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

    /// - Throws: As `HLSDownloader.run(_:)` does.
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

    /// The line, in fewer than `columns` characters; its bar is of segments.
    static func line(_ name: String, _ progress: HLSDownloader.Progress, rate: Double?, columns: Int) -> String {
        var facts = ["\(progress.storedSegments) of \(progress.segmentCount.counted("segment"))"]
        facts.append(ByteCount(bytes: progress.bytes).text)
        if let rate { facts.append(ByteCount(bytes: Int64(rate)).text + "/s") }
        let (stored, all) = (Int64(progress.storedSegments), Int64(progress.segmentCount))
        return RangeBar.line(
            before: name, ByteRangeSet(0..<stored), length: all, after: facts.joined(separator: "  "), columns: columns)
    }
}
