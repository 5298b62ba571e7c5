import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Partial responses that contain fewer or more bytes than requested.
@Suite(.timeLimit(.minutes(5))) struct PartTests {
    private func checkSeek(_ situation: Situation) async throws {
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.cache { cache in
                let media = cache.media(for: origin.url("/media"))
                expectBytes(try await media.bytes(from: 100_000), situation.bytes(from: 100_000))
                expectBytes(try await media.bytes(), situation.bytes(from: 0))
            }
        }
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                for start in [100_000, 0] {
                    let part = try await PlainClient().get(url, range: "bytes=\(start)-")
                    expectBytes(part.media(from: start), situation.bytes(from: start), "from \(start): \(part.status)")
                }
            }
        }
    }

    /// Checks media whose first bytes are requested before the rest.
    private func checkProbe(_ situation: Situation) async throws {
        for freshness in [FreshnessPolicy.http, .immutable, .revalidate] {
            try await OriginServer.run(situation.resources) { origin in
                try await CompatibilityStage.server(freshness: freshness) { server, _ in
                    let url = try #require(server.url(for: origin.url("/media")))
                    for (range, start) in [("0-1", 0), ("0-", 0), ("100000-149999", 100_000), ("70000-", 70_000)] {
                        let part = try await PlainClient().get(url, range: "bytes=" + range)
                        let end = part.status == 206 && range == "0-1" ? 2 : 150_000
                        let bytes = situation.media.bytes(Int64(start)..<Int64(end))
                        expectBytes(part.media(from: start), bytes, "\(freshness), \(range): \(part.status)")
                    }
                }
                try await CompatibilityStage.cache(configure: { $0.freshness = freshness }) { cache in
                    for (start, end) in [(0, 2), (0, 150_000), (100_000, 150_000)] as [(Int64, Int64)] {
                        let data = try await cache.media(for: origin.url("/media")).data(in: start..<end)
                        expectBytes(Array(data), situation.media.bytes(start..<end), "\(freshness), \(start)–\(end)")
                    }
                }
            }
        }
    }

    @Test(
        "E436: media is received from an origin that sends only short parts",
        arguments: [1500, 5000])
    func shortParts(_ limit: Int64) async throws {
        let situation = Situation(.always(.rangeLimit(limit)), seeks: [])
        try await situation.check()
        try await checkSeek(situation)
    }

    /// Closures that return a `Content-Range` value for a whole body, from the requested range and the length.
    private static let forms: [@Sendable (Range<Int64>, Int64) -> String?] = [
        { _, _ in nil }, { _, length in "bytes 0-\(length - 1)/\(length)" },
        { range, length in "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)" },
        { _, length in "bytes */\(length)" }, { _, length in "bytes 0-\(length)/\(length)" },
        { _, length in "bytes 0-\(length - 1)/*" }, { _, length in "0-\(length - 1)/\(length)" },
        { _, length in "bytes 0-/\(length)" },
    ]

    /// Returns a rule that makes the origin send the whole body with status 206.
    ///
    /// - Parameter index: The index of the `Content-Range` in ``forms``.
    private static func wholeBody(_ index: Int, isChunked: Bool) -> OriginRule {
        OriginRule(
            0..<Int.max,
            revise: { response in
                guard response.status == 206 else { return }
                let length = response.content.length
                response.setField("Content-Range", forms[index](response.body, length))
                response.body = 0..<length
                if isChunked { response.framing = .chunked }
            })
    }

    @Test(
        "E437: media is received from an origin that sends the whole body with status 206", arguments: forms.indices,
        [nil, "\"v1\""])
    func wholeBodies(_ index: Int, etag: String?) async throws {
        for isChunked in index == 2 ? [false] : [false, true] {
            let rule = Self.wholeBody(index, isChunked: isChunked)
            let situation = Situation(rule, etag: etag, seeks: [], isStored: etag != nil)
            try await situation.check()
            try await checkSeek(situation)
            try await checkProbe(situation)
        }
    }

    @Test(
        "E486: if the whole body is labeled with the requested range, its bytes are not used for later reads",
        arguments: [nil, "\"v1\""])
    func mislabeled(etag: String?) async throws {
        let rule = Self.wholeBody(2, isChunked: true)
        let situation = Situation(rule, etag: etag, seeks: [], isStored: false)
        for freshness in [FreshnessPolicy.http, .immutable] {
            try await OriginServer.run(situation.resources) { origin in
                try await CompatibilityStage.cache(configure: { $0.freshness = freshness }) { cache in
                    let media = cache.media(for: origin.url("/media"))
                    let events = cache.events()
                    // A player without a cache would receive the same wrong bytes.
                    _ = try? await media.data(in: 100_000..<120_000)
                    _ = await events.first { if case .inconsistentResponse = $0.kind { true } else { false } }
                    // Another transfer may still be receiving such a part.
                    try await origin.log.wait { $0.allSatisfy(\.isOver) }
                    _ = try? await media.bytes()
                    expectBytes(try await media.bytes(), situation.bytes(from: 0), "\(freshness)")
                }
            }
        }
    }
}
