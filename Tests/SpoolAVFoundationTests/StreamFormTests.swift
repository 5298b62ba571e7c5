#if os(Linux)
import AVFoundation
import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolProxy
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

/// Tests of each form of HLS in the player of AVFoundation for Linux, through a server that starts automatically.
@Suite("HLS in an app", .timeLimit(.minutes(10)), .serialized)
@MainActor
struct StreamFormTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    @Test(
        "Z16: each form of HLS plays through the caching initializer, and again offline; each byte is fetched once",
        arguments: HLSSample.Form.allCases)
    func twice(form: HLSSample.Form) async throws {
        let sample = try await HLSSample(form)
        let origin = try await OriginServer.start(try sample.resources())
        for isFirst in [true, false] {
            let cache = try await folder.cache(HTTPUpstream.standard())
            let server = ProxyServer.inApp(cache, cachesKeys: true)
            let play = HeadlessPlay(
                AVPlayerItem(caching: origin.url("/media.m3u8"), in: cache, server: server))
            await play.load()
            #expect(await play.playToEnd())
            #expect(abs(play.item.duration.seconds - 12) < 0.5)
            if isFirst {
                for path in Set(origin.log.exchanges.map(\.path)) {
                    #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path), "\(path)")
                }
                await origin.stop()
            } else {
                #expect(cache.statistics.bytesFromOrigin == 0)
            }
            await server.stop()
            await cache.close()
        }
    }

    @Test("Z16: the keys of an encrypted stream are stored only if the app enables this or downloads the stream")
    func keys() async throws {
        let sample = try await HLSSample(.encrypted)
        let origin = try await OriginServer.start(try sample.resources())
        let cache = try await folder.cache(HTTPUpstream.standard())
        let server = ProxyServer.inApp(cache)
        let url = origin.url("/media.m3u8")
        for times in 1...2 {
            #expect(await plays(url, cache, server))
            #expect(origin.log.exchanges("/key").count == times)
        }
        try await server.preload(MediaSource(url: url), firstSeconds: nil)
        #expect(origin.log.exchanges("/key").count == 2)
        #expect(try await cache.storedResources().allSatisfy { !$0.redactedURL.hasSuffix("/key") })
        try await HLSDownloader(MediaSource(url: url), in: cache).run()
        await origin.stop()
        #expect(await plays(url, cache, server))
        await server.stop()
        await cache.close()
    }

    private func plays(_ url: URL, _ cache: MediaCache, _ server: ProxyServer) async -> Bool {
        let play = HeadlessPlay(AVPlayerItem(caching: url, in: cache, server: server))
        await play.load()
        return await play.playToEnd()
    }

    /// Returns the playlist of a live stream, from its first segment to the last one before `end`.
    private static func live(_ whole: String, upTo end: Int) -> OriginResource {
        let lines = whole.split(separator: "\n").filter {
            !$0.hasPrefix("#EXT-X-PLAYLIST-TYPE") && $0 != "#EXT-X-ENDLIST"
        }
        let head = lines.prefix { !$0.hasPrefix("#EXTINF") }
        let segments = lines.dropFirst(head.count).prefix(2 * end)
        let tail: [Substring] = end == 6 ? ["#EXT-X-ENDLIST"] : []
        let text = (head + segments + tail).joined(separator: "\n") + "\n"
        // Each playlist is a separate version, so that a truncated playlist is not completed with the end of another
        // one.
        return OriginResource(
            .data(Data(text.utf8)), etag: "\"\(end)\"", contentType: "application/vnd.apple.mpegurl")
    }

    /// Creates a live stream whose first half is available.
    private func liveStage() async throws -> (StreamStage, String) {
        var whole = ""
        let stage = try await StreamStage(in: folder) { sample, resources in
            whole = try String(contentsOf: sample.file("media.m3u8"), encoding: .utf8)
            resources["/media.m3u8"] = Self.live(whole, upTo: 3)
        }
        return (stage, whole)
    }

    @Test("Z16: a live stream plays while it grows; its playlist is reloaded, and its segments are fetched once")
    func live() async throws {
        let (stage, whole) = try await liveStage()
        let (player, origin) = (stage.player, stage.origin)
        player.play(stage.url)
        await observed { player.currentTime > 0 }
        #expect(player.duration == nil)
        for end in 4...6 {
            let asked = origin.log.exchanges("/media.m3u8").count
            origin.set("/media.m3u8", Self.live(whole, upTo: end))
            // Players do not have to reload a playlist that has ended.
            guard end < 6 else { break }
            try await origin.log.wait { exchanges in exchanges.count { $0.path == "/media.m3u8" } > asked }
        }
        await stage.expectPlayed()
        stage.expectOnce()
        #expect(player.duration == nil)
        await stage.close()
    }

    @Test(
        "N5: if the origin fails during playback, the stream waits and plays to its end; each byte is fetched once",
        arguments: [
            OriginBehavior.reset(after: nil), .status(503), .truncate(after: 20_000), .truncate(after: 0),
            .reset(after: 0),
        ])
    func outage(fault: OriginBehavior) async throws {
        let stage = try await StreamStage(in: folder)
        let player = stage.player
        let late = ["/media3.ts", "/media4.ts", "/media5.ts"]
        stage.fail(late, fault)
        player.rate = 1.25
        player.play(stage.url)
        if case .truncate = fault {
            try await stage.origin.log.wait { exchanges in exchanges.count { $0.path == "/media3.ts" } > 2 }
        } else {
            await observed { player.status == .waitingForNetwork }
            #expect(player.currentTime > 4.5, "stored media has played")
            player.pause()
            #expect(player.status == .paused)
            player.play()
        }
        #expect(player.playWhenReady && player.currentTime < 6.5 && player.rate == 1.25)
        stage.fail(late, nil)
        await stage.expectPlayed()
        #expect(player.rate == 1.25)
        try await stage.expectComplete()
        stage.expectOnce()
        await stage.close()
    }

    @Test(
        "N5: a stream in a single file waits for each part that is not stored, even if the header fields are stored")
    func outageOfParts() async throws {
        let stage = try await StreamStage(.byteRanges, in: folder)
        stage.origin.update("/media.m4s") { $0.rules = [.from(3, .reset(after: nil))] }
        stage.player.play(stage.url)
        await observed { stage.player.status == .waitingForNetwork }
        #expect(stage.player.playWhenReady && stage.player.currentTime < 11)
        stage.fail(["/media.m4s"], nil)
        await stage.expectPlayed()
        stage.expectOnce()
        try await stage.expectComplete()
        await stage.close()
    }

    @Test(
        "N5: if the origin fails at the start, the stream waits for the origin and never bypasses the cache",
        arguments: [OriginBehavior.reset(after: nil), .status(503), .truncate(after: 50)])
    func outageAtStart(fault: OriginBehavior) async throws {
        let stage = try await StreamStage(in: folder)
        stage.fail(["/media.m3u8"], fault)
        stage.player.play(stage.url)
        await observed { stage.player.status == .waitingForNetwork }
        #expect(stage.player.playWhenReady)
        try await stage.origin.log.wait { exchanges in exchanges.count > 3 }
        stage.fail(["/media.m3u8"], nil)
        await stage.expectPlayed()
        stage.expectServed()
        stage.expectOnce()
        await stage.close()
    }

    @Test("N5: an encrypted stream waits for its key, and does not bypass the cache")
    func outageOfKey() async throws {
        let stage = try await StreamStage(.encrypted, in: folder)
        stage.fail(["/key"], .reset(after: nil))
        stage.player.play(stage.url)
        await observed { stage.player.status == .waitingForNetwork }
        try await stage.origin.log.wait { exchanges in exchanges.count { $0.path == "/key" } > 3 }
        stage.fail(["/key"], nil)
        await stage.expectPlayed()
        stage.expectServed()
        await stage.close()
    }

    @Test("N5: a stream whose segments are mostly missing is reported as failed, not as ended")
    func missingSegments() async throws {
        let stage = try await StreamStage(in: folder)
        stage.fail((2...5).map { "/media\($0).ts" }, .status(404))
        stage.player.play(stage.url)
        await stage.isOver()
        #expect(stage.player.status == .failed && stage.player.error != nil && stage.player.currentTime < 6)
        await stage.close()
    }

    @Test("N5: if the server is stopped during playback, the stream continues without the server")
    func stoppedServer() async throws {
        let stage = try await StreamStage(in: folder, speed: 1)
        stage.player.play(stage.url)
        await observed { stage.player.status == .playing && stage.player.currentTime > 1 }
        await stage.server.stop()
        await stage.expectPlayed()
        await stage.close()
    }

    @Test("N5: a server that is waiting for an origin can be stopped immediately")
    func stoppedWhileWaiting() async throws {
        let stage = try await StreamStage(in: folder)
        stage.fail(["/media3.ts"], .reset(after: nil))
        stage.player.play(stage.url)
        await observed { stage.player.status == .waitingForNetwork }
        await stage.server.stop(within: .seconds(100_000))
        stage.player.load([])
        await stage.close()
    }

    @Test(
        "N5: a live stream resumes after a temporary failure of its origin",
        arguments: [OriginBehavior.reset(after: nil), .truncate(after: 50)])
    func liveOutage(fault: OriginBehavior) async throws {
        let (stage, whole) = try await liveStage()
        stage.player.play(stage.url)
        await observed { stage.player.currentTime > 0 }
        let paths = try stage.sample.resources().keys
        stage.fail(paths, fault)
        await observed { stage.player.status == .waitingForNetwork }
        stage.fail(paths, nil)
        stage.origin.set("/media.m3u8", Self.live(whole, upTo: 6))
        await stage.expectPlayed()
        await stage.close()
    }

    @Test(
        "I4, E265: if the server loses its port in the background, a new item resumes at the same position",
        arguments: [true, false])
    func lostPort(returnsToForeground: Bool) async throws {
        let stage = try await StreamStage(in: folder, speed: 1)
        let (player, server) = (stage.player, stage.server)
        player.play(stage.url)
        await observed { player.status == .playing && player.currentTime > 1 }
        player.pause()
        NotificationCenter.default.post(name: CachingPlayer.backgroundNotification, object: nil)
        let item = try #require(player.avPlayer.currentItem)
        let port = try #require(server.port)
        #expect(ListeningSockets.shutDown(port: port) >= 1)
        var configuration = ProxyConfiguration()
        configuration.port = port
        let thief = try ProxyServer(cache: stage.cache, configuration: configuration)
        try await thief.start()
        _ = await Listening.first(of: [AVPlayer.currentItemDidChangeNotification], player.avPlayer) {
            guard returnsToForeground else { return player.play() }
            NotificationCenter.default.post(name: CachingPlayer.foregroundNotification, object: nil)
        }
        if returnsToForeground { await observed { player.status == .paused } }
        #expect(player.avPlayer.currentItem !== item)
        #expect(server.port != port && player.status != .failed)
        let stopped = player.currentTime
        player.play()
        await stage.isOver()
        #expect(player.status == .ended && stopped > 0.9)
        await thief.stop()
        await stage.close()
    }

    @Test("E267: the in-app server listens on both addresses of `localhost`, on a port that is free at both addresses")
    func bothAddresses() async throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        let server = ProxyServer.inApp(cache)
        let source = MediaSource(url: address("list.m3u8"))
        let port = try #require(server.url(for: source)?.port)
        for host in ["127.0.0.1", "[::1]"] {
            // Any response proves that the server is listening.
            let url = try #require(URL(string: "http://\(host):\(port)/"))
            let response = try await HTTPUpstream.standard().open(UpstreamRequest(url: url))
            #expect(response.head.status.code >= 200)
        }
        #expect(ListeningSockets.shutDown(port: port) == 2)
        var configuration = ProxyConfiguration()
        (configuration.host, configuration.port) = ("::1", port)
        let other = try ProxyServer(cache: cache, configuration: configuration)
        try await other.start()
        let moved = try #require(server.url(for: source)?.port)
        #expect(moved != port)
        await other.stop()
        await server.stop()
        await cache.close()
    }

    @Test("N5: an event reports why media is played without the cache")
    func reasons() async throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        var events = cache.events().makeAsyncIterator()
        let list = address("list.m3u8")
        _ = AVPlayerItem(caching: list, in: cache)
        let server = ProxyServer.inApp(cache)
        await server.stop()
        _ = AVPlayerItem(caching: list, in: cache, server: server)
        for word in ["no server is set", "can't be reached"] {
            guard case .bypassed(let reason)? = await events.next()?.kind else {
                Issue.record("no event states the reason")
                return
            }
            #expect(reason.hasSuffix(word))
        }
        await cache.close()
    }

    @Test("Z14: the next entry in a queue is preloaded if it is a stream")
    func preloaded() async throws {
        let stage = try await StreamStage(in: folder)
        let (player, origin) = (stage.player, stage.origin)
        player.queue.nextEntryPreloadAmount = .seconds(3)
        let song = try await SampleMedia.mp3.file(seconds: 12)
        origin.set("/song.mp3", OriginResource(.file(song), contentType: "audio/mpeg"))
        player.load([MediaSource(url: origin.url("/song.mp3")), MediaSource(url: stage.url)])
        // Playback has not started, so these requests belong to a preload.
        try await origin.log.wait { exchanges in exchanges.contains { $0.path == "/media1.ts" && $0.isOver } }
        #expect(origin.log.exchanges("/media3.ts").isEmpty)
        player.play()
        await stage.isOver()
        #expect(player.status == .ended && player.queue.currentEntry?.source.url == stage.url)
        await stage.close()
    }
}
#endif
