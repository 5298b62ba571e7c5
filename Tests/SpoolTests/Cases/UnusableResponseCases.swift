import Foundation
import SpoolHTTP
import SpoolTesting
import Testing

@testable import Spool

/// CASES E, 63 and 70: an invalid or ambiguous response over a real socket affects only one request.
@Suite(.timeLimit(.minutes(10)))
struct UnusableResponseCases {
    static let song = PatternBytes(seed: 1, length: 300_000)

    @Test(
        "E63: an invalid response causes an error without a retry, and none of its bytes are stored",
        arguments: [
            "HTTP/1.1 099 Odd\r\nContent-Length: 5", "HTTP/1.1 000 Odd\r\nContent-Length: 5",
            "HTTP/1.1 600 Odd\r\nContent-Length: 5", "HTTP/1.1 999 Odd\r\nContent-Length: 5",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:0/\r\nContent-Length: 5",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:65536/\r\nContent-Length: 5",
        ])
    func meaningless(_ head: String) async throws {
        try await checkRefused(head + "\r\n\r\nhello", [.malformedResponse, .originUnavailable])
    }

    @Test(
        "E63: a response without a valid status line causes an error after one more request, without a range",
        arguments: ["HTTP/7.1 200 OK", "\u{0}"])
    func noStatusLine(_ line: String) async throws {
        try await checkRefused(line + "\r\n\r\nhello", [.malformedResponse, .originUnavailable], requests: 2)
    }

    @Test(
        "E70: a response with ambiguous framing, an unrequested coding or two Location fields is rejected",
        arguments: [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 302 Found\r\nLocation: /b\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n",
        ])
    func ambiguous(_ response: String) async throws {
        try await checkRefused(response, [.malformedResponse, .originUnavailable])
    }

    private func checkRefused(
        _ response: String, _ codes: Set<CacheError.Code>, requests: Int = 1
    ) async throws {
        let resources: [String: OriginResource] = [
            "/a": OriginResource(.pattern(Self.song), rules: [.first(requests, .raw(response))]),
            "/b": .pattern(300_000), "/c": .pattern(300_000),
        ]
        try await onStage(resources) { stage in
            try await stage.session { cache in
                let error = try await cache.media(for: stage.url()).failure { _ in Issue.record("a player got bytes") }
                #expect(error.map { codes.contains($0.code) } == true, "\(String(describing: error))")
                #expect(cache.storedByteCount == 0)
                #expect(stage.origin.log.exchanges("/a").count == requests, "it is not retried")
                // The connection of the invalid response may be used once more while it closes.
                try await stage.flowing {
                    try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
                }
            }
        }
    }

    @Test(
        "E437: a 206 that contains the whole body shows that the origin ignores ranges, even after a correct 206",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy], [0, 1])
    func wholeBodiesInParts(_ freshness: FreshnessPolicy, firstRequest: Int) async throws {
        let film = PatternBytes(seed: 1, length: 300_000)
        var resource = OriginResource(.pattern(film))
        resource.etag = "\"a\""
        resource.rules = [
            OriginRule(
                firstRequest..<Int.max,
                revise: { response in
                    guard response.status == 206 else { return }
                    let range = response.body
                    response.setField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/300000")
                    response.body = 0..<film.length
                })
        ]
        let stage = try MemoryStage(["/a": resource], freshness: freshness)
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            for range in [.bytes(0..<2), .bytes(200_000..<200_002), .all] as [MediaRange] {
                try await media.check(range, film)
            }
        }
    }
}
