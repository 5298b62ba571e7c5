#if os(Linux)
@testable import AVFoundation
import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolAVFoundation

@Suite("N11: renewal and on-demand availability", .timeLimit(.minutes(10)))
struct RenewalTests {
    private static let length: Int64 = 3_000_000

    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    /// A delegate that passes requests to a caching loader, and records the responses.
    private final class Watching: NSObject, AVAssetResourceLoaderDelegate, Sendable {
        let loader: CachingResourceLoader
        private let asRenewal: Bool
        /// This is safe, because the requests are used only on the loader's queue, including by the methods below.
        nonisolated(unsafe) private var requests: [AVAssetResourceLoadingRequest] = []

        init(_ loader: CachingResourceLoader, asRenewal: Bool = false) {
            self.loader = loader
            self.asRenewal = asRenewal
        }

        /// Returns the content type of the first response.
        func contentType() async -> String? {
            await loader.queue.run { self.requests.first?.contentInformationRequest?.contentType }
        }

        /// Returns whether the first response reported the entire length as available on demand.
        ///
        /// Returns `nil` if the first request was not for content information.
        func isOnDemand() async -> Bool? {
            await loader.queue.run { self.requests.first?.contentInformationRequest?.isEntireLengthAvailableOnDemand }
        }

        func resourceLoader(
            _ resourceLoader: AVAssetResourceLoader,
            shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
        ) -> Bool {
            requests.append(loadingRequest)
            guard asRenewal, let url = loadingRequest.request.url else {
                return loader.resourceLoader(resourceLoader, shouldWaitForLoadingOfRequestedResource: loadingRequest)
            }
            // The player in AVFoundation for Linux does not send renewals. This delegate converts the player's request
            // into a renewal.
            let renewal = AVAssetResourceRenewalRequest(record: loadingRequest.record, url: url)
            return loader.resourceLoader(resourceLoader, shouldWaitForRenewalOfRequestedResource: renewal)
        }
    }

    private func watched(
        _ cache: MediaCache, asRenewal: Bool = false
    ) throws -> (watching: Watching, asset: AVURLAsset) {
        let loader = CachingResourceLoader(caching: MediaSource(url: address()), in: cache, directLoading: .platform)
        let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
        let watching = Watching(loader, asRenewal: asRenewal)
        asset.resourceLoader.setDelegate(watching, queue: loader.queue)
        return (watching, asset)
    }

    @Test("N11: the entire length is reported as available on demand only when every byte is stored")
    func onDemand() async throws {
        let upstream = MemoryUpstream(["/song.mp3": .pattern(Self.length)])
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let media = cache.media(for: address())
        _ = try await media.contentInformation()
        // The first pass stores all blocks except the last one, which is short. The second pass stores the last block.
        for bytes in [Self.length - 70_000, Self.length] {
            for try await _ in media.reader(.bytes(0..<bytes)) {}
            await media.waitUntilIdle()
            let isComplete = media.knownStoredRanges.contains(0..<Self.length)
            #expect(isComplete == (bytes == Self.length))
            let (watching, asset) = try watched(cache)
            guard
                case .finished(_, Self.length, true) = await ResourceLoaderDriver(asset).requestContentInformation()
                    .ending()
            else {
                Issue.record("not finished")
                return
            }
            #expect(await watching.isOnDemand() == isComplete)
            #expect(asset.contractViolations == [])
        }
        await cache.close()
    }

    @Test("E263: a complete resource larger than the first burst is not reported as available on demand")
    func throttled() async throws {
        let length = Int64(4 << 20) + 1
        let cache = try await folder.cache(MemoryUpstream(["/song.mp3": .pattern(length)]), cancellingImmediately)
        let media = cache.media(for: address())
        for try await _ in media.reader() {}
        await media.waitUntilIdle()
        #expect(media.knownStoredRanges.contains(0..<length))
        let (watching, asset) = try watched(cache)
        _ = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        #expect(await watching.isOnDemand() == false)
        await cache.close()
    }

