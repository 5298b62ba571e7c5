import ByteRanges
import Foundation
import Spool
import Synchronization

/// Reads a range of a media file through the cache and hands it on, a chunk at a time.
///
/// One chunk is written while the next one is read; no more than these two are in memory.
final class Fetch: Sendable {
    /// How it ended.
    struct Outcome: Sendable {
        /// The bytes that were delivered.
        var range: Range<Int64>
        /// The length of the whole; nil if no response told it.
        var length: Int64?
        /// How long it took, in seconds.
        var seconds: Double
    }

    private let media: MediaResource
    private let range: MediaRange
    private let target: OutputTarget
    private let start = ContinuousClock.now
    private let progress: Mutex<(line: ProgressLine, rate: RateEstimate)>

    /// Delivers `range` of `media` to `target`.
    init(_ media: MediaResource, _ range: MediaRange, to target: OutputTarget) {
        self.media = media
        self.range = range
        self.target = target
        progress = Mutex((ProgressLine(name: media.source.url.lastPathComponent.shown), RateEstimate()))
    }

    /// Delivers every byte of the range.
    ///
    /// - Throws: `CacheError` as `MediaReader.next()` does, and when the target can't be written; `CancellationError`.
    func run() async throws -> Outcome {
        let live = LiveLine { self.line(columns: $0) }
        do {
            let outcome = try await deliver()
            try await target.finish()
            await live.end()
            return outcome
        } catch {
            target.discard()
            await live.end()
            throw error
        }
    }

    private func deliver() async throws -> Outcome {
        // What goes nowhere but into the cache need not be read again: a slice tells that it is there, and proven.
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
        return Outcome(range: start..<end, length: length ?? media.landed.bounds?.upperBound, seconds: elapsed)
    }

    /// The first chunk; nil where the whole is asked for and the whole is empty.
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
        let (landed, now) = (media.landed, elapsed)
        return progress.withLock { progress in
            progress.line.landed = landed
            progress.line.rate = progress.rate.note(progress.line.done, at: now)
            return progress.line.text(columns: columns)
        }
    }
}

extension MediaRange {
    /// The first byte, in a resource of `length` bytes.
    func start(in length: Int64) -> Int64 {
        switch self {
        case .from(let offset): min(offset, length)
        case .bytes(let range): min(range.lowerBound, length)
        case .suffix(let count): max(0, length - max(0, count))
        }
    }

    /// The end that was asked for; nil: the end of the resource.
    var end: Int64? {
        if case .bytes(let range) = self { range.upperBound } else { nil }
    }
}
