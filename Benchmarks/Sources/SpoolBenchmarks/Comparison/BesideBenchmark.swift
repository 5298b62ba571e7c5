#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation
import SpoolHTTP

extension Benchmark {
    /// The bytes that the origin sends to a player that stops early, with and without a cache.
    static let besideLeaving = Benchmark(
        name: "beside-leaving",
        summary: "a 20 MB video of 60 s, stopped after 5 s: MB sent by an origin with 8 MB/s, vs. no cache"
    ) {
        let video = try await BesideVideo()
        var (plain, plainLater): ([Double], [Double]) = ([], [])
        var (spool, spoolLater, again): ([Double], [Double], [Double]) = ([], [], [])
        for round in 0..<6 {
            // The order alternates: the pass-through is first in even pairs of rounds, and Spool in odd pairs.
            if [0, 3, 4].contains(round) {
                let (left, later) = try await video.leavePassThrough()
                plain.append(left)
                plainLater.append(later)
            } else {
                let play = try await video.leaveSpool()
                spool.append(play.left)
                spoolLater.append(play.later)
                again.append(play.again)
            }
        }
        func more(_ left: [Double], _ right: [Double]) -> Double { median(left) - median(right) }
        var table = Table("sent by the origin, MB", "Spool", "pass-through", "more", "goal")
        for (name, values, peers) in [
            ("when the player stopped", spool, plain), ("a second later", spoolLater, plainLater),
        ] {
            let difference = more(values, peers)
            table.add(name, decimal(median(values)), decimal(median(peers)), decimal(difference), "≤ 1.05 (1 MiB)")
        }
        table.add("for a second playback", decimal(median(again)), "", "", "0")
        table.note = "Medians of three playbacks each at normal speed; an empty cache for each pair."
        let (worst, second) = (
            max(more(spool, plain), more(spoolLater, plainLater)), again.max() ?? .nan
        )
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "stopped after 5 s: sent by the origin, vs. a pass-through",
                    spool: "\(decimal(median(spoolLater))) MB", peer: "\(decimal(median(plainLater))) MB",
                    ratio: "+ \(decimal(worst)) MB", goal: "≤ 1.05 MB more", isMet: worst <= 1.048576),
                Goal(
                    name: "a second playback: sent by the origin", spool: "\(decimal(second)) MB", goal: "0",
                    isMet: second == 0),
            ])
    }

    /// The time to a player's first bytes, with an empty cache and without a cache.
    static let besideStart = Benchmark(
        name: "beside-start",
        summary: "ms from a player's first loading request to the first bytes of media, with and without a cache"
    ) {
        let video = try await BesideVideo()
        let near = try await Pair.alternating(rounds: 41) {
            try await video.startSpool()
        } peer: {
            try await video.startPassThrough()
        }
        let away = try await Pair.alternating(rounds: 11) {
            try await video.startSpool(roundTrip: 0.05)
        } peer: {
            try await video.startPassThrough(roundTrip: 0.05)
        }
        var table = Table("first bytes of media", "Spool, ms", "pass-through, ms", "ratio")
        func add(_ name: String, _ spool: Double, _ peer: Double) {
            table.add(name, decimal(spool), decimal(peer), decimal(spool / peer))
        }
        let (spool, peer) = (median(near.spool), median(near.peer))
        add("no round-trip time, median of 41", spool, peer)
        // If the machine is also busy with other work, the faster rounds are more reliable.
        add("the same, fastest tenth", near.spool.sorted()[4], near.peer.sorted()[4])
        let (spoolAway, peerAway) = (median(away.spool), median(away.peer))
        add("a round trip of 50 ms, median of 11", spoolAway, peerAway)
        table.note = "A new connection and an empty cache for each playback."
        func goal(_ name: String, _ spool: Double, _ peer: Double) -> Goal {
            Goal(
                name: name, spool: "\(decimal(spool)) ms", peer: "\(decimal(peer)) ms", ratio: decimal(spool / peer),
                goal: "≤ 1.15 ×", isMet: spool / peer <= 1.15)
        }
        return Report(
            tables: [table],
            goals: [
                goal("first bytes for a player, vs. a pass-through", spool, peer),
                goal("the same, the origin 50 ms away", spoolAway, peerAway),
            ])
    }
}

/// A video that is fetched from a new origin for each playback.
private struct BesideVideo {
    private static let megabyte = 1e6
    private let bytes: Data

    init() async throws { bytes = try await BenchmarkVideo.make() }

    private func origin(roundTrip: TimeInterval = 0) throws -> LimitedOrigin {
        try LimitedOrigin(bytes, path: "/film.mp4", bytesPerSecond: 8e6, roundTrip: roundTrip)
    }

    /// Returns the megabytes that the origin sent until the player stopped, and until one second later.
    func leavePassThrough() async throws -> (left: Double, later: Double) {
        let origin = try origin()
        defer { origin.stop() }
        let client = HTTPUpstream.standard()
        let left: Int64 = try await {
            let (asset, delegate) = try PassThroughDelegate.asset(of: origin.url, client: client)
            try await Watching.watch(asset, for: 5)
            return withExtendedLifetime(delegate) { origin.bytesSent }
        }()
        try await Task.sleep(for: .seconds(1))
        return (Double(left) / Self.megabyte, Double(origin.bytesSent) / Self.megabyte)
    }

    /// Returns the same values for an empty cache, and the additional megabytes that the origin sent for a second
    /// playback.
    func leaveSpool() async throws -> (left: Double, later: Double, again: Double) {
        let origin = try origin()
        defer { origin.stop() }
        let folder = try TemporaryFolder("beside")
        let cache = MediaCache(directory: folder.url, upstream: HTTPUpstream.standard(), configuration: .unlimited)
        try await cache.open()
        let watch = {
            try await Watching.watch(CachingURLAsset(caching: origin.url, in: cache), for: 5)
            return origin.bytesSent
        }
        let left = try await watch()
        try await Task.sleep(for: .seconds(1))
        let later = origin.bytesSent
        _ = try await watch()
        try await Task.sleep(for: .seconds(1))
        let again = origin.bytesSent - later
        await cache.close()
        return (Double(left) / Self.megabyte, Double(later) / Self.megabyte, Double(again) / Self.megabyte)
    }

    /// The pause between opening a cache or creating a client and starting playback, as in an app. It lets background
    /// work and the removal of the previous round's files finish, because neither is part of starting playback.
    private static let rest = Duration.milliseconds(150)

    /// Returns the time to the first bytes, in milliseconds.
    func startPassThrough(roundTrip: TimeInterval = 0) async throws -> Double {
        let origin = try origin(roundTrip: roundTrip)
        defer { origin.stop() }
        let (asset, delegate) = try PassThroughDelegate.asset(of: origin.url, client: HTTPUpstream.standard())
        try await Task.sleep(for: Self.rest)
        let time = try await Watching.timeToFirstData(asset)
        return withExtendedLifetime(delegate) { time }
    }

    /// Returns the time to the first bytes with an empty cache, in milliseconds.
    func startSpool(roundTrip: TimeInterval = 0) async throws -> Double {
        let origin = try origin(roundTrip: roundTrip)
        defer { origin.stop() }
        let folder = try TemporaryFolder("beside")
        let cache = MediaCache(directory: folder.url, upstream: HTTPUpstream.standard(), configuration: .unlimited)
        try await cache.open()
        try await Task.sleep(for: Self.rest)
        let time = try await Watching.timeToFirstData(CachingURLAsset(caching: origin.url, in: cache))
        await cache.close()
        return time
    }
}
#endif
