import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Origins whose responses do not prove, or wrongly claim, that they belong to the same version.
@Suite(.timeLimit(.minutes(5))) struct VersionTests {
    private static let film = PatternBytes(seed: 7, length: 3_000_000)

    /// The forms of media without validators: the `Cache-Control` field, and whether the response has a length.
    private static let forms: [(control: String?, hasLength: Bool)] = [
        (nil, true), (nil, false), ("no-store", true), ("no-store", false), ("private", true), ("private", false),
    ]

    @Test(
        "Two clients receive a whole video without validators, even if the second starts while the first is receiving",
        arguments: forms.indices, [nil, 0, 2_900_000])
    func twoClients(_ form: Int, secondStart: Int?) async throws {
        let (control, hasLength) = Self.forms[form]
        var rules: [OriginRule] = [.always(.noValidators), .always(.field("Cache-Control", control))]
        if !hasLength { rules.append(.always(.noLength(.chunked))) }
        rules.append(.request(0, .stall(after: 100_000)))
        try await OriginServer.run(["/film": OriginResource(.pattern(Self.film), rules: rules)]) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/film")))
                async let first = PlainClient().get(url)
                try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
                let second = try await PlainClient().get(url, range: secondStart.map { "bytes=\($0)-" })
                let start = secondStart ?? 0
                expectBytes(
                    second.media(from: start), Self.film.bytes(Int64(start)..<Self.film.length), "the second client")
                origin.release()
                let media = try await first.media(from: 0)
                expectBytes(media, Self.film.bytes(0..<Self.film.length), "the first client")
            }
        }
    }

    @Test("Media whose ETag differs for each range is received on the first attempt", arguments: [true, false])
    func tagOfEachRange(isStrong: Bool) async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                let tag = "\"\(response.body.lowerBound)-\(response.body.upperBound)\""
                response.setField("ETag", isStrong ? tag : "W/" + tag)
            })
        let situation = Situation(
            OriginResource(.pattern(Self.film), rules: [rule]), seeks: [2_500_000, 4096], isStored: false)
        try await situation.check()
    }

    /// A podcast whose responses all have different advertisements, and therefore different bytes and lengths.
    private static func episode(_ index: Int) -> PatternBytes {
        PatternBytes(seed: UInt64(index + 1), length: 2_000_000 + Int64(index) * 10_000)
    }

    /// Checks that each client receives one response, or one session, from its start to its end.
    private func checkEpisodes(_ resources: [String: OriginResource]) async throws {
        let episodes = (0..<32).map { Self.episode($0).bytes(0..<Self.episode($0).length) }
        try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/episode")))
                for range in [nil, "bytes=0-", nil] {
                    let response = try await PlainClient().get(url, range: range)
                    #expect(response.media(from: 0).map(episodes.contains) == true, "\(range ?? "no range")")
                }
            }
            try await CompatibilityStage.cache { cache in
                for _ in 0..<3 {
                    let bytes = try await cache.media(for: origin.url("/episode")).bytes()
                    #expect(episodes.contains(bytes), "\(bytes.count) bytes in an app")
                }
            }
        }
    }

    @Test("A podcast with different advertisements in each response is received as one response")
    func advertisements() async throws {
        let rule = OriginRule(
            0..<Int.max, prepare: { $1.content = .pattern(Self.episode($0.index % 32)) })
        let resource = OriginResource(.pattern(Self.episode(0)), etag: nil, rules: [rule])
        try await checkEpisodes(["/episode": resource])
    }

    @Test("A podcast whose URL redirects each request to a new session is received from one session")
    func sessions() async throws {
        let rule = OriginRule(
            0..<Int.max, prepare: { $1.refusal = OriginRefusal(302, ["Location": "/session\($0.index % 32)"]) })
        var resources = ["/episode": OriginResource(.data(Data()), etag: nil, rules: [rule])]
        for index in 0..<32 {
            resources["/session\(index)"] = OriginResource(.pattern(Self.episode(index)), etag: nil)
        }
        try await checkEpisodes(resources)
    }

    @Test(
        "E353: a live playlist is received in its current form, even though every response has the same validator",
        arguments: [FreshnessPolicy.http, .revalidate], ["\"v0\"", nil])
    func constantValidator(_ freshness: FreshnessPolicy, tag: String?) async throws {
        func playlist(_ sequence: Int) -> OriginResource {
            let text = """
                #EXTM3U
                #EXT-X-TARGETDURATION:4
                #EXT-X-MEDIA-SEQUENCE:\(sequence)
                #EXTINF:4,
                s\(sequence).ts

                """
            // The origin ignores conditions.
            let rule = OriginRule(
                0..<Int.max,
                prepare: { request, _ in
                    for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] { request.headerFields[name] = nil }
                })
            return OriginResource(
                .data(Data(text.utf8)), etag: tag, lastModified: Date(timeIntervalSince1970: 1_700_000_000),
                contentType: "application/vnd.apple.mpegurl",
                rules: [rule, .always(.field("Cache-Control", "max-age=0"))])
        }
        try await OriginServer.run(["/live.m3u8": playlist(100)]) { origin in
            try await CompatibilityStage.server(freshness: freshness) { server, _ in
                let url = try #require(server.url(for: origin.url("/live.m3u8")))
                for sequence in 100..<106 {
                    origin.set("/live.m3u8", playlist(sequence))
                    let text = String(decoding: try await PlainClient().get(url).body, as: UTF8.self)
                    #expect(text.contains("SEQUENCE:\(sequence)\n") && text.contains("s\(sequence).ts"))
                }
            }
        }
    }
}
