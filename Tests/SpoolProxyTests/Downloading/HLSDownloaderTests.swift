import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy
@testable import SpoolStreams

/// Downloads of HLS streams from a real origin.
@Suite(.timeLimit(.minutes(5))) struct HLSDownloaderTests {
    private static let two = Data(
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:2
        #EXTINF:2,
        one.ts
        #EXTINF:2,
        two.ts
        #EXT-X-ENDLIST

        """.utf8)

    private static func list(_ text: String) -> OriginResource {
        OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
    }

    private static func withCache(_ body: (MediaCache) async throws -> Void) async throws {
        var settings = MediaCache.Configuration()
        settings.retry.maximumRetryCount = 0
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
        do {
            try await body(cache)
            await cache.close()
        } catch {
            await cache.close()
            throw error
        }
    }

    @Test(arguments: HLSSample.Form.allCases)
    func `A downloaded stream plays without its origin, and each byte is fetched once`(
        form: HLSSample.Form
    ) async throws {
        let sample = try await HLSSample(form)
        try await OriginServer.run(try sample.resources()) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, cache in
                let url = origin.url("/media.m3u8")
                let reports = Mutex<[HLSDownloader.Progress]>([])
                let summary = try await HLSDownloader(MediaSource(url: url), in: cache).run { progress in
                    reports.withLock { $0.append(progress) }
                }
                #expect(summary.variant == url)
                #expect(summary.progress.segmentCount == 6 && summary.progress.storedSegmentCount == 6)
                #expect(reports.withLock { $0.last } == summary.progress)
                #expect(reports.withLock { $0.allSatisfy { $0.bytes <= summary.progress.bytes } })
                try await origin.log.waitUntilIdle()
                let paths = Set(origin.log.exchanges.map(\.path))
                for path in paths { #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path)) }
                #expect(origin.log.bytesSent() == summary.progress.bytes)

                let asked = origin.log.exchanges.count
                let again = try await HLSDownloader(MediaSource(url: url), in: cache).run()
                #expect(again == summary)
                #expect(origin.log.exchanges.count == asked)

                await origin.stop()
                let address = try #require(server.url(for: url)).absoluteString
                let frames = try await sample.frames()
                #expect(try await FFmpegProcess.frames(of: address) == frames)
            }
        }
    }

    @Test("E496: if the origin lacks subtitles or a segment, the download fails after it has stored all other files")
    func missingFiles() async throws {
        let master = Self.list(
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="s",URI="none.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES="s"
            media.m3u8
            """)
        let media = Self.list(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-MAP:URI="data:video/mp4;base64,AAAA"
            #EXTINF:2,
            one.ts
            #EXTINF:2,
            none.ts
            #EXTINF:2,
            two.ts
            #EXT-X-ENDLIST

            """)
        let files = ["/one.ts", "/two.ts"]
        var resources = ["/master.m3u8": master, "/media.m3u8": media]
        for file in files { resources[file] = .pattern(50_000) }
        try await OriginServer.run(resources) { origin in
            try await Self.withCache { cache in
                for name in ["/master.m3u8", "/media.m3u8"] {
                    let error = await #expect(throws: CacheError.self) {
                        try await HLSDownloader(MediaSource(url: origin.url(name)), in: cache).run()
                    }
                    #expect(error?.httpStatus == 404)
                    for file in files {
                        let stored = try await cache.media(for: origin.url(file)).storedRanges
                        #expect(stored == [0..<50_000])
                    }
                }
            }
        }
    }

    @Test("A segment with an empty response is requested again; if it stays empty, the download fails at the end")
    func emptySegments() async throws {
        func empty(_ type: String) -> OriginBehavior {
            let fields = "Content-Type: \(type)\r\nTransfer-Encoding: chunked\r\nConnection: close"
            return .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n0\r\n\r\n")
        }
        let pattern = OriginContent.pattern(PatternBytes(length: 50_000))
        for isTemporary in [true, false] {
            let rule = isTemporary ? OriginRule.request(0, empty("video/mp2t")) : .always(empty("video/mp2t"))
            let list =
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
                + ["one.ts", "empty.vtt", "two.ts"]
                .map { "#EXTINF:2,\n\($0)\n" }.joined()
            try await OriginServer.run([
                "/l.m3u8": Self.list(list + "#EXT-X-ENDLIST\n"), "/one.ts": OriginResource(pattern, rules: [rule]),
                "/two.ts": OriginResource(pattern),
                "/empty.vtt": OriginResource(pattern, rules: [.always(empty("text/vtt"))]),
            ]) { origin in
                try await Self.withCache { cache in
                    let download = HLSDownloader(
                        MediaSource(url: origin.url("/l.m3u8")), in: cache, maximumConcurrentDownloads: 1)
                    if isTemporary {
                        #expect(try await download.run().progress.storedSegmentCount == 3)
                    } else {
                        let error = await #expect(throws: CacheError.self) { try await download.run() }
                        #expect(error?.message == "\(origin.url("/one.ts")): the origin sent an empty response")
                    }
                    #expect(origin.log.exchanges("/one.ts").count == (isTemporary ? 2 : 3))
                    #expect(try await cache.media(for: origin.url("/two.ts")).storedRanges == [0..<50_000])
                    let source = MediaSource(url: origin.url("/l.m3u8"))
                    let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
                    #expect(stored.map(\.isComplete) == [isTemporary])
                }
            }
        }
    }

    @Test func `The chosen variant and its audio are downloaded; other variants are not`() async throws {
        let master = Self.list(
            """
            #EXTM3U
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="session.key"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="sound/l.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="y",URI="other/l.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=1280x720,AUDIO="b"
            high/l.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=500000,RESOLUTION=640x360,AUDIO="a"
            low/l.m3u8

            """)
        var resources = ["/m.m3u8": master, "/session.key": OriginResource.pattern(16)]
        for folder in ["high", "low", "sound", "other"] {
            resources["/\(folder)/l.m3u8"] = OriginResource(.data(Self.two))
            for name in ["one", "two"] { resources["/\(folder)/\(name).ts"] = .pattern(100_000) }
        }
        try await OriginServer.run(resources) { origin in
            for (selection, folders) in [
                (HLSVariantSelection.highest, ["high", "other"]), (.lowest, ["low", "sound"]),
                (.bandwidth(atMost: 600_000), ["low", "sound"]),
                (.resolution(atMost: HLSResolution(width: 1920, height: 1080)), ["high", "other"]),
            ] {
                try await Self.withCache { cache in
                    origin.log.clear()
                    let source = MediaSource(url: origin.url("/m.m3u8"))
                    let summary = try await HLSDownloader(source, in: cache, variant: selection).run()
                    #expect(summary.variant == origin.url("/\(folders[0])/l.m3u8"))
                    #expect(summary.progress.segmentCount == 4)
                    let wanted = folders.flatMap { ["/\($0)/l.m3u8", "/\($0)/one.ts", "/\($0)/two.ts"] }
                    #expect(Set(origin.log.exchanges.map(\.path)) == Set(wanted + ["/m.m3u8", "/session.key"]))
                    let asked = origin.log.exchanges.count
                    let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
                    let isHigh = folders[0] == "high"
                    #expect(stored.map(\.url) == [summary.variant])
                    #expect(stored.map(\.bitRate) == [isHigh ? 900_000 : 500_000])
                    #expect(stored.map(\.resolution?.height) == [isHigh ? 720 : 360])
                    #expect(stored.allSatisfy { $0.isComplete && $0.segmentCount == 2 && $0.storedSegmentCount == 2 })
                    #expect(origin.log.exchanges.count == asked)
                }
            }
        }
    }

    @Test func `Stored variants are reported: none for an unknown stream, a partial one for a start`() async throws {
        let sample = try await HLSSample(.byteRanges)
        try await OriginServer.run(try sample.resources()) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/media.m3u8"))
                #expect(try await HLSDownloader.storedVariants(of: source, in: cache).isEmpty)
                try await HLSDownloader(source, in: cache, firstSeconds: 3).run()
                let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
                #expect(stored.map(\.url) == [source.url] && stored.map(\.bitRate) == [nil])
                #expect(stored.map(\.segmentCount) == [6] && stored.map(\.storedSegmentCount) == [2])
                #expect(stored.map(\.isComplete) == [false])
            }
        }
    }

    @Test(arguments: HLSSample.Form.allCases)
    func `The first seconds of a stream are its first segments, and they play without the origin`(
        form: HLSSample.Form
    ) async throws {
        let sample = try await HLSSample(form)
        try await OriginServer.run(try sample.resources()) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, cache in
                let source = MediaSource(url: origin.url("/media.m3u8"))
                let start = try await HLSDownloader(source, in: cache, variant: .first, firstSeconds: 0).run()
                #expect(start.progress.segmentCount == 1 && start.progress.storedSegmentCount == 1)
                let more = try await HLSDownloader(source, in: cache, variant: .first, firstSeconds: 3.9).run()
                #expect(more.progress.segmentCount == 2)
                // If all segments are in one file, whole blocks are fetched.
                let isOne = form == .byteRanges
                let sent = origin.log.bytesSent()
                #expect(sent >= more.progress.bytes && sent < more.progress.bytes + (isOne ? 65_536 : 1))
                await origin.stop()
                let address = try #require(server.url(for: source.url)).absoluteString
                let frames = try await sample.frames(before: 1)
                #expect(!frames.isEmpty)
                #expect(try await FFmpegProcess.frames(of: address, before: 1) == frames)
            }
        }
    }

    @Test func `The start of a stream includes the default audio rendition and no other rendition`() async throws {
        let master = Self.list(
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="other/l.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="y",DEFAULT=YES,URI="sound/l.m3u8"
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="z",URI="text/l.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO="a",SUBTITLES="s"
            low/l.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO="a",SUBTITLES="s"
            high/l.m3u8

            """)
        var resources = ["/m.m3u8": master]
        for folder in ["high", "low", "sound", "other", "text"] {
            resources["/\(folder)/l.m3u8"] = OriginResource(.data(Self.two))
            for name in ["one", "two"] { resources["/\(folder)/\(name).ts"] = .pattern(100_000) }
        }
        try await OriginServer.run(resources) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/m.m3u8"))
                _ = try await HLSDownloader(source, in: cache, variant: .first, firstSeconds: 2).run()
                let wanted = ["/m.m3u8", "/low/l.m3u8", "/low/one.ts", "/sound/l.m3u8", "/sound/one.ts"]
                #expect(Set(origin.log.exchanges.map(\.path)) == Set(wanted))
            }
        }
    }

    @Test func `A failed download reports the rejected file, and a second run resumes the download`() async throws {
        let refused = OriginResource(.pattern(PatternBytes(length: 50_000)), rules: [.always(.status(403))])
        try await OriginServer.run([
            "/l.m3u8": OriginResource(.data(Self.two)), "/one.ts": .pattern(300_000), "/two.ts": refused,
        ]) { origin in
            try await Self.withCache { cache in
                let download = HLSDownloader(
                    MediaSource(url: origin.url("/l.m3u8?token=secret")), in: cache, maximumConcurrentDownloads: 1)
                let error = try await #require(throws: CacheError.self) { try await download.run() }
                #expect(error.code == .originErrorStatus && error.httpStatus == 403)
                #expect(error.message.contains("/two.ts") && !error.message.contains("secret"))
                origin.update("/two.ts") { $0.rules = [] }
                let summary = try await download.run()
                #expect(summary.progress.storedSegmentCount == 2)
                #expect(summary.progress.bytes == Int64(Self.two.count) + 350_000)
                #expect(origin.log.bytesSent("/one.ts") == 300_000)
            }
        }
    }

    @Test func `A live stream causes an error and is not stored`() async throws {
        let live = Self.list("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\none.ts\n")
        try await OriginServer.run(["/live.m3u8": live, "/one.ts": .pattern(1000)]) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/live.m3u8"))
                let error = try await #require(throws: CacheError.self) {
                    try await HLSDownloader(source, in: cache).run()
                }
                #expect(error.code == .invalidArgument && error.message.contains("live"))
                #expect(origin.log.exchanges("/one.ts").isEmpty)
                #expect(try await cache.storedResources().isEmpty)
            }
        }
    }

    @Test(arguments: ["<html></html>", "", "#EXTM3U\nsong.mp3\n", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"])
    func `A resource that is not a stream causes an error that contains its path`(text: String) async throws {
        try await OriginServer.run(["/l.m3u8": Self.list(text)]) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/l.m3u8"))
                let error = try await #require(throws: CacheError.self) {
                    try await HLSDownloader(source, in: cache).run()
                }
                #expect(error.message.contains("/l.m3u8"))
            }
        }
    }

    @Test func `A segment that is shorter than its byte range causes an error`() async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n#EXT-X-BYTERANGE:2000@0\na.ts\n#EXT-X-ENDLIST\n"
        try await OriginServer.run(["/l.m3u8": Self.list(text), "/a.ts": .pattern(1500)]) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/l.m3u8"))
                let error = try await #require(throws: CacheError.self) {
                    try await HLSDownloader(source, in: cache).run()
                }
                #expect(error.code == .malformedResponse)
                #expect(error.message.contains("ends at byte 1500"))
            }
        }
    }

    @Test(arguments: [false, true])
    func `The header fields of a source are sent only to its own origin`(isResolved: Bool) async throws {
        try await OriginServer.run(["/far.ts": .pattern(1000)]) { other in
            let list = Self.list(
                """
                #EXTM3U
                #EXT-X-TARGETDURATION:2
                #EXTINF:2,
                near.ts
                #EXTINF:2,
                \(other.url("/far.ts").absoluteString)
                #EXT-X-ENDLIST

                """)
            try await OriginServer.run(["/l.m3u8": list, "/near.ts": .pattern(1000)]) { origin in
                try await Self.withCache { cache in
                    let url = origin.url("/l.m3u8")
                    let fields: HTTPFields = [.authorization: "Bearer 1"]
                    let asked = Mutex(0)
                    let resolved = MediaSource(url: url) { _ in
                        asked.withLock { $0 += 1 }
                        return ResolvedRequest(url: url, headerFields: fields)
                    }
                    let source = isResolved ? resolved : MediaSource(url: url, headerFields: fields)
                    try await HLSDownloader(source, in: cache).run()
                    #expect(origin.log.exchanges.count == 2)
                    #expect(origin.log.exchanges.allSatisfy { $0.headerFields[.authorization] == "Bearer 1" })
                    #expect(other.log.exchanges.count == 1)
                    #expect(other.log.exchanges.allSatisfy { $0.headerFields[.authorization] == nil })
                    #expect(asked.withLock { $0 } == (isResolved ? 1 : 0))
                }
            }
        }
    }

    @Test func `A stream that is larger than the capacity causes an error`() async throws {
        try await OriginServer.run([
            "/l.m3u8": OriginResource(.data(Self.two)), "/one.ts": .pattern(900_000), "/two.ts": .pattern(900_000),
        ]) { origin in
            var settings = MediaCache.Configuration()
            settings.capacity = .bytes(1 << 20)
            let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
            let source = MediaSource(url: origin.url("/l.m3u8"))
            let error = await #expect(throws: CacheError.self) {
                try await HLSDownloader(source, in: cache, maximumConcurrentDownloads: 1).run()
            }
            #expect(error?.code == .capacityExceeded)
            await cache.close()
        }
    }

    @Test func `A cancelled download ends, and its complete segments stay stored`() async throws {
        let slow = OriginResource(.pattern(PatternBytes(length: 300_000)), rules: [.always(.stall(after: 100_000))])
        try await OriginServer.run([
            "/l.m3u8": OriginResource(.data(Self.two)), "/one.ts": .pattern(300_000), "/two.ts": slow,
        ]) { origin in
            try await Self.withCache { cache in
                let source = MediaSource(url: origin.url("/l.m3u8"))
                let (stored, continuation) = AsyncStream<Void>.makeStream()
                let task = Task {
                    try await HLSDownloader(source, in: cache).run { progress in
                        if progress.storedSegmentCount == 1 { continuation.finish() }
                    }
                }
                for await _ in stored {}
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                let kept = try await cache.media(for: origin.url("/one.ts")).storedRanges
                #expect(kept.contains(0..<300_000))
            }
        }
    }
}
