import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolStreams
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Cookies that an origin sets with a redirect or a manifest, and requires in other requests.
@Suite(.timeLimit(.minutes(5))) struct StreamCookieTests {
    private static let hls = """
        #EXTM3U
        #EXT-X-TARGETDURATION:2
        #EXTINF:2,
        near.ts
        #EXTINF:2,
        /far.ts
        #EXT-X-ENDLIST

        """
    private static let mpd = """
        <MPD mediaPresentationDuration="PT4S"><Period><AdaptationSet contentType="video">
        <SegmentTemplate duration="2" media="near.ts" initialization="/far.ts"/>
        <Representation id="v" bandwidth="100000"/></AdaptationSet></Period></MPD>
        """

    /// Returns the resources of a stream whose segments require a cookie. The manifest or the redirect to it sets this
    /// cookie.
    private static func resources(isRedirected: Bool, isDASH: Bool = false) -> [String: OriginResource] {
        let path = isDASH ? "/x/a.mpd" : "/x/a.m3u8"
        let type = isDASH ? "application/dash+xml" : "application/vnd.apple.mpegurl"
        var manifest = OriginResource(.data(Data((isDASH ? mpd : hls).utf8)), contentType: type)
        if !isRedirected { manifest.headerFields[.setCookie] = "policy=1; Path=/" }
        let redirect = ["Location": path, "Set-Cookie": "policy=1; Path=/"]
        let start = OriginResource(.data(Data()), rules: [.always(.status(302, redirect))])
        let needsCookie = [OriginRule.always(.requiresField("Cookie", "policy=1", else: 403))]
        return [
            "/start": isRedirected ? start : manifest, path: manifest,
            "/x/near.ts": OriginResource(.pattern(PatternBytes(length: 1000)), rules: needsCookie),
            "/near.ts": OriginResource(.pattern(PatternBytes(length: 1000)), rules: needsCookie),
            "/far.ts": OriginResource(.pattern(PatternBytes(length: 1000)), rules: needsCookie),
        ]
    }

    /// Returns the URLs in a rewritten manifest that refer to the server.
    private static func references(in body: [UInt8]) -> [String] {
        String(decoding: body, as: UTF8.self).matches(of: /\/[^"\n<]*\.ts/).map { String($0.output) }
    }

    @Test(
        "E241: the server sends a cookie from a manifest, or from a redirect to the manifest, with segment requests",
        arguments: [false, true])
    func segments(isRedirected: Bool) async throws {
        try await OriginServer.run(Self.resources(isRedirected: isRedirected)) { origin in
            try await ProxyServer.run { server, _ in
                let root = "/http/127.0.0.1:\(origin.port)"
                let manifest = try await server.get(root + "/start")
                #expect(manifest.status == 200)
                #expect(manifest.field("set-cookie") == nil)
                let references = Self.references(in: manifest.body)
                #expect(references.count == 2)
                for reference in references {
                    #expect(reference.hasPrefix("/.spool/source/"), "\(reference)")
                    let segment = try await server.get(reference)
                    #expect(segment.status == 200)
                    #expect(segment.body.count == 1000)
                }
                #expect(Self.references(in: try await server.get(root + "/start").body) == references)
            }
        }
    }

    @Test("E241: requests for URLs in an MPD include the cookies of the stream", arguments: [false, true])
    func presentation(isRedirected: Bool) async throws {
        try await OriginServer.run(Self.resources(isRedirected: isRedirected, isDASH: true)) { origin in
            try await ProxyServer.run { server, _ in
                let manifest = try await server.get("/http/127.0.0.1:\(origin.port)/start")
                let text = String(decoding: manifest.body, as: UTF8.self)
                let base = try #require(text.firstMatch(of: /<BaseURL>([^<]*)\/[^\/<]*<\/BaseURL>/)?.output.1)
                #expect(base.hasPrefix("/.spool/source/"))
                #expect(try await server.get(base + "/near.ts").status == 200)
                let far = try #require(Self.references(in: manifest.body).first)
                #expect(try await server.get(far).status == 200)
            }
        }
    }

    @Test("E241: a request that does not belong to the stream is sent without the stream's cookies")
    func otherRequests() async throws {
        try await OriginServer.run(Self.resources(isRedirected: false)) { origin in
            try await ProxyServer.run { server, _ in
                let root = "/http/127.0.0.1:\(origin.port)"
                #expect(try await server.get(root + "/start").status == 200)
                #expect(try await server.get(root + "/far.ts").status == 403)
                // These credentials belong to another client.
                let other = "Authorization: Basic eDp5\r\n"
                origin.update("/start") { $0.headerFields[.setCookie] = nil }
                let manifest = try await server.get(root + "/start", other)
                #expect(!String(decoding: manifest.body, as: UTF8.self).contains("/.spool/source/"))
            }
        }
    }

    @Test("E241: with --origin, a cookie is sent to the origin only if the client's request contains the cookie")
    func reverse() async throws {
        try await OriginServer.run(Self.resources(isRedirected: false)) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                let manifest = try await server.get("/x/a.m3u8")
                #expect(manifest.field("set-cookie") == "policy=1; Path=/")
                #expect(!String(decoding: manifest.body, as: UTF8.self).contains("/.spool/source/"))
                #expect(try await server.get("/far.ts").status == 403)
                #expect(try await server.get("/far.ts", "Cookie: policy=1\r\n").status == 200)
            }
        }
    }

    @Test("E241: a download sends the playlist's cookies with requests for segments", arguments: [false, true])
    func download(isRedirected: Bool) async throws {
        try await OriginServer.run(Self.resources(isRedirected: isRedirected)) { origin in
            try await ProxyServer.run(freshness: .immutable) { _, cache in
                let summary = try await HLSDownloader(MediaSource(url: origin.url("/start")), in: cache).run()
                #expect(summary.progress.storedSegmentCount == 2)
            }
        }
    }

    @Test("E241: a response that varies by Cookie is not stored if the server added cookies to the request")
    func variants() async throws {
        var resources = Self.resources(isRedirected: false)
        resources["/far.ts"]?.headerFields[.vary] = "Cookie"
        resources["/far.ts"]?.headerFields[.cacheControl] = "max-age=100"
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run { server, cache in
                let manifest = try await server.get("/http/127.0.0.1:\(origin.port)/start")
                let far = try #require(Self.references(in: manifest.body).first { $0.hasSuffix("/far.ts") })
                #expect(try await server.get(far).status == 200)
                #expect(try await server.get("/http/127.0.0.1:\(origin.port)/far.ts").status == 403)
                #expect(try await !cache.storedResources().contains { $0.redactedURL.hasSuffix("/far.ts") })
            }
        }
    }

    @Test(
        "E244: media is served even if its URL redirects to itself until the request contains the cookie",
        arguments: ["GET", "HEAD"])
    func sameURL(method: String) async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                guard request.headerFields[.cookie] != "seen=1" else { return }
                resource.refusal = OriginRefusal(302, ["Location": "/a", "Set-Cookie": "seen=1; Path=/"])
            })
        let resource = OriginResource(.pattern(PatternBytes(length: 900)), rules: [rule])
        try await OriginServer.run(["/a": resource]) { origin in
            try await ProxyServer.run { server, _ in
                let response = try await server.get("/http/127.0.0.1:\(origin.port)/a", method: method)
                #expect(response.status == 200)
                #expect(response.field("content-length") == "900")
            }
        }
    }

    @Test("E298: requests with different header fields do not share cookies")
    func otherFields() async throws {
        var film = OriginResource(.pattern(PatternBytes(length: 1000)))
        film.headerFields[.setCookie] = "session=1; Path=/"
        film.headerFields[.cacheControl] = "no-store"
        try await OriginServer.run(["/a": film]) { origin in
            try await ProxyServer.run { (server, _) async throws in
                for agent in ["one", "one", "two"] {
                    let target = "/http/127.0.0.1:\(origin.port)/a"
                    #expect(try await server.get(target, "User-Agent: \(agent)\r\n").status == 200)
                }
            }
            #expect(origin.log.exchanges("/a").map { $0.headerFields[.cookie] } == [nil, "session=1", nil])
        }
    }
}
