import Foundation
import Spool

extension Benchmark {
    /// The cost of opening a stored long video and of evicting it in steps, compared with a short track.
    static let scaleVideo = Benchmark(
        name: "scale-film",
        summary: "a stored video of 10 GB: ms to the first bytes after opening, s to evict all of it in steps of 8 MiB"
    ) {
        let video = try await Video(length: 10_000_000_000)
        let song = try await Video(length: 4_000_000)
        let start = try await Pair.alternating(rounds: 11) {
            try await video.firstBytes(at: 0)
        } peer: {
            try await song.firstBytes(at: 0)
        }
        let middle = try await Pair.alternating(rounds: 11) {
            try await video.firstBytes(at: 5_000_000_000)
        } peer: {
            try await song.firstBytes(at: 2_000_000)
        }
        var opening = Table(
            "first bytes after opening the cache", "video of 10 GB, ms", "track of 4 MB, ms", "ratio", "goal")
        for (name, pair, goal) in [("at the start", start, "≤ 5"), ("in the middle", middle, "")] {
            opening.add(name, decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio), goal)
        }
        opening.note = "The video was stored in \(figure(video.storingSeconds)) s."

        let smaller = try await Video(length: 1_000_000_000)
        let (small, large) = (try await smaller.drain(), try await video.drain())
        var draining = Table(
            "evicting in steps of 8 MiB", "evicted, GB", "µs for each 8 MiB", "s for each GB", "s for all")
        for (name, drain) in [("a video of 1 GB", small), ("a video of 10 GB", large)] {
            draining.add(
                name, decimal(Double(drain.bytes) / 1e9), figure(drain.seconds * 1e6 / Double(drain.steps)),
                decimal(drain.secondsPerGB), decimal(drain.secondsPerGB * Double(drain.length) / 1e9))
        }
        draining.note =
            "A GB of the longer video takes \(decimal(large.secondsPerGB / small.secondsPerGB)) times as long. Ends after "
            + "20 s; “s for all” is extrapolated."
        let time = median(start.spool)
        return Report(
            tables: [opening, draining],
            goals: [
                Goal(
                    name: "first byte of a stored video of 10 GB, vs. a track's", spool: "\(decimal(time)) ms",
                    peer: "\(decimal(median(start.peer))) ms", ratio: decimal(start.ratio), goal: "≤ 5 ms",
                    isMet: time <= 5)
            ])
    }
}

/// A cache directory with one resource, played once from start to end.
private struct Video {
    let length: Int64
    /// The time that playback took at the speed at which bytes were received, in seconds.
    let storingSeconds: Double
    private let folder: TemporaryFolder
    private let url: URL

    init(length: Int64) async throws {
        self.length = length
        folder = try TemporaryFolder("film")
        url = try StoredMedia.url("film")
        let (folder, url) = (folder, url)
        storingSeconds = try await seconds {
            let cache = MediaCache(
                directory: folder.url, upstream: MemoryOrigin(length: length), configuration: .unlimited)
            try await cache.open()
            for try await chunk in cache.media(for: url).reader(chunkSize: 1 << 20) { blackHole(chunk) }
            guard cache.storedByteCount == length else {
                throw BenchmarkError("\(cache.storedByteCount) bytes were stored")
            }
            await cache.close()
        }
    }

    /// Returns the time from opening a resource in a newly opened cache to its first bytes at an offset, in
    /// milliseconds.
    func firstBytes(at offset: Int64) async throws -> Double {
        let cache = try await open()
        let time = try await seconds {
            blackHole(try await cache.media(for: url).reader(.bytes(offset..<offset + 65_536)).next())
        }
        await cache.close()
        return time * 1000
    }

    /// The cost of evicting a resource step by step.
    struct Drain {
        var length: Int64
        var bytes: Int64 = 0
        var steps = 0
        var seconds = 0.0

        var secondsPerGB: Double { seconds / (Double(bytes) / 1e9) }
    }

    /// Evicts 8 MiB at a time, as playback in a full cache does, for at most 20 seconds.
    func drain() async throws -> Drain {
        let cache = try await open()
        var drain = Drain(length: length)
        let begin = ContinuousClock.now
        while cache.storedByteCount > 0, drain.seconds < 20 {
            let freed = try await cache.evict(to: max(0, cache.storedByteCount - (8 << 20)))
            guard freed > 0 else { throw BenchmarkError("\(cache.storedByteCount) bytes can't be evicted") }
            drain.bytes += freed
            drain.steps += 1
            drain.seconds = (ContinuousClock.now - begin) / .seconds(1)
        }
        await cache.close()
        return drain
    }

    private func open() async throws -> MediaCache {
        let cache = MediaCache(directory: folder.url, upstream: MemoryOrigin(length: length), configuration: .unlimited)
        try await cache.open()
        return cache
    }
}
