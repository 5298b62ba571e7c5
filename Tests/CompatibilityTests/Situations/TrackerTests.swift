import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Situations from the issue trackers of players, media servers and proxy servers.
@Suite(.timeLimit(.minutes(5))) struct TrackerTests {
    private static func range(_ request: OriginRequest) -> RequestedRange? {
        request.headerFields[.range].flatMap { RequestedRange($0) }
    }

    @Test("Media is received from a server that never responds to a request without Range")
    func onlyRanges() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.range] == nil { resource.rules = [] }
            },
            revise: { $0.incident = $0.status == 200 ? .init(kind: .stall, after: nil) : nil })
        let situation = Situation(rule)
        try await situation.checkServer()
        try await situation.checkApp()
    }

    @Test(
        "Media is received from a server that rejects ranges that are open-ended or extend past the end of the media",
        arguments: [400, 416])
    func bounds(_ status: Int) async throws {
        let length: Int64 = 150_000
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                switch Self.range(request) {
                case .from where status == 400: resource.refusal = OriginRefusal(400)
                case .bounded(_, let last) where status == 416 && last >= length:
                    resource.refusal = OriginRefusal(416, ["Content-Range": "bytes */\(length)"])
                default: break
                }
            })
        try await Situation(rule, seeks: status == 400 ? [] : [100_000]).check()
    }

    @Test(
        "E392: media is received from a server that sends parts with status 200 and Content-Range",
        arguments: [Int64.max, 50_000])
    func partsWith200(_ limit: Int64) async throws {
        let rule = OriginRule(0..<Int.max, revise: { if $0.status == 206 { $0.status = 200 } })
        try await Situation(.always(.rangeLimit(limit)), rule, seeks: []).check()
    }

    @Test("Media is received from a server that sends one part as multipart/byteranges without a part header")
    func multipart() async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                guard response.status == 206 else { return }
                response.setField("Content-Range", nil)
                response.setField("Content-Type", "multipart/byteranges; boundary=B")
            })
        let situation = Situation(rule)
        try await situation.checkServer()
        try await situation.checkApp()
    }

    @Test(
        "E395: media is received from a server that rejects every range request with status 400 or 416",
        arguments: [400, 416])
    func noRanges(_ status: Int) async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.range] != nil { resource.refusal = OriginRefusal(status) }
            })
        try await Situation(rule, seeks: []).check()
    }

    @Test("E396: media is received from a server that states the requested range but sends the whole resource")
    func wholeAsPart() async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                if response.status == 206 { response.body = 0..<response.content.length }
            })
        let film = OriginContent.pattern(PatternBytes(seed: 7, length: 900_000))
        try await Situation(OriginResource(film, rules: [rule]), seeks: []).check()
    }

    @Test("E397: media is received if its last part has no Content-Range and is shorter than requested")
    func shortLastPart() async throws {
        let rule = OriginRule(0..<Int.max, revise: { if $0.status == 206 { $0.setField("Content-Range", nil) } })
        let film = OriginContent.pattern(PatternBytes(seed: 7, length: 400_002))
        try await Situation(OriginResource(film, rules: [rule]), seeks: [300_000, 10]).check()
    }

    @Test("E398: media is received from a server that sends 206 with the whole body and no Content-Range")
    func wholeWith206() async throws {
        let rule = OriginRule(
            0..<Int.max, prepare: { request, _ in request.headerFields[.range] = nil },
            revise: { if $0.status == 200 { $0.status = 206 } })
        var situation = Situation(rule, seeks: [])
        situation.isStored = false
        try await situation.checkServer()
        try await situation.checkApp()
    }

    @Test(
        "E490: media is received from a server that sends it with another successful status",
        arguments: [201, 202, 226, 299])
    func otherSuccess(_ status: Int) async throws {
        let rule = OriginRule(
            0..<Int.max, prepare: { request, _ in request.headerFields[.range] = nil }, revise: { $0.status = status })
        try await Situation(rule, seeks: []).checkApp()
    }

    @Test("Media is received from a server that sends 206 even though no range was requested")
    func unsolicited() async throws {
        try await Situation(.always(.alwaysPartialContent)).check()
    }

    @Test(
        "E394: media is received from a server that responds with 406 or 403 to requests without Accept",
        arguments: [406, 403])
    func accept(_ status: Int) async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.accept] == nil { resource.refusal = OriginRefusal(status) }
            })
        try await Situation(rule).checkApp()
    }

    @Test("E393: an XML error without a length is not stored")
    func xml() async throws {
        let song = Data.mpegAudio(frames: 100)
        let error = OriginRule(
            0..<1,
            prepare: { request, resource in
                request.headerFields[.range] = nil
                resource.content = .data(Data("<?xml version=\"1.0\"?><error code=\"60\"/>".utf8))
                (resource.contentType, resource.etag) = ("application/xml; charset=utf-8", nil)
            },
            revise: { $0.framing = .chunked })
        try await OriginServer.run(["/media": OriginResource(.data(song), rules: [error])]) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, cache in
                let url = try #require(server.url(for: origin.url("/media")))
                #expect(try await PlainClient().get(url).text.hasPrefix("<?xml"))
                // Until the first reader is closed, a second one would share its response.
                while cache.openResourceCount > 0, !Task.isCancelled { await Task.yield() }
                expectBytes(try await PlainClient().get(url).body, Array(song))
            }
        }
    }

    @Test(
        "Media is received from a URL whose path contains semicolons",
        arguments: ["/;", "/;stream.mp3", "/a;b=1/c;d"])
    func semicolon(_ path: String) async throws {
        var situation = Situation()
        situation.resources[path] = situation.resources["/media"]
        situation.path = path
        try await situation.check()
    }

    @Test("E510: media is received from a server that requires the Referer of its own pages", arguments: [true, false])
    func referrer(isReverse: Bool) async throws {
        var media = OriginResource.pattern(150_000, seed: 7)
        media.rules = [.always(.requiresField("Referer", "https://site.example/", else: 403))]
        try await OriginServer.run(["/media": media]) { [media] origin in
            try await CompatibilityStage.server(origin: isReverse ? origin.url("/") : nil) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                #expect(try await PlainClient().get(url).status == 403)
                let client = PlainClient(fields: ["Referer": "https://site.example/"])
                for offset in [0, 100_000] {
                    let response = try await client.get(url, range: "bytes=\(offset)-")
                    expectBytes(response.media(from: offset), media.content.bytes(Int64(offset)..<150_000))
                }
            }
        }
    }

    @Test("Media is received through a redirect to a signed URL that is valid for only one request")
    func signed() async throws {
        let media = OriginContent.pattern(PatternBytes(seed: 7, length: 3_000_000))
        let start = OriginRule(
            0..<Int.max,
            prepare: { $1.refusal = OriginRefusal(302, ["Location": "/signed?t=\($0.index)"]) })
        let used = UsedTokens()
        let target = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if !used.insert(request.query) { resource.refusal = OriginRefusal(403) }
            })
        let resources = [
            "/media": OriginResource(.data(Data()), rules: [start]), "/signed": OriginResource(media, rules: [target]),
        ]
        try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                for offset in [0, 2_900_000, 1_500_000] {
                    let response = try await PlainClient().get(url, range: "bytes=\(offset)-")
                    expectBytes(response.media(from: offset), media.bytes(Int64(offset)..<media.length))
                }
            }
            try await CompatibilityStage.cache { cache in
                let resource = cache.media(for: origin.url("/media"))
                for offset: Int64 in [0, 2_900_000] {
                    expectBytes(try await resource.bytes(from: offset), media.bytes(offset..<media.length))
                }
            }
        }
    }

    @Test(
        "E509: a player receives audio, and a browser receives a page from the same URL without Vary, in either order",
        arguments: ["Mozilla/5.0", "VLC/3.0"], [FreshnessPolicy.http, .revalidate])
    func userAgents(first: String, freshness: FreshnessPolicy) async throws {
        let song = OriginContent.data(.mpegAudio(frames: 300))
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                guard request.headerFields[.userAgent]?.contains("Mozilla") == true else { return }
                resource.content = .data(Data("<html>Station</html>".utf8))
                (resource.contentType, resource.etag) = ("text/html", nil)
            })
        for isReverse in [false, true] {
            try await OriginServer.run(["/;": OriginResource(song, rules: [rule])]) { origin in
                try await CompatibilityStage.server(
                    freshness: freshness, origin: isReverse ? origin.url("/") : nil
                ) { server, _ in
                    let url = try #require(server.url(for: origin.url("/;")))
                    let agents = ["Mozilla/5.0", "VLC/3.0"]
                    for agent in [first] + agents + agents {
                        let isBrowser = agent != "VLC/3.0"
                        let accept = isBrowser ? "text/html,application/xhtml+xml,*/*;q=0.8" : "*/*"
                        let response = try await PlainClient(fields: ["User-Agent": agent, "Accept": accept]).get(url)
                        if isBrowser {
                            #expect(response.text == "<html>Station</html>", "\(response.status)")
                        } else {
                            expectBytes(response.body, song.bytes(0..<song.length))
                        }
                    }
                }
            }
        }
    }
}
