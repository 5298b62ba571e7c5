import ByteRanges
import Foundation
import HTTPTypes
import SpoolHTTP
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

@Suite("Preloading", .timeLimit(.minutes(10)))
struct PreloaderTests {
    private static let film = PatternBytes(seed: 1, length: 3_000_000)

    private func resources(_ count: Int, _ behaviors: OriginBehavior...) -> [String: OriginResource] {
        let resource = OriginResource(.pattern(Self.film), rules: behaviors.map { .always($0) })
        return Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", resource) })
    }

    @Test("A preload of the first bytes and then of all bytes fetches each byte once")
    func amounts() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film))])
        try await stage.session { cache in
            let preloader = Preloader(cache)
            let source = MediaSource(url: stage.url())
            let first = await preloader.add(source, .bytes(500_000)).finished()
            #expect(first.phase == .finished && first.storedByteCount == 500_000 && first.targetByteCount == 500_000)
            let stored = try await cache.media(for: source).storedRanges
            #expect(stored.contains(0..<500_000) && !stored.contains(524_288))
            for _ in 0..<2 {
                let whole = await preloader.add(source, .entire).finished()
                #expect(whole.isComplete && whole.storedByteCount == 3_000_000 && whole.fractionCompleted == 1)
                #expect(stage.origin.log.bytesSent() == 3_000_000)
            }
            let more = await preloader.add(source, .bytes(.max)).finished()
            #expect(more.isComplete && more.targetByteCount == 3_000_000)
        }
        try await stage.checkComplete(Self.film)
    }

    @Test("For an unknown container, the first and last bytes are preloaded; for empty media, no bytes are preloaded")
    func start() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film)), "/empty": .pattern(0)])
        try await stage.session { cache in
            let state = await Preloader(cache).add(MediaSource(url: stage.url())).finished()
            #expect(state.isComplete && state.targetByteCount == 262_144 + 65_536)
            let stored = try await cache.media(for: stage.url()).storedRanges
            #expect(stored.contains(0..<262_144) && stored.contains(2_934_464..<3_000_000))
            for amount in [PreloadAmount.startup, .entire, .bytes(5), .bytes(-5), .seconds(3)] {
                let empty = await Preloader(cache).add(MediaSource(url: stage.url("/empty")), amount).finished()
                #expect(empty.isComplete && empty.storedByteCount == 0 && empty.targetByteCount == 0)
            }
        }
    }

    @Test(
        "A preload of a video with its index at the end stores all ranges that playback needs to start",
        arguments: [1, 2])
    func film(jobs: Int) async throws {
        let file = try await SampleContainer.mp4MoovAtEnd.file(seconds: 20)
        let data = try Data(contentsOf: file)
        let stage = try MemoryStage(["/a": OriginResource(.data(data), contentType: "video/mp4")])
        try await stage.session { cache in
            let preload = try #require(
                cache.preload([MediaSource(url: stage.url())], maximumConcurrentDownloads: jobs).first)
            let state = await preload.finished()
            #expect(state.isComplete)
            // The remaining bytes of the last requested block may still be in transit.
            await cache.waitUntilIdle()
            let stored = try await cache.media(for: stage.url()).storedRanges
            for range in try ContainerSearch(data).plan.ranges { #expect(stored.contains(range)) }
            #expect(stage.origin.log.bytesSent() == stored.byteCount)
        }
    }

    @Test("From an origin without range support, only the first bytes are preloaded")
    func sequential() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film), rules: [.always(.ignoresRanges())])])
        try await stage.session { cache in
            let state = await Preloader(cache).add(MediaSource(url: stage.url())).finished()
            #expect(state.isComplete && state.targetByteCount == 262_144)
        }
    }

    @Test("A preload fails if the origin sends an HTML page or rejects every range")
    func notCached() async throws {
        let page = OriginResource(.pattern(Self.film), contentType: "text/html")
        let refused = OriginResource(.pattern(Self.film), rules: [.always(.status(416))])
        let stage = try MemoryStage(["/page": page, "/refused": refused])
        try await stage.session { cache in
            for amount in [PreloadAmount.startup, .entire, .bytes(100_000)] {
                let page = await Preloader(cache).add(MediaSource(url: stage.url("/page")), amount).finished()
                let error = page.error as? CacheError
                #expect(page.phase == .failed && page.storedByteCount == 0, "\(amount)")
                #expect(error?.code == .malformedResponse && error?.message.contains("can't be stored") == true)
                let refused = await Preloader(cache).add(MediaSource(url: stage.url("/refused")), amount).finished()
                #expect(refused.phase == .failed && (refused.error as? CacheError)?.httpStatus == 416, "\(amount)")
            }
        }
    }

    @Test(
        "With the freshness policy http, a preload fails if the origin does not allow storing its response",
        arguments: [("no-store", "no-store"), ("private", "private"), ("max-age=60", nil)])
    func notAllowed(control: String, reason: String?) async throws {
        var film = OriginResource(.pattern(Self.film))
        film.headerFields[.cacheControl] = control
        let stage = try MemoryStage(["/a": film], freshness: .http)
        try await stage.session { cache in
            for amount in [PreloadAmount.startup, .entire, .bytes(100_000)] {
                let state = await Preloader(cache).add(MediaSource(url: stage.url()), amount).finished()
                #expect(state.isComplete == (reason == nil), "\(amount)")
                guard let reason else { continue }
                let message = (state.error as? CacheError)?.message ?? ""
                #expect(message.contains("/a can't be stored: ") && message.contains("Cache-Control: \(reason)"))
                #expect(state.storedByteCount == 0)
            }
            guard reason != nil else { return }
            let download = try await cache.downloads.add(MediaSource(url: stage.url()))
            let message = (await download.finished().error as? CacheError)?.message ?? ""
            #expect(message.contains("/a can't be stored: "), "\(message)")
        }
    }

    @Test("An empty response without a length is requested again; if it stays empty, preloads and downloads fail")
    func emptyResponse() async throws {
        func empty(_ type: String) -> OriginBehavior {
            let fields = "Content-Type: \(type)\r\nTransfer-Encoding: chunked\r\nConnection: close"
            return .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n0\r\n\r\n")
        }
        try await OriginServer.run([
            "/once.ts": OriginResource(.pattern(Self.film), rules: [.request(0, empty("video/mp2t"))]),
            "/always.ts": OriginResource(.pattern(Self.film), rules: [.always(empty("video/mp2t"))]),
            "/empty.vtt": OriginResource(.pattern(Self.film), rules: [.always(empty("text/vtt"))]),
        ]) { origin in
            let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
            func state(_ path: String, isDownload: Bool) async throws -> PreloadState {
                let source = MediaSource(url: origin.url(path))
                if isDownload { return try await cache.downloads.add(source).finished() }
                return await Preloader(cache).add(source, .entire).finished()
            }
            for isDownload in [false, true] {
                let once = try await state("/once.ts", isDownload: isDownload)
                #expect(once.isComplete && once.storedByteCount == 3_000_000)
                let asked = origin.log.exchanges("/always.ts").count
                let always = try await state("/always.ts", isDownload: isDownload)
                let message = (always.error as? CacheError)?.message ?? ""
                #expect(always.phase == .failed && message.hasSuffix("/always.ts: the origin sent an empty response"))
                #expect(origin.log.exchanges("/always.ts").count == asked + 3)
                #expect(try await state("/empty.vtt", isDownload: isDownload).isComplete)
            }
            let set = try await cache.downloads.set(Downloads.standardSet)
            #expect(set?.missing.map(\.redactedURL) == [origin.url("/always.ts").absoluteString])
            await cache.close()
        }
    }

    @Test("A preload of a complete file fails if the origin sends only a part of the file")
    func less() async throws {
        let resource = OriginResource(
            .pattern(Self.film), rules: [.from(1, .status(416)), .request(0, .rangeLimit(1_048_576))])
        let stage = try MemoryStage(["/a": resource])
        try await stage.session { cache in
            let state = await Preloader(cache).add(MediaSource(url: stage.url()), .entire).finished()
            #expect(state.phase == .failed)
        }
    }

    @Test("If the version changes during a preload, the new version is preloaded", arguments: [1, 2])
    func changes(request: Int) async throws {
        let other = PatternBytes(seed: 2, length: 3_000_000)
        let resource = OriginResource(
            .pattern(Self.film), rules: [.from(request, .version(.pattern(other), etag: "\"2\""))])
        let stage = try MemoryStage(["/a": resource])
        try await stage.session { cache in
            let state = await Preloader(cache).add(MediaSource(url: stage.url())).finished()
            #expect(state.isComplete)
            let stored = try await cache.media(for: stage.url()).storedRanges
            #expect(stored.contains(0..<262_144) && stored.contains(2_934_464..<3_000_000))
            try await cache.media(for: stage.url()).check(.bytes(0..<262_144), other)
        }
    }

    @Test("A reader gets a connection before preloads do, even for media that is being preloaded")
    func hurry() async throws {
        let hung = OriginResource(.pattern(Self.film), rules: [.always(.stall(after: 0))])
        let stage = try MemoryStage(["/hung": hung, "/a": OriginResource(.pattern(Self.film))]) {
            $0.maximumConnectionsPerOrigin = 2
        }
        try await stage.session(isFlowing: false) { cache in
            let preloader = Preloader(cache)
            let first = preloader.add(MediaSource(url: stage.url("/hung")))
            try await stage.origin.log.wait { $0.count >= 1 }
            let second = preloader.add(MediaSource(url: stage.url()), .entire)
            let origin = cache.context.coordinator.origin(of: stage.url())
            while origin.waitingCount == 0 { await Task.yield() }
            try await cache.media(for: stage.url()).check(.bytes(0..<100_000), Self.film)
            first.cancel()
            second.cancel()
        }
    }

    @Test(
        "The number of running preloads is limited; higher priorities start first, and cancelled preloads never start")
    func line() async throws {
        let stage = try MemoryStage(resources(8, .stall(after: 1000)))
        try await stage.session(isFlowing: false) { cache in
            let preloader = Preloader(cache, maximumConcurrentDownloads: 2)
            let preloads = (0..<8).map { number in
                let priority: PreloadPriority = [5: .high, 6: .low][number] ?? .normal
                return preloader.add(MediaSource(url: stage.url("/\(number)")), .entire, priority: priority)
            }
            try await stage.origin.log.wait { $0.count >= 2 }
            preloads[2].cancel()
            preloads[0].cancel()
            let begun = try await stage.origin.log.first { !["/0", "/1"].contains($0.path) }
            #expect(begun.path == "/5")
            #expect(preloads.count { $0.state.phase == .running } <= 2)
            preloader.cancelAll()
            for preload in preloads { #expect(await preload.finished().phase == .cancelled) }
            #expect(stage.origin.log.exchanges("/2").isEmpty && stage.origin.log.exchanges("/6").isEmpty)
            stage.origin.release()
        }
    }

    @Test("A paused preload waits, and later resumes where it stopped")
    func pause() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.film), rules: [.request(0, .stall(after: 300_000))])
        ])
        try await stage.session(isFlowing: false) { cache in
            let preloader = Preloader(cache)
            let preload = preloader.add(MediaSource(url: stage.url()), .entire)
            for await state in preload.states where state.storedByteCount > 0 { break }
            preloader.isPaused = true
            for await state in preload.states where state.phase == .waiting { break }
            #expect(preloader.isPaused)
            preloader.isPaused = false
            stage.origin.release()
            let state = try await stage.flowing { await preload.finished() }
            #expect(state.isComplete)
            #expect(stage.origin.log.distinctBytesSent("/a") == 3_000_000)
            #expect(stage.origin.log.bytesSent() <= 3_060_000)
        }
        try await stage.checkComplete(Self.film)
    }

    @Test("A preload that the origin rejects reports the reason, and other preloads complete")
    func refused() async throws {
        let stage = try MemoryStage([
            "/gone": .pattern(10, .status(404)), "/a": OriginResource(.pattern(Self.film)),
        ])
        try await stage.session { cache in
            let sources = ["/gone", "/a"].map { MediaSource(url: stage.url($0)) }
            let preloads = cache.preload(sources, .bytes(1000), maximumConcurrentDownloads: 1)
            let gone = await preloads[0].finished()
            #expect(gone.phase == .failed && (gone.error as? CacheError)?.code == .originErrorStatus)
            #expect(await preloads[1].finished().isComplete)
        }
    }

    @Test("A preload that exceeds the capacity fails with an error")
    func capacity() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film))]) { $0.capacity = .bytes(1 << 20) }
        try await stage.session { cache in
            let state = await Preloader(cache).add(MediaSource(url: stage.url()), .entire).finished()
            #expect((state.error as? CacheError)?.code == .capacityExceeded)
            #expect(await Preloader(cache).add(MediaSource(url: stage.url()), .bytes(900_000)).finished().isComplete)
        }
    }

    @Test("E107: a preload of a body of unknown length fails with an error when it reaches the capacity")
    func endless() async throws {
        let radio = PatternBytes(seed: 2, length: 100_000_000)
        let resource = OriginResource(
            .pattern(radio), rules: [.always(.ignoresRanges()), .always(.noLength(.chunked))])
        let stage = try MemoryStage(["/a": resource]) { $0.capacity = .bytes(2 << 20) }
        try await stage.session { cache in
            let error =
                await Preloader(cache).add(MediaSource(url: stage.url()), .entire).finished().error as? CacheError
            #expect(error?.code == .capacityExceeded)
            #expect(error?.message.contains("of a body of unknown length") == true)
        }
        #expect(stage.origin.log.bytesSent("/a") < 50_000_000)
    }

    @Test("The states of a preload start with the current state and end with the final state")
    func states() async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film))])
        try await stage.session { cache in
            let preload = Preloader(cache).add(MediaSource(url: stage.url()), .entire)
            var storedRanges: [Int64] = []
            var last: PreloadState?
            for await state in preload.states {
                storedRanges.append(state.storedByteCount)
                last = state
            }
            #expect(last?.isComplete == true && storedRanges == storedRanges.sorted() && storedRanges.last == 3_000_000)
            for await state in preload.states { #expect(state.isComplete) }
        }
    }

    @Test("Closing the cache ends running and waiting preloads")
    func close() async throws {
        let stage = try MemoryStage(resources(3, .stall(after: 1000)))
        let cache = try await stage.open()
        let preloads = cache.preload(
            (0..<3).map { MediaSource(url: stage.url("/\($0)")) }, maximumConcurrentDownloads: 1)
        try await stage.origin.log.wait { !$0.isEmpty }
        stage.origin.release()
        try await stage.flowing { await cache.close() }
        for preload in preloads { #expect(await preload.finished().phase.isFinal) }
    }
}
