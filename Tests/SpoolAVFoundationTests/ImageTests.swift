#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolTesting
import Testing

@Suite("Images through the cache", .timeLimit(.minutes(10)))
struct ImageTests {
    private static let times = [9.0, 2.5, 11.4].map { CMTime(seconds: $0, preferredTimescale: 600) }

    private func images(of asset: AVURLAsset) async -> [Data?] {
        let generator = AVAssetImageGenerator(asset: asset)
        generator.requestedTimeToleranceBefore = .zero
        generator.requestedTimeToleranceAfter = .zero
        var images: [Data?] = []
        for await element in generator.images(for: Self.times) {
            do {
                images.append(try element.image.dataProvider?.data)
            } catch {
                Issue.record(error)
            }
        }
        await generator.waitUntilIdle()
        return images
    }

    @Test(
        "Images through the cache match those from the file; each byte is fetched once, even for later images",
        arguments: [SampleMedia.mp4, .mp4MoovAtEnd, .webm], AVAssetResourceLoader.PlayerPattern.allCases)
    func twice(media: SampleMedia, pattern: AVAssetResourceLoader.PlayerPattern) async throws {
        let file = try await media.file(seconds: 12)
        let expected = await images(of: AVURLAsset(url: file))
        #expect(expected.count == Self.times.count && Set(expected).count == expected.count && !expected.contains(nil))
        let path = "/\(media.rawValue)"
        let folder = try ScratchFolder()
        let origin = try await OriginServer.start([path: OriginResource(.file(file), contentType: media.mediaType)])
        let url = origin.url(path)

        var cache = try await folder.cache(HTTPUpstream.standard())
        let first = CachingURLAsset(caching: url, in: cache)
        first.resourceLoader.playerPattern = pattern
        #expect(await images(of: first) == expected)
        #expect(first.contractViolations == [])
        await cache.waitUntilIdle()
        let statistics = try #require(first.media?.statistics)
        #expect(statistics.bytesFromOrigin == statistics.bytesStored)
        try await origin.log.waitUntilIdle()
        #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path))
        await cache.close()
        await origin.stop()

        cache = try await folder.cache(HTTPUpstream.standard())
        let second = CachingURLAsset(caching: url, in: cache)
        second.resourceLoader.playerPattern = pattern
        #expect(await images(of: second) == expected)
        #expect(second.media?.statistics.originRequests == 0)
        await cache.close()
    }

    @Test("If the origin responds with an error status, the image fails with the matching error")
    func refusal() async throws {
        let origin = try await OriginServer.start([:])
        let cache = try await ScratchFolder().cache(HTTPUpstream.standard())
        let generator = AVAssetImageGenerator(asset: CachingURLAsset(caching: origin.url("/none.mp4"), in: cache))
        let error = await #expect(throws: NSError.self) { _ = try await generator.image(at: .zero) }
        #expect(error?.domain == NSURLErrorDomain && error?.code == NSURLErrorFileDoesNotExist)
        await cache.close()
        await origin.stop()
    }

    @Test("Without a cache, a video at an HTTP URL yields the same images as its file")
    func plain() async throws {
        let file = try await SampleMedia.mp4.file(seconds: 12)
        let resource = OriginResource(.file(file), contentType: SampleMedia.mp4.mediaType)
        let origin = try await OriginServer.start(["/film.mp4": resource])
        #expect(await images(of: AVURLAsset(url: origin.url("/film.mp4"))) == images(of: AVURLAsset(url: file)))
        await origin.stop()
    }
}
#endif
