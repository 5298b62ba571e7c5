#if os(Linux)
import AVFoundation
import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolAVFoundation

@Suite("Loading requests through the cache", .timeLimit(.minutes(10)))
struct CachingResourceLoaderTests {
    private static let length: Int64 = 3_000_000

    private let folder: ScratchFolder
    private let upstream = MemoryUpstream([
        "/song.mp3": .pattern(Self.length), "/song.m4a": .pattern(100_000, contentType: "audio/mp4"),
        "/stream": .pattern(400_000, contentType: "application/vnd.apple.mpegurl"),
    ])
    private let pattern = PatternBytes(seed: 7, length: Self.length)

    init() throws { folder = try ScratchFolder() }

    private func bytes(_ range: Range<Int64>) -> Data { Data(pattern.bytes(range)) }

    // MARK: Information

    @Test(
        "D42: content information contains the length, UTI and range support; delivering the probe bytes is optional",
        arguments: [true, false])
    func information(deliversProbe: Bool) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(
            caching: MediaSource(url: address()), in: cache, deliversProbe: deliversProbe)
        let request = ResourceLoaderDriver(asset).requestContentInformation()
        guard case .finished(let type, let length, let hasRanges) = await request.ending() else {
            return failed("not finished")
        }
        #expect(type == "public.mp3" && length == Self.length && hasRanges)
        #expect(request.data == (deliversProbe ? bytes(0..<2) : Data()))
        #expect(asset.fresh()?.loader?.deliversProbe == deliversProbe)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test(
        "Cancelling a wait for delivery ends the wait, and a cancelled wait does not retain the loader",
        .timeLimit(.minutes(10)))
    func cancelledWait() async throws {
        upstream.hold(from: 100_000)
        let cache = try await folder.cache(upstream, cancellingImmediately)
        var asset: CachingURLAsset? = CachingURLAsset(caching: address(), in: cache)
        weak let loader = asset?.loader
        let request = try ResourceLoaderDriver(#require(asset)).requestData(offset: 0)
        _ = await request.delivered(atLeast: 100_000)
        let waiting = Task { [loader] in await loader?.waitForDelivery(of: 1_000_000) }
        await loader?.queue.run {}
        waiting.cancel()
        #expect(await waiting.value == false)
        let early = Task { [loader] in
            withUnsafeCurrentTask { $0?.cancel() }
            return await loader?.waitForDelivery(of: 1_000_000)
        }
        #expect(await early.value == false)
        asset = nil
        while loader != nil {
            try Task.checkCancellation()
            await Task.yield()
        }
        await cache.close()
    }

    @Test("D42: after the cache is reopened, content information is available without a request")
    func informationIsKept() async throws {
        for launch in 0..<2 {
            let cache = try await folder.cache(upstream, cancellingImmediately)
            let asset = CachingURLAsset(caching: address(), in: cache)
            let driver = ResourceLoaderDriver(asset)
            guard case .finished(_, Self.length, true) = await driver.requestContentInformation().ending()
            else { return failed("not finished in launch \(launch)") }
            // The length is known from the response headers, but is stored only with the first bytes.
            await cache.media(for: address()).waitUntilIdle()
            await cache.close()
        }
        #expect(upstream.asked().count == 1)
    }

    @Test(
        "D42: the loader chooses the content type from the allowed types",
        arguments: [["com.apple.m4a-audio", "public.mp3"], ["public.mpeg-4"], []])
    func allowedTypes(allowed: [String]) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address("song.m4a"), in: cache)
        asset.resourceLoader.allowedContentTypes = allowed
        guard case .finished(let type?, _, _) = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        else { return failed("not finished") }
        #expect(type == allowed.first ?? "public.mpeg-4-audio")
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("D42: if no allowed type matches the resource, the request fails, and no exception is raised")
    func noAllowedType() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        asset.resourceLoader.allowedContentTypes = ["com.apple.quicktime-movie"]
        let error = await failure(of: ResourceLoaderDriver(asset).requestContentInformation())
        #expect(error?.code == NSURLErrorCannotDecodeContentData)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("A22, D42: media from an origin without range support can be read in ranges through the cache")
    func originWithoutRanges() async throws {
        var file = MemoryUpstream.File.pattern(600_000)
        file.hasRanges = false
        let cache = try await folder.cache(MemoryUpstream(["/song.mp3": file]), cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        guard case .finished(_, 600_000, true) = await driver.requestContentInformation().ending()
        else { return failed("not finished") }
        let tail = driver.requestData(offset: 500_000, knownLength: 600_000)
        _ = await tail.ending()
        let expected = Data(PatternBytes(seed: 7, length: 600_000).bytes(500_000..<600_000))
        #expect(tail.data.mismatch(with: expected) == nil)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("A22: media without a length can be read to its end from any offset")
    func unknownLength() async throws {
        var file = MemoryUpstream.File.pattern(600_000)
        (file.hasRanges, file.hasLength) = (false, false)
        let cache = try await folder.cache(MemoryUpstream(["/song.mp3": file]), cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        guard case .finished("public.mp3", nil, true) = await driver.requestContentInformation().ending()
        else { return failed("not finished") }
        let all = driver.requestData(offset: 0)
        _ = await all.ending()
        #expect(all.data.mismatch(with: file.bytes) == nil)
        let later = driver.requestData(offset: 500_000)
        _ = await later.ending()
        #expect(later.data.mismatch(with: file.bytes.dropFirst(500_000)) == nil)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("For a playlist that is recognized only by its content type, the player is redirected to the origin")
    func playlistByType() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address("stream"), in: cache)
        let error = await failure(of: ResourceLoaderDriver(asset).requestContentInformation())
        // AVFoundation for Linux does not follow redirects, and reports this error.
        #expect(error?.code == NSURLErrorUnsupportedURL)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("Under the redirect policy, the player is redirected to the origin for media without a length")
    func unknownLengthRedirects() async throws {
        var file = MemoryUpstream.File.pattern(600_000)
        (file.hasRanges, file.hasLength) = (false, false)
        let cache = try await folder.cache(MemoryUpstream(["/song.mp3": file]), cancellingImmediately)
        let loader = CachingResourceLoader(
            caching: MediaSource(url: address()), in: cache, directLoading: .redirect)
        let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
        asset.resourceLoader.setDelegate(loader, queue: loader.queue)
        let error = await failure(of: ResourceLoaderDriver(asset).requestContentInformation())
        #expect(error?.code == NSURLErrorUnsupportedURL)
        await cache.close()
    }

    @Test("E377: for media without a length, the player is redirected to the app's server, and no event is reported")
    func unknownLengthUsesServer() async throws {
        var file = MemoryUpstream.File.pattern(600_000)
        (file.hasRanges, file.hasLength) = (false, false)
        let cache = try await folder.cache(MemoryUpstream(["/song.mp3": file]), cancellingImmediately)
        var events = cache.events().makeAsyncIterator()
        let server = RecordingServer()
        let source = MediaSource(url: address(), headerFields: [.authorization: "secret"])
        let loader = CachingResourceLoader(caching: source, in: cache, directLoading: .redirect, server: server)
        loader.trace.start()
        let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
        asset.resourceLoader.setDelegate(loader, queue: loader.queue)
        _ = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        await loader.queue.run {}
        #expect(loader.trace.trace.events.last?.kind == .redirected)
        #expect(server.requested == [address()])
        #expect(loader.servedURL == server.url(for: source))
        await cache.close()
        while let event = await events.next() {
            if case .bypassed = event.kind { failed("unexpected bypass event") }
        }
    }

    @Test(
        "E260: if the transport can't load the URL, the player is redirected, and an event contains the reason",
        arguments: [UpstreamError.Code.notPermitted, .malformedResponse, .other])
    func redirectsWhatOnlyThePlayerLoads(code: UpstreamError.Code) async throws {
        let cache = try await folder.cache(FailingUpstream(code: code))
        var events = cache.events().makeAsyncIterator()
        let loader = CachingResourceLoader(caching: MediaSource(url: address()), in: cache, directLoading: .redirect)
        let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
        asset.resourceLoader.setDelegate(loader, queue: loader.queue)
        let error = await failure(of: ResourceLoaderDriver(asset).requestContentInformation())
        // AVFoundation for Linux does not follow redirects, and reports this error.
        #expect(error?.code == NSURLErrorUnsupportedURL)
        while let event = await events.next() {
            guard case .bypassed(let reason) = event.kind else { continue }
            #expect(reason.contains("load") && reason.hasSuffix("was rejected"))
            break
        }
        await cache.close()
    }

    @Test("E260: the player is not redirected if it would send a different request, or can't load the URL")
    func redirectsNothingElse() async throws {
        let insecure = NSURLErrorAppTransportSecurityRequiresSecureConnection
        let cases: [(UpstreamError.Code, DirectLoadingPolicy, MediaSource, Int)] = [
            (.notPermitted, .serve, MediaSource(url: address()), insecure),
            (.notPermitted, .redirect, MediaSource(url: address(), headerFields: [.authorization: "secret"]), insecure),
            (.untrustedServer, .redirect, MediaSource(url: address()), NSURLErrorServerCertificateUntrusted),
        ]
        for (code, policy, source, expected) in cases {
            let folder = try ScratchFolder()
            let cache = try await folder.cache(FailingUpstream(code: code))
            let loader = CachingResourceLoader(caching: source, in: cache, directLoading: policy)
            let asset = AVURLAsset(url: try #require(CachingURLAsset.cachingURL(for: address())))
            asset.resourceLoader.setDelegate(loader, queue: loader.queue)
            let error = await failure(of: ResourceLoaderDriver(asset).requestContentInformation())
            #expect(error?.code == expected)
            await cache.close()
        }
    }

    // MARK: Bytes

    @Test(
        "D43: a request to the end delivers all bytes from its offset, whatever its requested length",
        arguments: [false, true])
    func toEnd(currentOffsetStartsAtZero: Bool) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        driver.currentOffsetStartsAtZero = currentOffsetStartsAtZero
        _ = await driver.requestContentInformation().ending()
        let requests = [
            (driver.requestData(offset: 0), Int64(0)), (driver.requestData(offset: 2_000_001), 2_000_001),
            (driver.requestData(offset: 70_000, knownLength: Self.length), 70_000),
        ]
        for (request, offset) in requests {
            _ = await request.ending()
            #expect(request.data.mismatch(with: bytes(offset..<Self.length)) == nil)
        }
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("D43: bounded requests deliver exactly the requested bytes")
    func bounded() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        _ = await driver.requestContentInformation().ending()
        for range in [0..<Int64(2), 65_535..<65_537, 1_000_000..<1_300_000, Self.length - 10..<Self.length] {
            let request = driver.requestData(offset: range.lowerBound, length: Int64(range.count))
            _ = await request.ending()
            #expect(request.data.mismatch(with: bytes(range)) == nil)
        }
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("D44: bytes are delivered as they are received, before the response is complete")
    func progressive() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        upstream.hold(from: 300_000)
        _ = await driver.requestContentInformation().ending()
        let request = driver.requestData(offset: 0)
        #expect(await request.delivered(atLeast: 300_000).mismatch(with: bytes(0..<300_000)) == nil)
        upstream.hold(from: 700_000)
        #expect(await request.delivered(atLeast: 700_000).mismatch(with: bytes(0..<700_000)) == nil)
        upstream.hold(from: .max)
        _ = await request.ending()
        #expect(request.data.mismatch(with: bytes(0..<Self.length)) == nil)
        #expect(asset.requestLog.last?.isFinished == true)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    // MARK: Cancelling

    /// The state of the origin when the player cancels, and the bytes that are still received afterward.
    struct Cancel: Sendable {
        /// The number of bytes that the origin sends before the cancellation.
        var held: Int
        /// The number of bytes that the origin sends after the cancellation, or 0 if the transfer is cancelled.
        var more: Int64
    }

    static let cancels = [
        // The player cancels in the middle of a request that ends at 1 MiB. The request is paused briefly, and then
        // cancelled.
        Cancel(held: 300_000, more: 0),
        // The player cancels near the end of the request. The origin has probably sent the last bytes, so they are
        // received.
        Cancel(held: 900_000, more: (1 << 20) - 900_000),
    ]

    @Test(
        "D45: after cancellation, nothing is delivered, only bytes in transit are received, and these bytes are stored",
        arguments: cancels)
    func cancel(_ cancel: Cancel) async throws {
        let clock = ManualClock()
        let cache = try await folder.cache(upstream, clock)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        upstream.hold(from: Int64(cancel.held))
        _ = await driver.requestContentInformation().ending()
        let request = driver.requestData(offset: 0)
        _ = await request.delivered(atLeast: cancel.held)
        await upstream.isHeld()
        let asked = upstream.asked()
        #expect(asked.contains { $0.upperBound == 1 << 20 })
        request.cancel()
        if let queue = asset.resourceLoader.delegateQueue { await queue.run {} }
        if cancel.more > 0 {
            // From now on, the origin would send all bytes if they were requested.
            upstream.hold(from: .max)
            await clock.flowing { await upstream.isQuiet() }
        } else {
            // The clock advances, so the request is cancelled at its current offset.
            await clock.flowing { await upstream.isQuiet() }
            upstream.hold(from: .max)
        }
        await clock.flowing { await cache.media(for: address()).waitUntilIdle() }
        let sent = Int64(cancel.held) + cancel.more
        // Near the end of a request, the next request may already have been sent.
        let more = upstream.asked().dropFirst(asked.count)
        #expect(more.count <= (cancel.more > 0 ? 1 : 0) && more.allSatisfy { $0.lowerBound == asked.last?.upperBound })
        // Each request that waited for bytes may have received one more piece before it was cancelled.
        let pieces = cancel.more > 0 ? (16 << 10) * Int64(asked.count + 1) : 0
        #expect(upstream.sent() >= sent && upstream.sent() <= sent + pieces)
        #expect(request.data.count == cancel.held)
        // All of these bytes are stored, so each further request starts after them.
        let again = driver.requestData(offset: 100, length: sent - 100)
        await clock.flowing { _ = await again.ending() }
        #expect(again.data.mismatch(with: bytes(100..<sent)) == nil)
        #expect(upstream.asked().dropFirst(asked.count).allSatisfy { $0.lowerBound >= sent })
        #expect(asset.requestLog.map(\.isCancelled) == [false, true, false])
        #expect(asset.contractViolations == [])
        await clock.flowing { await cache.close() }
    }

    @Test("D45: cancelling a request before the content information is received does not affect other requests")
    func cancelEarly() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        upstream.hold(from: 0)
        let first = driver.requestContentInformation()
        let second = driver.requestContentInformation()
        await upstream.isHeld()
        first.cancel()
        upstream.hold(from: .max)
        guard case .finished(_, Self.length, true) = await second.ending() else {
            return failed("not finished")
        }
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("B25: a new request may start before the old one is cancelled, and no byte is fetched twice")
    func newBeforeCancel() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        upstream.hold(from: 300_000)
        _ = await driver.requestContentInformation().ending()
        let old = driver.requestData(offset: 0)
        _ = await old.delivered(atLeast: 300_000)
        let new = driver.requestData(offset: 200_000)
        _ = await new.delivered(atLeast: 100_000)
        old.cancel()
        upstream.hold(from: .max)
        _ = await new.ending()
        #expect(new.data.mismatch(with: bytes(200_000..<Self.length)) == nil)
        let sent = upstream.asked().sorted { $0.lowerBound < $1.lowerBound }
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "\(sent)")
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test(
        "Concurrent requests and cancellations deliver correct bytes and do not violate the contract",
        arguments: 1...8)
    func storm(seed: UInt64) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        var random = SplitMix(seed)
        _ = await driver.requestContentInformation().ending()
        var open: [(ResourceLoaderDriver.Request, Int64)] = []
        for _ in 0..<40 {
            let offset = Int64.random(in: 0..<Self.length, using: &random)
            open.append((driver.requestData(offset: offset), offset))
            if Bool.random(using: &random), let (request, _) = open.randomElement(using: &random) { request.cancel() }
            if open.count > 3 {
                let (request, _) = open[Int.random(in: 0..<open.count, using: &random)]
                _ = await request.delivered(atLeast: Int.random(in: 1..<200_000, using: &random))
            }
        }
        for (request, _) in open.dropLast() { request.cancel() }
        if let (request, offset) = open.last, case .finished = await request.ending() {
            #expect(request.data.count == Int(Self.length - offset))
        }
        for (request, offset) in open {
            #expect(request.data.mismatch(with: bytes(offset..<offset + Int64(request.data.count))) == nil)
        }
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    // MARK: Lifetime

    @Test("D46: the loader lives as long as its asset; releasing the asset ends all readers, and stored bytes remain")
    func lifetime() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        upstream.hold(from: 300_000)
        var asset: CachingURLAsset? = CachingURLAsset(caching: address(), in: cache)
        let loader = try #require(asset?.resourceLoader)
        weak let own = asset?.loader
        let driver = ResourceLoaderDriver(try #require(asset))
        _ = await driver.requestContentInformation().ending()
        let request = driver.requestData(offset: 0)
        _ = await request.delivered(atLeast: 300_000)
        #expect(own != nil && loader.delegate === own)
        await upstream.isHeld()
        let asked = upstream.asked()
        asset = nil
        await upstream.isQuiet()
        // Waits until the queue has run the work that was submitted when the asset was released.
        if let queue = loader.delegateQueue { await queue.run {} }
        #expect(loader.contractViolations == [])
        #expect(loader.requestLog.last?.isCancelled == true)
        // Only the asset retains the loader, and only the loader retains the resource. Both are released when the last
        // task ends.
        while own != nil || cache.openResourceCount > 0, !Task.isCancelled { await Task.yield() }
        #expect(own == nil)
        // The origin would now send all bytes, but it does not receive another request.
        upstream.hold(from: .max)
        await cache.waitUntilIdle()
        #expect(upstream.asked() == asked && upstream.sent() == 300_000)

        let next = CachingURLAsset(caching: address(), in: cache)
        let again = ResourceLoaderDriver(next).requestData(offset: 0, length: 300_000)
        _ = await again.ending()
        #expect(again.data.mismatch(with: bytes(0..<300_000)) == nil)
        #expect(upstream.asked().dropFirst(asked.count).allSatisfy { $0.lowerBound >= 300_000 }, "received bytes stay")
        await cache.close()
    }

    @Test("Suspending a loader ends its readers but not its requests, and resuming it delivers the remaining bytes")
    func restAndGoOn() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        let driver = ResourceLoaderDriver(asset)
        upstream.hold(from: 300_000)
        _ = await driver.requestContentInformation().ending()
        let request = driver.requestData(offset: 0)
        _ = await request.delivered(atLeast: 300_000)
        asset.loader?.suspend()
        await upstream.isQuiet()
        #expect(asset.requestLog.last?.isFinished == false && asset.requestLog.last?.isCancelled == false)
        asset.loader?.resume()
        upstream.hold(from: .max)
        _ = await request.ending()
        #expect(request.data.mismatch(with: bytes(0..<Self.length)) == nil)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    // MARK: Media that can't be cached, and failures

    @Test(
        "For media that can't be cached, the asset uses the original URL without a loader",
        arguments: ["file:///tmp/a.mp3", "https://host/live.m3u8", "rtsp://host/a"])
    func plain(text: String) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let url = try #require(URL(string: text))
        let asset = CachingURLAsset(caching: url, in: cache)
        #expect(asset.url == url && asset.originalURL == url)
        #expect(asset.loader == nil && asset.resourceLoader.delegate == nil && asset.cacheKey == nil)
        await cache.close()
    }

    @Test("AVURLAsset.caching returns a caching asset with the URL and cache key, or a regular asset for a file")
    func keeps() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = try #require(AVURLAsset.caching(address(), in: cache) as? CachingURLAsset)
        #expect(asset.originalURL == address() && asset.url.scheme == "spool+https")
        #expect(asset.cacheKey == cache.key(for: address()))
        let file = AVURLAsset.caching(URL(fileURLWithPath: "/tmp/a.mp3"), in: cache)
        #expect(!(file is CachingURLAsset) && file.url.isFileURL)
        await cache.close()
    }

    @Test("An error status from the origin causes an error in NSURLErrorDomain, with a CacheError as its cause")
    func refused() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address("none.mp3"), in: cache)
        let driver = ResourceLoaderDriver(asset)
        let error = await failure(of: driver.requestContentInformation())
        #expect(error?.domain == NSURLErrorDomain && error?.code == NSURLErrorFileDoesNotExist)
        #expect((error?.userInfo[NSUnderlyingErrorKey] as? CacheError)?.code == .originErrorStatus)
        // A later request causes another attempt to reach the origin.
        #expect(await failure(of: driver.requestData(offset: 0)) != nil)
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    private func failed(_ what: Comment) { Issue.record(what) }

    private func failure(of request: ResourceLoaderDriver.Request) async -> NSError? {
        guard case .failed(let error) = await request.ending() else { return nil }
        return error as NSError
    }
}

/// An origin whose transport rejects every request.
private struct FailingUpstream: Upstream {
    let code: UpstreamError.Code

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        throw UpstreamError(code, "\(request.url.absoluteString) was rejected")
    }
}
#endif
