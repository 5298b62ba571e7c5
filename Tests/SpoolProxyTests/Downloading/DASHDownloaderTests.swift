import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy
@testable import SpoolStreams

/// Downloads of DASH streams from a real origin.
@Suite(.timeLimit(.minutes(5))) struct DASHDownloaderTests {
    private static let manifest = """
        <MPD mediaPresentationDuration="PT6S"><Period><AdaptationSet contentType="video">
        <SegmentTemplate duration="2" media="$RepresentationID$-$Number$.m4s" initialization="$RepresentationID$.mp4"/>
        <Representation id="low" bandwidth="100000"/><Representation id="high" bandwidth="9000000"/>
        </AdaptationSet><AdaptationSet contentType="audio">
        <Representation id="a" bandwidth="64000"><BaseURL>a.mp4</BaseURL><SegmentBase indexRange="0-99"/></Representation>
        </AdaptationSet></Period></MPD>
        """

    private static var resources: [String: OriginResource] {
        var manifest = OriginResource(.data(Data(manifest.utf8)), contentType: "application/dash+xml")
        manifest.headerFields[.cacheControl] = "max-age=3600"
        var resources = ["/s.mpd": manifest, "/a.mp4": OriginResource.pattern(900_000)]
        for name in ["low", "high"] {
            resources["/\(name).mp4"] = .pattern(900)
            for number in 1...3 { resources["/\(name)-\(number).m4s"] = .pattern(Int64(100_000 * number)) }
        }
        return resources
    }

    @Test func `A start contains a player's first segments; a complete download adds the others, each byte once`()
        async throws
    {
        try await OriginServer.run(Self.resources) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, cache in
                let source = MediaSource(url: origin.url("/s.mpd"))
                let start = try await DASHDownloader(source, in: cache, firstSeconds: 1).run()
                #expect(start.segmentCount == 2 && start.storedSegmentCount == 2)
                let asked = Set(origin.log.exchanges.map(\.path))
                #expect(asked == ["/s.mpd", "/low.mp4", "/low-1.m4s", "/a.mp4"])
                let whole = try await DASHDownloader(source, in: cache).run()
                #expect(whole.segmentCount == 4 && whole.fractionCompleted == 1)
                #expect(whole.bytes == Int64(Self.manifest.utf8.count) + 900 + 600_000 + 900_000)
                try await origin.log.waitUntilIdle()
                for path in Set(origin.log.exchanges.map(\.path)) {
                    #expect(origin.log.bytesSent(path) == origin.log.distinctBytesSent(path))
                }
                // The downloaded files belong to the presentation of the manifest.
                let key = cache.key(for: source)
                let parts = try await cache.storedResources().filter { $0.presentation == key }
                #expect(parts.count == 7)
            }
        }
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `Without the origin, only the downloaded representation is listed; with it, all are listed`(
        freshness: FreshnessPolicy
    ) async throws {
        try await OriginServer.run(Self.resources) { origin in
            try await ProxyServer.run(freshness: freshness) { server, cache in
                try await DASHDownloader(MediaSource(url: origin.url("/s.mpd")), in: cache).run()
                let target = "/http/127.0.0.1:\(origin.port)/s.mpd"
                #expect(String(decoding: try await server.get(target).body, as: UTF8.self) == Self.manifest)
                await origin.stop()
                // A server reuses the last result of its reachability check for several seconds. A new server has no
                // earlier result.
                let other = try ProxyServer(cache: cache, configuration: server.configuration)
                try await other.start()
                let response = try await other.get(target)
                await other.stop()
                let left = Self.manifest.replacing(#"<Representation id="low" bandwidth="100000"/>"#, with: "")
                #expect(String(decoding: response.body, as: UTF8.self) == left)
            }
        }
    }

    @Test func `A live manifest is rejected and not stored`() async throws {
        let live = OriginResource(
            .data(Data("<MPD type='dynamic'><Period/></MPD>".utf8)), contentType: "application/dash+xml")
        try await OriginServer.run(["/l.mpd": live, "/no.mpd": .pattern(100)]) { origin in
            try await ProxyServer.run(freshness: .immutable) { _, cache in
                let error = await #expect(throws: CacheError.self) {
                    try await DASHDownloader(MediaSource(url: origin.url("/l.mpd")), in: cache).run()
                }
                #expect(error?.code == .invalidArgument && error?.message.contains("is live") == true)
                let kept = try await cache.storedResources()
                #expect(kept.isEmpty)
                let other = await #expect(throws: CacheError.self) {
                    try await DASHDownloader(MediaSource(url: origin.url("/no.mpd")), in: cache).run()
                }
                #expect(other?.code == .malformedResponse && other?.message.contains("is not a DASH stream") == true)
            }
        }
    }
}
