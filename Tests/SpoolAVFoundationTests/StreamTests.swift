#if os(Linux)
import AVFoundation
import Foundation
import HTTPTypes
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolProxy
import SpoolTesting
import Testing

/// Tests of HLS in the player of AVFoundation for Linux, through a server that the app starts.
@Suite("HLS through a server", .timeLimit(.minutes(10)), .serialized)
@MainActor
struct StreamTests {
    /// Returns a stream that consists of two segments of real media. Its origin requires a token.
    private func resources(type: String = "application/vnd.apple.mpegurl") async throws -> [String: OriginResource] {
        let rules: [OriginRule] = [.always(.requiresField("Authorization", "Bearer 1", else: 401))]
        let segment = try await SampleMedia.ts.file(seconds: 4)
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXTINF:4,
            1.ts
            #EXT-X-DISCONTINUITY
            #EXTINF:4,
            /deep/2.ts
            #EXT-X-ENDLIST

            """
        return [
            "/a/list.m3u8": OriginResource(.data(Data(text.utf8)), contentType: type, rules: rules),
            "/a/1.ts": OriginResource(.file(segment), contentType: "video/mp2t", rules: rules),
            "/deep/2.ts": OriginResource(.file(segment), contentType: "video/mp2t", rules: rules),
        ]
    }

    private func server(_ cache: MediaCache) async throws -> ProxyServer {
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        return server
    }

    @Test("A stream that requires a token plays to its end, and again without its origin")
    func twice() async throws {
        let origin = try await OriginServer.start(try await resources())
        let folder = try ScratchFolder()
        let url = origin.url("/a/list.m3u8")
        let source = MediaSource(url: url, headerFields: [.authorization: "Bearer 1"])
        for isFirst in [true, false] {
            let cache = try await folder.cache(HTTPUpstream.standard())
            let server = try await server(cache)
            let item = AVPlayerItem(caching: source, in: cache, server: server)
            let asset = try #require(item.asset as? CachingURLAsset)
            #expect(asset.server === server && asset.loader == nil && asset.originalURL == url)
            #expect(asset.url.port == server.port)
            // Playback is slower than decoding, so that the test observes that the timestamps restart at the
            // discontinuity.
            let play = HeadlessPlay(item, speed: 10)
            await play.load()
            #expect(play.item.status == .readyToPlay)
            #expect(abs(play.item.duration.seconds - 8) < 0.5)
            #expect(await play.playToEnd())
            if isFirst {
                for path in ["/a/list.m3u8", "/a/1.ts", "/deep/2.ts"] {
                    #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path))
                }
                #expect(origin.log.exchanges.allSatisfy { $0.status != 401 })
                await origin.stop()
            } else {
                #expect(cache.statistics.bytesFromOrigin == 0)
            }
            await server.stop()
            await cache.close()
        }
    }

    @Test("Media other than HLS does not use the server, and HLS plays from its original URL if there is no server")
    func others() async throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        let server = try await server(cache)
        let (film, list) = (address("film.mp4"), address("list.M3U8"))
        #expect(AVPlayerItem(caching: film, in: cache, server: server).cachingAsset?.server == nil)
        #expect((AVPlayerItem(caching: list, in: cache).asset as? AVURLAsset)?.url == list)
        #expect(AVURLAsset.caching(list, in: cache).url == list)
        #expect(AVURLAsset.caching(list, in: cache, server: server).url == server.url(for: list))
        // The declared type has priority over the file name extension.
        let type = AVURLAssetOverrideMIMETypeKey
        let stream = CachingURLAsset(
            caching: film, in: cache, server: server, options: [type: "application/vnd.apple.mpegurl"])
        #expect(stream.server != nil && stream.url == server.url(for: film))
        await server.stop()
        #expect((AVPlayerItem(caching: list, in: cache, server: server).asset as? AVURLAsset)?.url == list)
        await cache.close()
    }

    @Test("A stream's item can be replaced by a new item that uses the same server")
    func fresh() async throws {
        let origin = try await OriginServer.start(try await resources())
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        let server = try await server(cache)
        let source = MediaSource(
            url: origin.url("/a/list.m3u8"), headerFields: [.authorization: "Bearer 1"])
        let play = HeadlessPlay(AVPlayerItem(caching: source, in: cache, server: server))
        await play.load()
        #expect(await play.player.reloadCurrentItem())
        let fresh = try #require(play.player.currentItem)
        #expect(fresh !== play.item && (fresh.asset as? CachingURLAsset)?.server === server)
        play.player.replaceCurrentItem(with: nil)
        await server.stop()
        await cache.close()
        await origin.stop()
    }

    @Test("For a stream that is recognized only by its content type, the player is redirected to the server")
    func foundOut() async throws {
        let origin = try await OriginServer.start(["/stream": try #require(try await resources()["/a/list.m3u8"])])
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        let server = try await server(cache)
        let source = MediaSource(url: origin.url("/stream"), headerFields: [.authorization: "Bearer 1"])
        let item = AVPlayerItem(caching: source, in: cache, server: server)
        let asset = try #require(item.cachingAsset)
        let ending = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        // AVFoundation for Linux does not follow redirects, and reports this error.
        guard case .failed(let error) = ending else { return #expect(Bool(false), "the request ended in another way") }
        let url = (error as NSError).userInfo[NSURLErrorFailingURLErrorKey] as? URL
        #expect(url != nil && url == server.url(for: source))
        #expect(asset.contractViolations == [])
        await server.stop()
        await cache.close()
        await origin.stop()
    }
}
#endif