    @Test(
        "E264: the content type of a failed request is empty, or one that the player allows",
        arguments: [nil, "public.mp3"])
    func failedContentType(allowed: String?) async throws {
        let cache = try await folder.cache(MemoryUpstream([:]), cancellingImmediately)
        let (watching, asset) = try watched(cache)
        if let allowed { asset.resourceLoader.allowedContentTypes = [allowed] }
        guard case .failed = await ResourceLoaderDriver(asset).requestContentInformation().ending() else {
            Issue.record("not failed")
            return
        }
        #expect(await watching.contentType() == allowed ?? "")
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("N11: a renewal is accepted and served like the request that it renews")
    func renewal() async throws {
        let upstream = MemoryUpstream(["/song.mp3": .pattern(Self.length)])
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let (watching, asset) = try watched(cache, asRenewal: true)
        let driver = ResourceLoaderDriver(asset)
        guard case .finished("public.mp3", Self.length, true) = await driver.requestContentInformation().ending()
        else {
            Issue.record("not finished")
            return
        }
        let request = driver.requestData(offset: 100_000, length: 200_000)
        guard case .finished = await request.ending() else {
            Issue.record("not finished")
            return
        }
        let expected = Data(PatternBytes(seed: 7, length: Self.length).bytes(100_000..<300_000))
        #expect(request.data.mismatch(with: expected) == nil)
        #expect(asset.contractViolations == [])
        withExtendedLifetime(watching) {}
        await cache.close()
    }

    @Test("N11: credentials that expire during an open request are renewed once, and the request finishes")
    func credentials() async throws {
        let origin = GuardedUpstream(["/song.mp3": .pattern(Self.length)])
        let cache = try await folder.cache(origin) { configuration in
            cancellingImmediately(&configuration)
            configuration.readAhead.initialRequestSize = 64 << 10
            configuration.readAhead.maximumRequestSize = 256 << 10
        }
        let reasons = Mutex<[MediaSource.ResolutionReason]>([])
        let source = MediaSource(url: address()) { reason in
            let number = reasons.withLock { reasons in
                reasons.append(reason)
                return reasons.count - 1
            }
            return ResolvedRequest(url: address(), headerFields: [.authorization: "Bearer \(number)"])
        }
        let asset = CachingURLAsset(caching: source, in: cache)
        let driver = ResourceLoaderDriver(asset)
        origin.upstream.hold(from: 300_000)
        _ = await driver.requestContentInformation().ending()
        let request = driver.requestData(offset: 0)
        _ = await request.delivered(atLeast: 300_000)
        // From now on, the origin rejects each new request with the previous token.
        origin.accept(1)
        origin.upstream.hold(from: .max)
        guard case .finished = await request.ending() else {
            Issue.record("not finished")
            return
        }
        let expected = PatternBytes(seed: 7, length: Self.length).data
        #expect(request.data.mismatch(with: expected) == nil)
        #expect(reasons.withLock { $0 } == [.initial, .refused(status: 401)])
        #expect(origin.refusals >= 1)
        #expect(origin.upstream.sent() == Self.length, "each byte is fetched once")
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("N11: if renewed credentials are also rejected, the request fails with an authentication error")
    func refused() async throws {
        let origin = GuardedUpstream(["/song.mp3": .pattern(Self.length)])
        origin.accept(99)
        let cache = try await folder.cache(origin, cancellingImmediately)
        let source = MediaSource(url: address()) { _ in ResolvedRequest(url: address()) }
        let asset = CachingURLAsset(caching: source, in: cache)
        guard case .failed(let error) = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        else {
            Issue.record("not failed")
            return
        }
        #expect((error as NSError).domain == NSURLErrorDomain)
        #expect((error as NSError).code == NSURLErrorUserAuthenticationRequired)
        #expect(origin.refusals == 2, "new ones are requested once")
        await cache.close()
    }
}
#endif
