#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Network loss", .timeLimit(.minutes(10)))
struct LostNetworkTests {
    private static let length: Int64 = 3_000_000

    private struct Stage {
        let folder: ScratchFolder
        let line: InterruptibleUpstream
        let cache: MediaCache
        let clock = ManualClock()
        let loader: CachingResourceLoader
        let asset: AVURLAsset
        let driver: ResourceLoaderDriver

        init() async throws {
            folder = try ScratchFolder()
            line = InterruptibleUpstream(MemoryUpstream(["/song.mp3": .pattern(LostNetworkTests.length)]))
            cache = try await folder.cache(line) { configuration in
                cancellingImmediately(&configuration)
                configuration.readAhead.initialRequestSize = 64 << 10
                configuration.readAhead.maximumReadAhead = 64 << 10
            }
            loader = CachingResourceLoader(
                caching: MediaSource(url: address()), in: cache, directLoading: .platform, clock: LoadingClock(clock))
            asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
            asset.resourceLoader.setDelegate(loader, queue: loader.queue)
            driver = ResourceLoaderDriver(asset)
            _ = await driver.requestContentInformation().ending()
        }
    }

    @Test(
        "E77: a request stays open while the network is lost, and resumes when the network returns",
        arguments: [false, true])
    func shouldContinue(isTold: Bool) async throws {
        let stage = try await Stage()
        stage.line.isCut = true
        let request = stage.driver.requestData(offset: 2_000_000, knownLength: Self.length)
        for tries in 1...4 {
            try await stage.clock.waitForSleepers(1)
            #expect(stage.line.failures == tries)
            #expect(stage.asset.requestLog.last?.isFinished == false)
            #expect(stage.cache.originLosses(for: address()) == [.unreachable])
            if tries < 4 { stage.clock.advance(by: .seconds(8)) }
        }
        stage.line.isCut = false
        if isTold { stage.loader.networkReturned() } else { stage.clock.advance(by: .seconds(8)) }
        _ = await request.ending()
        let expected = Data(PatternBytes(seed: 7, length: Self.length).bytes(2_000_000..<Self.length))
        #expect(request.data.mismatch(with: expected) == nil)
        #expect(stage.cache.originLosses(for: address()) == [])
        #expect(stage.asset.contractViolations == [])
        await stage.cache.close()
    }

    @Test("E77: a request that is cancelled while the network is lost is not resumed")
    func cancelled() async throws {
        let stage = try await Stage()
        stage.line.isCut = true
        let request = stage.driver.requestData(offset: 2_000_000, knownLength: Self.length)
        try await stage.clock.waitForSleepers(1)
        request.cancel()
        await stage.loader.queue.run {}
        stage.clock.advance(by: .seconds(8))
        await stage.loader.queue.run {}
        #expect(stage.line.failures == 1)
        #expect(stage.asset.contractViolations == [])
        await stage.cache.close()
    }

    @Test("E77: if the origin was never reached, the request fails immediately")
    func neverReached() async throws {
        let folder = try ScratchFolder()
        let line = InterruptibleUpstream(MemoryUpstream([:]))
        line.isCut = true
        let cache = try await folder.cache(line, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        guard case .failed(let error)? = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        else {
            Issue.record("not failed")
            return
        }
        #expect((error as NSError).code == NSURLErrorCannotConnectToHost)
        await cache.close()
    }

    @Test(
        "A request waits only if the network is lost; it fails after any response or other failure",
        arguments: [
            (UpstreamError.Code.unreachable, true), (.timedOut, true), (.connectionLost, true),
            (.untrustedServer, false),
            (.invalidRedirect, false), (.other, false),
        ])
    func kinds(code: UpstreamError.Code, isLoss: Bool) {
        let error = CacheError(.originUnavailable, "a", underlying: UpstreamError(code, "b"))
        #expect(LoadingFailure.isLossOfNetwork(error) == isLoss)
        #expect(!LoadingFailure.isLossOfNetwork(CacheError(.originUnavailable, "a", status: 503)))
        #expect(!LoadingFailure.isLossOfNetwork(CacheError(.originErrorStatus, "a", status: 404)))
        #expect(!LoadingFailure.isLossOfNetwork(CacheError(.resourceChanged, "a")))
    }
}
#endif
