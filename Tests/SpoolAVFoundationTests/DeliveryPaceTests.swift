#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Delivery pace", .timeLimit(.minutes(10)))
struct DeliveryPaceTests {
    private static let length: Int64 = 24 << 20

    @Test(
        "E78: after a burst, bytes are delivered at four times the media's rate; idle time restores at most one burst")
    func pace() {
        var pace = DeliveryPace()
        // The bit rate of the media is 1 MB/s, so the pace is 4 MB/s, with a burst of 20 s.
        pace.learn(length: 600_000_000, duration: 600, rate: 1)
        #expect(pace.burst == 20_000_000 && pace.bytesPerSecond == 4_000_000)
        #expect(pace.handedOver(20_000_000, at: .zero) == .zero)
        #expect(pace.handedOver(400_000, at: .zero) == .milliseconds(100))
        #expect(pace.handedOver(0, at: .milliseconds(100)) == .zero)
        #expect(pace.handedOver(20_000_000, at: .seconds(3600)) == .zero)
        #expect(pace.handedOver(4_000_000, at: .seconds(3600)) == .seconds(1))
    }

    @Test("E78: the burst and the rate stay within limits for any length, duration and playback rate")
    func bounds() {
        for (length, duration) in [(Int64?.none, 10.0), (1000, nil), (0, 10), (1000, .nan), (1000, 0), (1000, -5)]
            as [(Int64?, Double?)]
        {
            var pace = DeliveryPace()
            pace.learn(length: length, duration: duration, rate: 1)
            #expect(pace == DeliveryPace())
        }
        var slow = DeliveryPace()
        slow.learn(length: 1000, duration: 1e9, rate: 1)
        #expect(slow.burst == 4 << 20 && slow.bytesPerSecond == 524_288)
        var fast = DeliveryPace()
        fast.learn(length: .max, duration: 1e-9, rate: .greatestFiniteMagnitude)
        #expect(fast.burst <= 32 << 20 && fast.bytesPerSecond <= 2_147_483_647)
        var double = DeliveryPace()
        double.learn(length: 600_000_000, duration: 600, rate: 2)
        #expect(double.bytesPerSecond == 8_000_000)
    }

    @Test(
        "E78: stored media is delivered at a limited pace; seeks and small requests are served immediately")
    func completeFilm() async throws {
        let folder = try ScratchFolder()
        let upstream = MemoryUpstream(["/song.mp3": .pattern(Self.length)])
        let cache = try await folder.cache(upstream, cancellingImmediately)
        for try await _ in cache.media(for: address()).reader() {}
        let clock = ManualClock()
        let loader = CachingResourceLoader(
            caching: MediaSource(url: address()), in: cache, directLoading: .platform, clock: LoadingClock(clock))
        let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
        asset.resourceLoader.setDelegate(loader, queue: loader.queue)
        let driver = ResourceLoaderDriver(asset)
        _ = await driver.requestContentInformation().ending()

        let all = driver.requestData(offset: 0, knownLength: Self.length)
        try await clock.waitForSleepers(1)
        #expect(all.data.count >= 4 << 20 && all.data.count <= (4 << 20) + (128 << 10))
        // After 250 ms, the bytes that the pace allows in that time are delivered.
        clock.advance(by: .milliseconds(250))
        _ = await all.delivered(atLeast: 6 << 20)
        try await clock.waitForSleepers(1)
        #expect(all.data.count <= (6 << 20) + (128 << 10))

        let small = driver.requestData(offset: 3 << 20, length: 1 << 20)
        _ = await small.ending()
        let afterSeek = driver.requestData(offset: 20 << 20, knownLength: Self.length)
        _ = await afterSeek.ending()
        #expect(small.data.count == 1 << 20 && afterSeek.data.count == 4 << 20)
        all.cancel()
        #expect(asset.contractViolations == [])
        withExtendedLifetime(loader) {}
        await cache.close()
    }
}
#endif
