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

/// Master playlists of streams with one downloaded variant.
@Suite(.timeLimit(.minutes(5))) struct OfflineVariantsTests {
    private static let master = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="en.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="de",URI="de.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=100,AUDIO="a"
        low.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=300,AUDIO="b"

        # high
        high.m3u8
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=10,URI="i.m3u8"

        """
    private static let left = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="de",URI="de.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=300,AUDIO="b"

        # high
        high.m3u8

        """

    private static var resources: [String: OriginResource] {
        func list(_ text: String) -> OriginResource {
            var list = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
            list.headerFields[.cacheControl] = "max-age=3600"
            return list
        }
        var resources = ["/m.m3u8": list(master)]
        for name in ["low", "high", "en", "de", "i"] {
            resources["/\(name).m3u8"] = list(
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(name).ts\n#EXT-X-ENDLIST\n")
            resources["/\(name).ts"] = OriginResource(.pattern(PatternBytes(length: 1000)))
        }
        return resources
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `Without the origin, only the downloaded variant is listed; with it, all are listed`(
        freshness: FreshnessPolicy
    ) async throws {
        try await OriginServer.run(Self.resources) { origin in
            try await ProxyServer.run(freshness: freshness) { server, cache in
                try await HLSDownloader(MediaSource(url: origin.url("/m.m3u8")), in: cache).run()
                let target = "/http/127.0.0.1:\(origin.port)/m.m3u8"
                #expect(String(decoding: try await server.get(target).body, as: UTF8.self) == Self.master)
                await origin.stop()
                // A server reuses the last result of its reachability check for several seconds. A new server has no
                // earlier result.
                let other = try ProxyServer(cache: cache, configuration: server.configuration)
                try await other.start()
                let response = try await other.get(target)
                await other.stop()
                #expect(String(decoding: response.body, as: UTF8.self) == Self.left)
                #expect(response.field("content-length") == "\(Self.left.utf8.count)")
            }
        }
    }

    /// An origin that delays its response for one path until `release()`, and whose connections fail for two others.
    private final class SlowHeadUpstream: Upstream {
        private let released = AsyncStream.makeStream(of: Void.self)
        private let stoppedRequests = Mutex(0)

        func release() { released.continuation.finish() }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            if request.url.path == "/slow" { for await _ in released.stream {} }
            if request.url.path == "/lost" { throw UpstreamError(.unreachable, "no route") }
            if request.url.path == "/closed" { throw UpstreamError(.connectionLost, "closed") }
            if request.url.path == "/stopped" {
                let isFirst = stoppedRequests.withLock { count in
                    defer { count += 1 }
                    return count == 0
                }
                throw isFirst ? UpstreamError(.connectionLost, "closed") : UpstreamError(.unreachable, "no route")
            }
            return UpstreamResponse(
                head: HTTPResponse(status: .ok), url: request.url, body: UpstreamBody(AsyncStream<Data> { $0.finish() })
            )
        }
    }

    @Test("E328: a slow reachability check for one manifest does not hide the variants of other manifests")
    func slowCheck() async throws {
        let upstream = SlowHeadUpstream()
        let cache = MediaCache.inMemory(upstream: upstream)
        let clock = ManualClock()
        let offline = OfflineVariants(cache: cache, clock: clock)
        let (slow, other) = (try OriginURL("http://h/slow"), try OriginURL("http://h/other"))
        async let isReachable = offline.isReachable(slow, [:], at: 0)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await !isReachable)
        #expect(await !offline.isReachable(slow, [:], at: 1))
        #expect(await offline.isReachable(other, [:], at: 1))
        // The response for the other manifest shows that the origin is reachable.
        #expect(await offline.isReachable(slow, [:], at: 2))
        upstream.release()
        // A failed connection shows that the origin is unreachable, for all of its manifests.
        let (lost, third) = (try OriginURL("http://g/lost"), try OriginURL("http://g/other"))
        #expect(await !offline.isReachable(lost, [:], at: 2))
        #expect(await !offline.isReachable(third, [:], at: 3))
        #expect(await offline.isReachable(third, [:], at: 17))
        // An origin that closes a connection is reachable.
        let closed = try OriginURL("http://f/closed")
        #expect(await offline.isReachable(closed, [:], at: 17))
        await cache.close()
    }

    @Test("E516: an origin that has stopped is unreachable, even if an idle connection to it was reused first")
    func reusedConnection() async throws {
        let cache = MediaCache.inMemory(upstream: SlowHeadUpstream())
        let offline = OfflineVariants(cache: cache, clock: ManualClock())
        #expect(await !offline.isReachable(try OriginURL("http://e/stopped"), [:], at: 0))
        await cache.close()
    }

    @Test(
        "E127: an MPD with millions of segments is served in time while its origin is unreachable"
    )
    func hostileMPD() async throws {
        let representations = (0..<200).map { "<Representation id='\($0)'/>" }.joined()
        let text = """
            <MPD mediaPresentationDuration="PT345000S"><Period><AdaptationSet>
            <SegmentTemplate media="$RepresentationID$-$Number$.m4s" duration="1"/>\(representations)
            </AdaptationSet></Period></MPD>
            """
        var mpd = OriginResource(.data(Data(text.utf8)), contentType: "application/dash+xml")
        mpd.headerFields[.cacheControl] = "max-age=3600"
        try await OriginServer.run(["/a.mpd": mpd]) { origin in
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/a.mpd"
                #expect(try await server.get(target).status == 200)
                await origin.stop()
                let response = try await server.get(target)
                #expect(response.status == 200)
                #expect(String(decoding: response.body, as: UTF8.self) == text)
            }
        }
    }

    @Test("E127: lookups in the cache end at a limit on their number, bytes or time, or when the client disconnects")
    func budget() async throws {
        let limits = LookupBudget.Limits(lookups: 3, bytes: 100, time: .seconds(4))
        let clock = ManualClock()
        func taken(_ bytes: Int, _ before: () -> Void = {}) throws -> Int {
            var budget = LookupBudget(limits, clock)
            before()
            return try (0..<10).count { _ in try budget.allows(bytes) }
        }
        #expect(try taken(1) == 3)
        #expect(try taken(40) == 2)
        #expect(try taken(1) { clock.advance(by: .seconds(4)) } == 0)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var budget = LookupBudget(limits, clock)
            return try budget.allows(1)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: [(0, ["low"]), (500_000, ["low"]), (899_999, ["low", "mid"]), (900_000, ["low", "mid", "high"])])
    func `Variants above the maximum bit rate are not listed, but at least one variant is`(
        limit: Int, names: [String]
    ) async throws {
        let rates = ["mid": 700_000, "low": 500_000, "high": 900_000]
        let variants = ["mid", "low", "high"].map { "#EXT-X-STREAM-INF:BANDWIDTH=\(rates[$0] ?? 0)\n\($0).m3u8\n" }
        let master = "#EXTM3U\n#EXT-X-INDEPENDENT-SEGMENTS\n" + variants.joined()
        try await OriginServer.run([
            "/m.m3u8": OriginResource(.data(Data(master.utf8)), contentType: "application/vnd.apple.mpegurl")
        ]) { origin in
            let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
            let server = ProxyServer.inApp(cache, maximumBitRate: Int64(limit))
            let url = try #require(server.url(for: MediaSource(url: origin.url("/m.m3u8"))))
            let body = try await server.get(url.path).body
            let listed = String(decoding: body, as: UTF8.self).split(separator: "\n")
                .filter { $0.hasSuffix(".m3u8") }.compactMap { $0.split(separator: "/").last.map(String.init) }
            #expect(Set(listed) == Set(names.map { $0 + ".m3u8" }))
            await server.stop()
            await cache.close()
        }
    }

    @Test func `A filter retains unknown tags, and variants without a URL`() throws {
        let text =
            "#EXTM3U\r\n#EXT-X-STREAM-INF:BANDWIDTH=1\r\n#EXT-X-STREAM-INF:BANDWIDTH=2\r\na\r\n#EXT-X-X\r\n"
            + "#EXT-X-MEDIA:TYPE=NEW,GROUP-ID=\"x\",URI=\"n\"\n#EXT-X-STREAM-INF:BANDWIDTH=3\nb\n#EXT-X-STREAM-INF:BANDWIDTH=4"
        func filtered(_ keeps: (String) -> Bool) throws -> String {
            var document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL("http://h/m.m3u8"))
            document.filter(keeps)
            return String(decoding: try document.rewritten { $0.description }, as: UTF8.self)
        }
        #expect(try filtered { _ in true } == text)
        #expect(
            try filtered { $0 == "b" }
                == text.replacing("#EXT-X-STREAM-INF:BANDWIDTH=2\r\na\r\n", with: ""))
    }
}
