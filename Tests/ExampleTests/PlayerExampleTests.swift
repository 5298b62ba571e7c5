#if os(Linux)
import AVFoundation
import Foundation
import SpoolAVFoundation
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

@testable import Examples

/// Tests of the programs that use a player, with a real origin and real media.
@MainActor
@Suite(.timeLimit(.minutes(10)))
struct PlayerExampleTests {
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    /// Plays all items of a player at maximum speed.
    private func play(_ player: AVPlayer, _ last: AVPlayerItem?) async throws {
        let last = try #require(last)
        player.headless = AVPlayer.HeadlessMode(speed: nil)
        let (ends, continuation) = AsyncStream<Bool>.makeStream()
        let tokens = [Notification.Name.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime].map { name in
            NotificationCenter.default.addObserver(forName: name, object: last, queue: nil) { note in
                continuation.yield(note.name == .AVPlayerItemDidPlayToEndTime)
            }
        }
        defer { tokens.forEach(NotificationCenter.default.removeObserver) }
        player.play()
        for await isEnd in ends {
            #expect(isEnd)
            return
        }
    }

    @Test("A single URL and a queue play through the cache, and the queue plays again without the origin")
    func plays() async throws {
        var resources: [String: OriginResource] = [:]
        for media in [SampleMedia.mp3, .m4a] {
            resources["/\(media.rawValue)"] = OriginResource(
                .data(try await media.bytes(seconds: 2)), contentType: media.mediaType)
        }
        let cache = MediaCache(directory: URL(fileURLWithPath: scratch.path).appending(path: "media"))
        let urls = try await OriginServer.run(resources) { origin in
            let urls = [SampleMedia.mp3, .m4a].map { origin.url("/\($0.rawValue)") }
            let first = player(for: urls[0], in: cache)
            try await play(first, first.currentItem)
            let second = queue(of: urls, in: cache)
            try await play(second, second.items().last)
            return urls
        }
        let offline = queue(of: urls, in: cache)
        try await play(offline, offline.items().last)
        let album = player(of: urls, in: cache)
        for url in [urls[1], urls[0]] { await observed { album.queue.currentEntry?.source.url == url } }
        #expect(album.rate == 1.25 && album.error == nil)
        album.load([])
        await cache.close()
    }

    @Test("A downloaded stream plays through the app's server without its origin")
    func stream() async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n"
        let segment = OriginResource(.data(try await SampleMedia.ts.bytes(seconds: 2)), contentType: "video/mp2t")
        let list = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        let cache = MediaCache(directory: URL(fileURLWithPath: scratch.path).appending(path: "media"))
        let server = server(over: cache)
        let url = try await OriginServer.run(["/list.m3u8": list, "/1.ts": segment]) { origin in
            let url = origin.url("/list.m3u8")
            try await download(url, to: cache) { #expect((0...1).contains($0)) }
            return url
        }
        let player = player(for: url, in: cache, by: server)
        await observed { player.status == .ended || player.error != nil }
        #expect(player.status == .ended)
        await server.stop()
        await cache.close()
    }
}
#endif
