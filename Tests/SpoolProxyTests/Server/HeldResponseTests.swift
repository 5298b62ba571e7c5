import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Reloads of low-latency playlists and requests for their next part. An origin delays both until new media exists.
@Suite(.timeLimit(.minutes(5))) struct HeldResponseTests {
    private static func playlist(_ last: Int) -> String {
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1
        #EXT-X-PART-INF:PART-TARGET=0.5
        #EXTINF:4,
        s\(last).mp4
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI="p\(last + 1).0.mp4"

        """
    }

    /// A live playlist that contains the requested segment. The origin delays the second and third response.
    private static var live: OriginResource {
        let tells = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                let asked = request.query.split(separator: "&").first { $0.hasPrefix("_HLS_msn=") }
                let last = asked.flatMap { Int($0.dropFirst("_HLS_msn=".count)) } ?? 11
                resource.content = .data(Data(playlist(last).utf8))
            })
        return OriginResource(
            .data(Data(playlist(11).utf8)), etag: nil, contentType: "application/vnd.apple.mpegurl",
            rules: [tells, OriginRule(1..<3, .stall(after: nil))])
    }

    /// Runs `body` with a server, its origin and clock, and the target of a live playlist that was requested once.
    private func run(
        freshness: FreshnessPolicy = .http, keys: CacheKeyPolicy = .url,
        _ body: (ProxyServer, OriginServer, ManualClock, String) async throws -> Void
    ) async throws {
        let part = OriginResource.pattern(5000, .stall(after: nil))
        let clock = ManualClock()
        try await OriginServer.run(["/live.m3u8": Self.live, "/p12.0.mp4": part]) { origin in
            try await ProxyServer.run(freshness: freshness, keys: keys, clock: clock) { server, cache in
                let target = "/http/127.0.0.1:\(origin.port)/live.m3u8"
                #expect(try await server.get(target).status == 200)
                try await body(server, origin, clock, target)
                // Playlists are not stored, even if they were received too late for the client. Under HTTP's rules, a
                // stale one may be stored for revalidation.
                while freshness == .immutable,
                    try await cache.storedResources().contains(where: { $0.redactedURL.hasSuffix(".m3u8") })
                {
                    await Task.yield()
                }
            }
        }
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `A blocking reload waits for its segment; another request times out`(freshness: FreshnessPolicy) async throws {
        try await run(freshness: freshness) { server, origin, clock, target in
            async let held = server.get(target + "?_HLS_msn=12&_HLS_part=1")
            try await origin.log.wait { $0.count == 2 && $0[1].isStalled }
            try await clock.waitForSleepers(1)
            async let other = server.get(target + "?a=b", "User-Agent: AppleCoreMedia/1.0\r\n")
            try await origin.log.wait { $0.count == 3 && $0[2].isStalled }
            try await clock.waitForSleepers(2)
            clock.advance(by: .seconds(2))
            #expect(try await other.status == 504)
            clock.advance(by: .seconds(9))
            origin.release("/live.m3u8")
            let response = try await held
            #expect(response.status == 200)
            #expect(String(decoding: response.body, as: UTF8.self).contains("s12.mp4"))
            #expect(origin.log.exchanges[1].query == "_HLS_msn=12&_HLS_part=1")
        }
    }

    @Test func `A blocking reload fails with 503 if there is no response within three target durations`() async throws {
        try await run { server, origin, clock, target in
            async let held = server.get(target + "?_HLS_msn=12")
            try await origin.log.wait { $0.count == 2 && $0[1].isStalled }
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(12))
            let response = try await held
            #expect(response.status == 503)
            #expect(response.field("retry-after") == "1")
            origin.release()
        }
    }

    @Test func `Clients that wait for the same segment share one request`() async throws {
        // Clients share the request even if the cache key ignores the query.
        try await run(keys: .ignoringQuery) { server, origin, clock, target in
            async let first = server.get(target + "?_HLS_msn=12")
            async let second = server.get(target + "?_HLS_msn=12")
            async let later = server.get(target + "?_HLS_msn=13")
            try await clock.waitForSleepers(3)
            try await origin.log.wait { $0.count == 3 && $0[1].isStalled && $0[2].isStalled }
            origin.release()
            for response in try await [first, second] {
                #expect(String(decoding: response.body, as: UTF8.self).contains("s12.mp4"))
            }
            #expect(String(decoding: try await later.body, as: UTF8.self).contains("s13.mp4"))
        }
    }

    @Test func `A request for a part in a preload hint waits for the origin`() async throws {
        try await run { server, origin, clock, target in
            async let held = server.get(target.replacing("live.m3u8", with: "p12.0.mp4"))
            try await origin.log.wait { $0.contains { $0.path == "/p12.0.mp4" && $0.isStalled } }
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(11))
            origin.release("/p12.0.mp4")
            let response = try await held
            #expect(response.status == 200)
            #expect(response.body.count == 5000)
        }
    }
}
