import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Origins that reject requests only because of their form, such as a range or a condition.
@Suite(.timeLimit(.minutes(5))) struct RejectedRequestTests {
    /// Returns a rule that changes the resource for requests with a `Range` field.
    private static func forRanges(_ change: @escaping @Sendable (inout OriginResource) -> Void) -> OriginRule {
        OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.range] != nil { change(&resource) }
            })
    }

    /// Checks media that is first read from its middle.
    private func checkSeek(_ situation: Situation, maximumRequests: Int) async throws {
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.cache { cache in
                let media = cache.media(for: origin.url("/media"))
                expectBytes(try await media.bytes(from: 100_000), situation.bytes(from: 100_000))
                expectBytes(try await media.bytes(), situation.bytes(from: 0))
            }
            #expect(origin.log.exchanges.count <= maximumRequests)
        }
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                let part = try await PlainClient().get(url, range: "bytes=100000-")
                expectBytes(part.media(from: 100_000), situation.bytes(from: 100_000))
            }
            #expect(origin.log.exchanges.count <= maximumRequests)
        }
    }

    @Test(
        "E431: media is received from an origin that rejects every request with a Range field",
        arguments: [400, 404, 405, 500, 501])
    func statuses(_ status: Int) async throws {
        let situation = Situation(Self.forRanges { $0.refusal = OriginRefusal(status) }, seeks: [])
        try await situation.check()
        try await checkSeek(situation, maximumRequests: 4)
    }

    @Test(
        "E432: media is received if the response to a range request is missing or lacks a valid status line",
        arguments: ["", "NONSENSE\r\n\r\n", "HTTP/7.1 200 OK\r\n\r\n"])
    func statusLines(_ text: String) async throws {
        let rule = Self.forRanges { $0.raw = OriginResource.RawResponse(Array(text.utf8), closes: true) }
        let situation = Situation(rule, seeks: [])
        try await situation.check()
        try await checkSeek(situation, maximumRequests: 8)
    }

    @Test(
        "E433: after an origin has sent 404 with and without Range, further missing resources are requested only once")
    func missing() async throws {
        try await OriginServer.run([:]) { origin in
            try await CompatibilityStage.cache { cache in
                for name in ["a", "b", "c", "d"] {
                    let error = await #expect(throws: CacheError.self) {
                        try await cache.media(for: origin.url("/" + name)).bytes()
                    }
                    #expect(error?.httpStatus == 404)
                }
            }
            #expect(origin.log.exchanges.count == 5)
        }
        // If an origin has already sent a part, a 404 is not treated as a rejection of the range.
        try await OriginServer.run(["/media": .pattern(1000)]) { origin in
            try await CompatibilityStage.cache { cache in
                _ = try await cache.media(for: origin.url("/media")).bytes()
                _ = await #expect(throws: CacheError.self) { try await cache.media(for: origin.url("/a")).bytes() }
            }
            #expect(origin.log.exchanges.count == 2)
        }
    }

    @Test("E470: a request is repeated with its range after one lost connection", arguments: [1, 3])
    func lostConnection(count: Int) async throws {
        var media = OriginResource.pattern(20_000_000)
        media.rules = [.first(count, .reset(after: 0))]
        try await OriginServer.run(["/media": media]) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                let part = try await PlainClient().get(url, range: "bytes=10000000-10000099")
                expectBytes(
                    part.media(from: 10_000_000), PatternBytes(length: 20_000_000).bytes(10_000_000..<10_000_100))
            }
            let requests = origin.log.exchanges
            #expect(requests.prefix(2).allSatisfy { $0.headerFields[.range] != nil })
            if count == 1 { #expect(origin.log.bytesSent() < 1_000_000) }
        }
    }

    @Test("E434: media is received from a server that responds with 500 to ranges past the end")
    func pastEnd() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                let range = request.headerFields[.range].flatMap { RequestedRange($0) }
                if case .bounded(_, let last) = range, last >= resource.content.length {
                    resource.refusal = OriginRefusal(500)
                }
            })
        let situation = Situation(rule)
        try await situation.check()
        for start in [0, 100_000] {
            let range = Int64(start)..<150_000
            try await OriginServer.run(situation.resources) { origin in
                try await CompatibilityStage.server { server, _ in
                    let url = try #require(server.url(for: origin.url("/media")))
                    let part = try await PlainClient().get(url, range: "bytes=\(start)-149999")
                    expectBytes(part.media(from: start), situation.bytes(from: start))
                }
                try await CompatibilityStage.cache { cache in
                    let data = try await cache.media(for: origin.url("/media")).data(in: range)
                    expectBytes(Array(data), situation.bytes(from: start))
                }
            }
        }
    }

    @Test("E435: media is received even though the origin responds with 412 to GET with If-None-Match")
    func precondition() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.ifNoneMatch] != nil { resource.refusal = OriginRefusal(412) }
            })
        var situation = Situation(rule)
        situation.resources["/media"]?.headerFields[.cacheControl] = "no-cache"
        try await situation.checkServer()
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.cache(configure: { $0.freshness = .revalidate }) { cache in
                for _ in 0..<2 {
                    expectBytes(
                        try await cache.media(for: origin.url("/media")).bytes(), situation.bytes(from: 0))
                }
            }
        }
    }
}
