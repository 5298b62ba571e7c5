#if os(Linux)
import Foundation
import Spool
import SpoolHTTP

extension Benchmark {
    /// The effect of fifty concurrent preloads on a video that is playing.
    static let besidePreloading = Benchmark(
        name: "beside-preloading",
        summary: "reads of 64 KiB of a video at its bit rate while 50 files of 20 MB are preloaded: ms each"
    ) {
        let video = try await PreloadedVideo()
        var table = Table("fifty preloads", "median", "p99", "longest", "over 10 ms", "preloaded, MB")
        func add(_ name: String, _ plays: [PreloadedVideo.Play]) -> [Double] {
            let times = plays.flatMap(\.reads).sorted()
            let late = times.count { $0 > 10 }
            table.add(
                name, decimal(times[times.count / 2]), decimal(times[times.count * 99 / 100]), decimal(times.last ?? 0),
                "\(late) of \(times.count)", decimal(plays.map(\.megabytes).reduce(0, +) / Double(plays.count)))
            return times
        }
        var plays: [PreloadedVideo.Preloads: [PreloadedVideo.Play]] = [:]
        for _ in 0..<3 {
            for preloads in PreloadedVideo.Preloads.allCases {
                plays[preloads, default: []].append(try await video.play(beside: preloads))
            }
        }
        let alone = add("none", plays[.none] ?? [])
        let own = add("over a separate connection", plays[.overOwnLine] ?? [])
        let shared = add("over the video's connection", plays[.overSameLine] ?? [])
        table.note =
            "Three playbacks of 12 s each; a connection has 8 MB/s, the video 2.7 MB/s. The first read is not counted."
        let extra = (own.last ?? 0) - (alone.last ?? 0)
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "longest read of a video during 50 preloads", spool: "\(decimal(own.last ?? 0)) ms",
                    peer: "\(decimal(alone.last ?? 0)) ms without", ratio: "+ \(decimal(extra)) ms",
                    goal: "≤ 10 ms more", isMet: extra <= 10),
                Goal(
                    name: "the same over one connection: reads over 10 ms", spool: "\(shared.count { $0 > 10 })",
                    goal: "0",
                    isMet: shared.allSatisfy { $0 <= 10 }),
            ])
    }
}

/// A video that is read as fast as it plays, from an origin with a bandwidth of 8 MB/s.
private struct PreloadedVideo {
    enum Preloads: CaseIterable, Sendable { case none, overOwnLine, overSameLine }

    struct Play: Sendable {
        /// The duration of each read except the first, in milliseconds.
        var reads: [Double]
        /// The megabytes that the preloads fetched during the reads.
        var megabytes: Double
    }

    private static let piece = 65_536
    private static let bitRate = 2.67e6
    private let bytes: Data

    init() async throws { bytes = try await BenchmarkVideo.make() }

    func play(beside preloads: Preloads) async throws -> Play {
        let origin = try LimitedOrigin(bytes, path: "/film.mp4", bytesPerSecond: 8e6)
        let other = try LimitedOrigin(bytes, path: "/", bytesPerSecond: 8e6)
        defer {
            origin.stop()
            other.stop()
        }
        let folder = try TemporaryFolder("preloading")
        let cache = MediaCache(directory: folder.url, upstream: HTTPUpstream.standard(), configuration: .unlimited)
        try await cache.open()
        let address = (preloads == .overSameLine ? origin : other).url
        let urls = (0..<50).compactMap { URL(string: "/\($0).mp4", relativeTo: address) }
        let sources = urls.map { MediaSource(url: $0) }
        let running = preloads == .none ? [] : cache.preload(sources, .entire, maximumConcurrentDownloads: 16)
        let reads = try await read(cache.media(for: origin.url), seconds: 12)
        for preload in running { preload.cancel() }
        let stored = running.reduce(0) { $0 + $1.state.storedByteCount }
        await cache.close()
        return Play(reads: reads, megabytes: Double(stored) / 1e6)
    }

    private func read(_ media: MediaResource, seconds: Double) async throws -> [Double] {
        let clock = ContinuousClock()
        let interval = Duration.seconds(Double(Self.piece) / Self.bitRate)
        var times: [Double] = []
        var chunks = media.reader(chunkSize: Self.piece).makeAsyncIterator()
        let start = clock.now
        while clock.now - start < .seconds(seconds) {
            let begin = clock.now
            guard let chunk = try await chunks.next() else { break }
            times.append((clock.now - begin) / .milliseconds(1))
            // The reader pauses for the playing time of the chunk that it has read.
            try await clock.sleep(until: begin + interval * (Double(chunk.count) / Double(Self.piece)))
        }
        return Array(times.dropFirst())
    }
}
#endif
