#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolTesting
import Synchronization
import Testing

@Suite("Real media in a headless player, through the cache", .timeLimit(.minutes(10)), .serialized)
@MainActor
struct RealMediaTests {
    private static let seconds = 12

    private func expectPlays(
        _ asset: CachingURLAsset, seeks: [Double], knowsDuration: Bool = true, _ note: Comment
    ) async {
        let play = HeadlessPlay(AVPlayerItem(asset: asset), speed: 30)
        await play.load()
        #expect(play.item.status == .readyToPlay, note)
        if knowsDuration { #expect(abs(play.item.duration.seconds - Double(Self.seconds)) < 0.5, note) }
        play.player.play()
        for target in seeks { #expect(await play.seek(to: target), note) }
        #expect(await play.playToEnd(), note)
        #expect(play.item.error == nil, note)
        #expect(asset.contractViolations == [], note)
        #expect(asset.requestLog.first?.kind == .contentInformation && asset.requestLog.first?.bytes == 2, note)
        if asset.resourceLoader.playerPattern == .friendly {
            #expect(asset.requestLog.dropFirst().allSatisfy { $0.kind == .data && $0.toEnd }, note)
        }
    }

    /// Limits requests to a size so small that a seek leaves missing ranges in media of a few hundred kilobytes.
    private func small(_ configuration: inout MediaCache.Configuration) {
        configuration.readAhead.initialRequestSize = 64 << 10
        configuration.readAhead.maximumRequestSize = 256 << 10
        configuration.readAhead.maximumReadAhead = 256 << 10
    }

    @Test(
        "D50, E80: media plays to its end, even after seeks, and again from the reopened cache without its origin",
        arguments: SampleMedia.allCases, AVAssetResourceLoader.PlayerPattern.allCases)
    func twice(media: SampleMedia, pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let file = try await media.file(seconds: Self.seconds)
        let length = OriginContent.file(file).length
        let path = "/\(media.rawValue)"
        let folder = try ScratchFolder()
        let origin = try await OriginServer.start([path: OriginResource(.file(file), contentType: media.mediaType)])
        let url = origin.url(path)

        var cache = try await folder.cache(HTTPUpstream.standard(), small)
        let first = CachingURLAsset(caching: url, in: cache)
        first.resourceLoader.playerPattern = pattern
        await expectPlays(first, seeks: [9, 3, 7, 0], "first play")
        let statistics = try #require(first.media?.statistics)
        let storedRanges = try #require(first.media?.knownStoredRanges)
        #expect(storedRanges.contains(0..<length), "\(storedRanges)")
        // Each byte was received once, according to the cache and to the origin's log.
        #expect(statistics.bytesFromOrigin == length && statistics.bytesStored == length)
        try await origin.log.waitUntilIdle()
        let sent = origin.log.exchanges(path).map { "\($0.requestedRange ?? "all"): \($0.bytesSent) \($0.ending)" }
        #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path), "\(sent)")
        await cache.close()
        await origin.stop()

        cache = try await folder.cache(HTTPUpstream.standard(), small)
        let second = CachingURLAsset(caching: url, in: cache)
        second.resourceLoader.playerPattern = pattern
        await expectPlays(second, seeks: [3, 9, 0], "second play")
        #expect(second.media?.statistics.originRequests == 0)
        #expect(second.media?.statistics.bytesFromOrigin == 0)
        await cache.close()
    }

    @Test(
        "Media with a custom scheme plays through a resolver, and again without the origin and the resolver",
        arguments: AVAssetResourceLoader.PlayerPattern.allCases)
    func schemeOfTheApp(pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let media = SampleMedia.mp3
        let file = try await media.file(seconds: Self.seconds)
        let length = OriginContent.file(file).length
        let folder = try ScratchFolder()
        let origin = try await OriginServer.start(["/42": OriginResource(.file(file), contentType: media.mediaType)])
        let address = origin.url("/42")
        let calls = Mutex(0)
        let source = MediaSource(url: try #require(URL(string: "myapp://42"))) { _ in
            calls.withLock { $0 += 1 }
            return ResolvedRequest(url: address)
        }
        for isFirst in [true, false] {
            let cache = try await folder.cache(HTTPUpstream.standard(), small)
            let item = AVPlayerItem(caching: source, in: cache)
            let asset = try #require(item.cachingAsset)
            #expect(asset.originalURL.absoluteString == "myapp://42")
            asset.resourceLoader.playerPattern = pattern
            await expectPlays(asset, seeks: [9, 3, 0], isFirst ? "first play" : "second play")
            #expect(asset.media?.knownStoredRanges.contains(0..<length) == true)
            await cache.close()
            if isFirst { await origin.stop() }
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test(
        "A22, D50, E80: media from an origin without ranges plays, even after seeks, and again without the origin",
        arguments: AVAssetResourceLoader.PlayerPattern.allCases)
    func originWithoutRanges(pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let media = SampleMedia.mp3
        let folder = try ScratchFolder()
        let resource = OriginResource(
            .file(try await media.file(seconds: Self.seconds)), contentType: media.mediaType,
            rules: [.always(.ignoresRanges())])
        let origin = try await OriginServer.start(["/a.mp3": resource])
        let url = origin.url("/a.mp3")
        for play in ["first play", "second play"] {
            let cache = try await folder.cache(HTTPUpstream.standard())
            let asset = CachingURLAsset(caching: url, in: cache)
            asset.resourceLoader.playerPattern = pattern
            await expectPlays(asset, seeks: [9, 3, 0], "\(play)")
            await cache.close()
            await origin.stop()
        }
        #expect(origin.log.exchanges.count == 1, "\(origin.log.exchanges)")
    }

    @Test(
        "A22, E69: media without a length plays, even after seeks, is stored, and plays again without its origin",
        arguments: [SampleMedia.mp3, .m4a], AVAssetResourceLoader.PlayerPattern.allCases)
    func withoutLength(media: SampleMedia, pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let folder = try ScratchFolder()
        let resource = OriginResource(
            .file(try await media.file(seconds: Self.seconds)), contentType: media.mediaType,
            rules: [.always(.ignoresRanges()), .always(.noLength(.chunked))])
        let origin = try await OriginServer.start(["/a": resource])
        let url = origin.url("/a")
        for play in ["first play", "second play"] {
            let cache = try await folder.cache(HTTPUpstream.standard())
            let asset = CachingURLAsset(caching: url, in: cache)
            asset.resourceLoader.playerPattern = pattern
            // The player computes the duration of an MP3 file from the file's length, which is not known until all
            // bytes are received.
            await expectPlays(
                asset, seeks: [9, 3, 0], knowsDuration: media != .mp3 || play == "second play", "\(play)")
            await cache.close()
            await origin.stop()
        }
        #expect(origin.log.exchanges.count == 1)
    }

    @Test(
        "Tracks are available through the cache, and loaded times extend as far as the origin has sent bytes",
        arguments: [SampleMedia.mp4, .webm],
        AVAssetResourceLoader.PlayerPattern.allCases)
    func tracksAndTimes(media: SampleMedia, pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let bytes = try await media.bytes(seconds: Self.seconds)
        let upstream = MemoryUpstream(["/film": .init(bytes, contentType: media.mediaType)])
        upstream.hold("/film", from: Int64(bytes.count) * 2 / 3)
        let cache = try await ScratchFolder().cache(upstream, small)
        let asset = CachingURLAsset(caching: address("film"), in: cache)
        asset.resourceLoader.playerPattern = pattern
        let tracks = try await asset.load(.tracks)
        #expect(tracks.map(\.mediaType) == [.video, .audio])
        #expect(try await tracks[0].load(.naturalSize) == CGSize(width: 320, height: 240))

        let play = HeadlessPlay(AVPlayerItem(asset: asset), speed: 30)
        await play.load()
        while play.item.loadedTimeRanges.isEmpty {
            _ = await Listening.first(of: [.AVPlayerItemLoadedTimeRangesDidChange], play.item)
        }
        let end = try #require(play.item.loadedTimeRanges.first).timeRangeValue.end.seconds
        #expect(end > 0 && end < Double(Self.seconds) * 0.85)
        upstream.hold("/film", from: .max)
        #expect(await play.playToEnd())
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("D48: the caching initializer plays a local file without a loader")
    func file() async throws {
        let cache = try await ScratchFolder().cache(HTTPUpstream.standard())
        let item = AVPlayerItem(caching: try await SampleMedia.mp3.file(seconds: Self.seconds), in: cache)
        #expect(item.cachingAsset == nil)
        let play = HeadlessPlay(item)
        await play.load()
        #expect(await play.playToEnd())
        #expect((item.asset as? CachingURLAsset)?.requestLog == [])
        await cache.close()
    }

    @Test("I1: one expression creates an item that uses the cache, and the item reports an error from its origin")
    func refusal() async throws {
        let origin = try await OriginServer.start([:])
        let cache = try await ScratchFolder().cache(HTTPUpstream.standard())
        let play = HeadlessPlay(AVPlayerItem(caching: origin.url("/none.mp3"), in: cache))
        await play.load()
        #expect(play.item.status == .failed)
        #expect((play.item.error as NSError?)?.code == NSURLErrorFileDoesNotExist)
        await cache.close()
        await origin.stop()
    }
}
#endif
