#if os(Linux)
import AVFoundation
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolAVFoundation

/// A server that records the sources for which URLs are requested, and the number of its suspensions.
final class RecordingServer: MediaServer {
    private let recorded = Mutex((urls: [URL](), suspensions: 0))

    var state: MediaServerState { .running(port: 1) }
    var requested: [URL] { recorded.withLock { $0.urls } }
    var suspensions: Int { recorded.withLock { $0.suspensions } }

    func url(for source: MediaSource) -> URL? {
        recorded.withLock { $0.urls.append(source.url) }
        return URL(string: "http://127.0.0.1:1/secret")
    }

    func suspend() { recorded.withLock { $0.suspensions += 1 } }
}

@Suite("Players' use of a server", .timeLimit(.minutes(5)))
@MainActor struct ServerUseTests {
    private let cache = MediaCache.inMemory(upstream: MemoryUpstream(["/song.mp3": .pattern(50_000)]))

    @Test("E484: an item whose loader redirected the player to the server is renewed if the server's URL has changed")
    func redirectedItem() async throws {
        let server = RecordingServer()
        let queue = CachingQueue(AVQueuePlayer(), in: cache, server: server)
        let source = MediaSource(url: try #require(URL(string: "https://media.example/song.mp3")))
        queue.append(source)
        let loader = try #require(queue.item?.cachingAsset?.loader)
        #expect(!queue.hasLostServer, "the loader has not redirected the player")
        loader.servedURL = server.url(for: source)
        #expect(!queue.hasLostServer)
        loader.servedURL = URL(string: "http://127.0.0.1:2/secret")
        #expect(queue.hasLostServer)
        queue.removeAll()
        await cache.close()
    }

    @Test("E376: in the background, the server is suspended once its last player has paused, and not before")
    func lastPlayer() async {
        let server = RecordingServer()
        let players = (0..<2).map { _ in CachingPlayer(in: cache, server: server) }
        for player in players { player.enteredBackground() }
        #expect(server.suspensions == 1, "neither plays")
        for player in players { player.willEnterForeground() }
        players[0].play()
        for player in players { player.enteredBackground() }
        #expect(server.suspensions == 1, "the first one plays")
        players[0].pause()
        #expect(server.suspensions == 2)
        // A remote command resumes playback in the background.
        players[0].play()
        players[0].pause()
        #expect(server.suspensions == 3)
        await cache.close()
    }

    @Test(
        "E376: releasing a player does not suspend the server, and the player no longer counts as a user of the server")
    func released() async {
        let server = RecordingServer()
        var first: ServerUse? = ServerUse(of: server)
        let second = ServerUse(of: server)
        first?.end()
        first?.end()
        #expect(server.suspensions == 0)
        first?.start()
        first = nil
        #expect(server.suspensions == 0)
        second.end()
        #expect(server.suspensions == 1)
        await cache.close()
    }
}
#endif
