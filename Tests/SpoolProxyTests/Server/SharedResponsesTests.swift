import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// The response to a client while another client's request is running, and the effects of a client's request on other
/// clients.
@Suite(.timeLimit(.minutes(5))) struct SharedResponsesTests {
    private static func reverse(
        _ resource: OriginResource, clock: any Clock<Duration> = ContinuousClock(),
        _ body: (ProxyServer, OriginServer) async throws -> Void
    ) async throws {
        try await OriginServer.run(["/a": resource]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, clock: clock) { server, _ in try await body(server, origin) }
        }
    }

    private static func resource(_ control: String?, etag: String?, stalls: Bool) -> OriginResource {
        var resource = OriginResource(.pattern(PatternBytes(length: 50_000)), etag: etag, contentType: "text/plain")
        if stalls { resource.rules = [OriginRule(0..<1, .stall(after: nil))] }
        resource.headerFields[.cacheControl] = control
        return resource
    }

    /// An origin that sets a new cookie with each response. The cookie is not stored with the response.
    private final class CookieUpstream: Upstream {
        private let count = Mutex(0)

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            let number = count.withLock { count in
                count += 1
                return count
            }
            var fields: HTTPFields = [.eTag: "\"a\"", .contentLength: "1", .setCookie: "sid=\(number)"]
            fields[.expires] = "Sat, 06 Nov 2094 08:49:37 GMT"
            return UpstreamResponse(
                head: HTTPResponse(status: .ok, headerFields: fields), url: request.url, body: UpstreamBody(bytes))
        }

        private var bytes: AsyncStream<Data> {
            AsyncStream { stream in
                stream.yield(Data([1]))
                stream.finish()
            }
        }
    }

    @Test(
        "E448: a server for a single origin passes on the origin's error after one request",
        arguments: [400, 403, 404, 405, 500, 501])
    func error(status: Int) async throws {
        var resource = OriginResource(.pattern(PatternBytes(length: 1000)))
        resource.rules = [.always(.status(status))]
        try await Self.reverse(resource) { server, origin in
            var bytes = try await server.exchange("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[
                ...]
            #expect(try #require(RawResponse(&bytes)).status == status)
            #expect(origin.log.exchanges("/a").count == 1)
        }
    }

    @Test(
        "E489: a server for a single origin passes on media from an origin that rejects every range",
        arguments: [400, 404, 405, 500, 501])
    func rejectsRanges(status: Int) async throws {
        let media = PatternBytes(seed: 3, length: 200_000)
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.headerFields[.range] != nil { resource.refusal = OriginRefusal(status) }
            })
        let resource = OriginResource(.pattern(media), contentType: "audio/mpeg", rules: [rule])
        try await OriginServer.run(["/a.mp3": resource]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                func response(_ path: String) async throws -> RawResponse {
                    var bytes = try await server.exchange(
                        "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[...]
                    return try #require(RawResponse(&bytes))
                }
                let received = try await response("/a.mp3")
                #expect(received.status == 200)
                try media.verify(Data(received.body), at: 0)
                // The failure without a range is remembered for the origin.
                for path in ["/b.mp3", "/c.mp3"] { #expect(try await response(path).status == 404) }
                #expect(origin.log.exchanges("/b.mp3").count + origin.log.exchanges("/c.mp3").count <= 3)
            }
        }
    }

    @Test(
        "E446: if a playlist is replaced after a client has opened it, the client does not receive the new playlist")
    func replacedPlaylist() async throws {
        let upstream = ScriptedUpstream(["/a.m3u8": Self.playlist(1)])
        try await ProxyServer.run(upstream: upstream) { _, cache in
            let source = MediaSource(url: try #require(URL(string: "http://origin.example/a.m3u8")))
            let media = cache.media(for: source)
            let opened = try await media.reader(directives: RequestDirectives()).response()
            #expect(try await Self.manifest(of: media, opened, in: cache)?.contains("1.ts") == true)
            try await Self.replace(opened, of: source, in: cache, upstream)
            let error = await #expect(throws: CacheError.self) { try await Self.manifest(of: media, opened, in: cache) }
            #expect(error?.code == .resourceChanged)
        }
    }

    @Test("E458: a client that opens a playlist as a separate response receives it even if the playlist is replaced")
    func playlistReplacedAgain() async throws {
        let upstream = ScriptedUpstream(["/a.m3u8": Self.playlist(1)])
        try await ProxyServer.run(upstream: upstream) { _, cache in
            let source = MediaSource(url: try #require(URL(string: "http://origin.example/a.m3u8")))
            var opener = MediaOpener(
                cache: cache, date: DateText(), source: source, directives: RequestDirectives(), priority: .playback)
            opener.usable = .separate
            let opened = try await opener.open(.all, of: nil)
            try await Self.replace(opened.head, of: source, in: cache, upstream)
            #expect(try await Self.manifest(of: opened.media, opened.head, in: cache)?.contains("1.ts") == true)
            opened.reader.cancel()
        }
    }

    private static func playlist(_ number: Int) -> OriginResource {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(number).ts\n#EXT-X-ENDLIST\n"
        var resource = OriginResource(
            .data(Data(text.utf8)), etag: "\"\(number)\"", contentType: "application/vnd.apple.mpegurl")
        resource.headerFields[.cacheControl] = "s-maxage=0"
        return resource
    }

    /// Replaces the stored version of a playlist by the response to another request.
    private static func replace(
        _ opened: OpenedResponse, of source: MediaSource, in cache: MediaCache, _ upstream: ScriptedUpstream
    ) async throws {
        upstream.set("/a.m3u8", playlist(2))
        var directives = RequestDirectives()
        directives.noCache = true
        let other = try await cache.media(for: source).reader(directives: directives).response()
        #expect(other.version != opened.version)
    }

    /// Reads and rewrites a playlist with a responder that has not read any playlist yet.
    private static func manifest(
        of media: MediaResource, _ opened: OpenedResponse, in cache: MediaCache
    ) async throws -> String? {
        let head = RequestHead(
            method: .get, target: "/a.m3u8", minorVersion: 1, fields: RequestFields(bytes: [], lines: []),
            body: .none, keepsAlive: true, host: "localhost")
        let call = try OutgoingRequest(
            OriginURL(media.source.url), head, AccessRules.Admitted(target: "/a.m3u8", prefix: ""),
            ProxyClient(named: "client"), isReverse: true,
            origins: OriginRules(allowedHosts: [], mark: "test", serverPorts: ServerPorts()))
        let clock = ContinuousClock()
        let responder = ManifestResponder(
            cache: cache, knowledge: StreamKnowledge(), offline: OfflineVariants(cache: cache, clock: clock),
            date: DateText(), clock: clock, maximumBitRate: nil, notesNeeds: false)
        return try await responder.manifest(of: media, opened, for: head, call)
            .map { String(buffer: $0.bytes) }
    }

    @Test("E225: the next request on a connection does not receive the cookie of the previous response")
    func cookiesOnOneConnection() async throws {
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.example/")
        try await ProxyServer.run(configuration, upstream: CookieUpstream()) { server, _ in
            let request = "GET /a HTTP/1.1\r\nHost: localhost\r\n"
            var bytes = try await server.exchange("\(request)\r\n\(request)Connection: close\r\n\r\n")[...]
            let cookies = try (0..<2).map { _ in try #require(RawResponse(&bytes)).field("set-cookie") }
            #expect(cookies == ["sid=1", "sid=2"])
        }
    }

    @Test(
        arguments: [nil, "no-cache", "max-age=0", "no-cache, must-revalidate"] as [String?],
        [true, false])
    func `E119: each of three waiting clients gets its own request if the response may not be reused`(
        control: String?, isSameClient: Bool
    ) async throws {
        let page = Self.resource(control, etag: nil, stalls: true)
        let clock = ManualClock()
        try await Self.reverse(page, clock: clock) { server, origin in
            let keys = (0..<3).map { isSameClient ? "key" : "key\($0)" }
            async let first = server.get("/a", "X-Api-Key: \(keys[0])\r\n")
            async let second = server.get("/a", "X-Api-Key: \(keys[1])\r\n")
            async let third = server.get("/a", "X-Api-Key: \(keys[2])\r\n")
            try await clock.waitForSleepers(3)
            try await origin.log.wait { !$0.isEmpty && $0[0].isStalled }
            origin.release()
            for response in try await [first, second, third] {
                #expect(response.status == 200)
                #expect(response.body.elementsEqual(page.content.bytes(0..<50_000)))
            }
            let asked = origin.log.exchanges.compactMap { $0.headerFields[HTTPField.Name("X-Api-Key")!] }
            #expect(asked.sorted() == keys)
        }
    }

    @Test(arguments: ["max-age=60", "no-cache", nil] as [String?])
    func `E119: the origin sends the bytes of a response with a strong validator once to all waiting clients`(
        control: String?
    ) async throws {
        let page = Self.resource(control, etag: "\"v1\"", stalls: true)
        let clock = ManualClock()
        try await Self.reverse(page, clock: clock) { server, origin in
            async let first = server.get("/a", "X-Api-Key: 1\r\n")
            async let second = server.get("/a", "X-Api-Key: 2\r\n")
            async let third = server.get("/a", "X-Api-Key: 2\r\n")
            try await clock.waitForSleepers(3)
            try await origin.log.wait { !$0.isEmpty && $0[0].isStalled }
            origin.release()
            for response in try await [first, second, third] {
                #expect(response.body.elementsEqual(page.content.bytes(0..<50_000)))
            }
            try await origin.log.waitUntilIdle()
            #expect(origin.log.exchanges.count == (control == "max-age=60" ? 1 : 3))
            #expect(origin.log.bytesSent("/a") == 50_000)
        }
    }

    @Test func `E121: a cookie set in response to one client's cookie does not disable the cache for other clients`()
        async throws
    {
        try await OriginServer.run(["/a": Self.cookies(for: "sid=bogus")]) { origin in
            for freshness in [FreshnessPolicy.http, .immutable] {
                var configuration = ProxyConfiguration()
                configuration.origin = origin.url("/")
                try await ProxyServer.run(configuration, freshness: freshness) { server, _ in
                    let bogus = try await server.get("/a", "Cookie: sid=bogus\r\n")
                    #expect(bogus.field("set-cookie") != nil)
                    for fields in ["", "Cookie: sid=other\r\n", "Authorization: Basic YTpi\r\n"] {
                        _ = try await server.get("/a", fields)
                        let again = try await server.get("/a", fields)
                        #expect(again.field("cache-status")?.hasPrefix("spool; hit") == true, "\(fields)")
                        #expect(again.field("set-cookie") == nil)
                    }
                }
            }
        }
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `E200: the client that causes a response with a cookie receives it, without a second origin request`(
        freshness: FreshnessPolicy
    ) async throws {
        try await OriginServer.run(["/a": Self.cookies(for: "sid=bogus")]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, freshness: freshness) { server, _ in
                let first = try await server.get("/a", "Cookie: sid=bogus\r\n")
                #expect(first.field("set-cookie") == "sid=; Max-Age=0")
                #expect(first.body.count == 50_000)
                #expect(origin.log.exchanges.count == 1)
                // Each later response sets its own cookie.
                let second = try await server.get("/a", "Cookie: sid=bogus\r\n")
                #expect(second.field("set-cookie") == "sid=; Max-Age=0")
                #expect(origin.log.exchanges.count == 2)
                // Other clients do not receive this cookie.
                #expect(try await server.get("/a", "Cookie: sid=other\r\n").field("set-cookie") == nil)
            }
        }
    }

    @Test
    func `E199: only one client receives a long error page; for the others, the origin receives separate requests`()
        async throws
    {
        let page = Data(repeating: 0x61, count: 300_000)
        let head =
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 300000\r\nSet-Cookie: a=b\r\n\r\n"
        var resource = OriginResource(.data(Data()))
        resource.rules = [
            OriginRule(
                0..<Int.max,
                prepare: { _, resource in
                    resource.raw = .init(Array(Data(head.utf8) + page), closes: true)
                })
        ]
        try await Self.reverse(resource) { server, origin in
            for count in 1...3 as ClosedRange<Int> {
                let response = try await server.get("/a")
                #expect(response.status == 404)
                #expect(response.body.elementsEqual(page))
                #expect(response.field("set-cookie") == "a=b")
                #expect(origin.log.exchanges.count == count)
            }
            async let first = server.get("/a")
            async let second = server.get("/a")
            for response in try await [first, second] { #expect(response.body.elementsEqual(page)) }
        }
    }

    /// Returns a resource that all clients may reuse, except the response to one cookie, which sets the cookie again.
    private static func cookies(for cookie: String) -> OriginResource {
        var resource = resource("public, max-age=600", etag: "\"v1\"", stalls: false)
        resource.rules = [
            OriginRule(
                0..<Int.max,
                prepare: { request, resource in
                    guard request.headerFields[.cookie] == cookie else { return }
                    resource.headerFields[.cacheControl] = "private"
                    resource.headerFields[.setCookie] = "sid=; Max-Age=0"
                })
        ]
        return resource
    }

    /// The names of header fields that are not part of the cache key, grouped by the part of the request that they can
    /// override.
    private static let unkeyed = [
        "the client": [
            "X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "X-Remote-User", "Remote-User",
            "X-Authenticated-User", "Ssl-Client-Cert", "Wl-Proxy-Client-Ip", "Cluster-Client-Ip", "X-Vercel-Ip-Country",
            "Cloudfront-Viewer-Country", "X-Appengine-Country", "Surrogate-Capability",
        ],
        "the host": [
            "X-Forwarded-Host", "X-Forwarded-Proto", "X-Original-Host", "X-Host", "X-HTTP-Host-Override",
            "X_Forwarded_Host", "X-Scheme", "X-Override-Host", "X-Orig-Host", "X-Real-Host", "X-Client-Host",
            "X-Virtual-Host", "X-Target-Host", "Http-Host", "Proxy",
        ],
        "the path": [
            "X-Forwarded-Prefix", "X-Original-URL", "X-Rewrite-URL", "X-Middleware-Subrequest", "X-Override-URL",
            "X-Orig-URL", "X-Originating-URL", "X-Ms-Original-Url", "X-Request-Url", "X-Url-Path", "X-Replaced-Path",
            "X-Ingress-Path", "Path-Info", "Script-Name", "Url", "Uri",
        ],
        "the method and the body": [
            "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "Transfer_Encoding", "Content-Range",
            "Content-Encoding",
        ],
    ]

    @Test(arguments: unkeyed.keys.sorted())
    func `E122: a client's field that no cache key contains does not reach the origin`(claim: String) async throws {
        let names = try #require(Self.unkeyed[claim])
        let page = Self.resource("max-age=60", etag: "\"v1\"", stalls: false)
        try await Self.reverse(page, clock: ManualClock()) { server, origin in
            for name in names {
                for method in ["GET", "POST", "HEAD"] {
                    let target = (method == "HEAD" ? "/b?" : "/a?") + name
                    _ = try await server.get(target, "\(name): evil.example\r\nX-Other: 1\r\n", method: method)
                }
            }
            #expect(origin.log.exchanges.count == 3 * names.count)
            for exchange in origin.log.exchanges {
                #expect(!exchange.headerFields.contains { $0.value == "evil.example" }, "\(exchange.query)")
                #expect(exchange.headerFields[HTTPField.Name("X-Other")!] == "1")
            }
        }
    }

    @Test func `E122: fields that describe a body reach the origin with that body`() async throws {
        let resource = Self.resource("max-age=60", etag: nil, stalls: false)
        try await Self.reverse(resource, clock: ManualClock()) { server, origin in
            let fields = "Host: localhost\r\nConnection: close\r\nContent-Length: 1\r\nContent-Encoding: br\r\n"
            for method in ["POST", "GET"] {
                _ = try await server.exchange("\(method) /a HTTP/1.1\r\n\(fields)\r\na")
            }
            let sent = origin.log.exchanges.map { $0.headerFields[.contentEncoding] }
            #expect(sent == ["br", nil])
        }
    }

    @Test(arguments: [true, false])
    func `E147: fields that list nodes reach the origin even if Connection names them`(
        isReverse: Bool
    ) async throws {
        try await OriginServer.run(["/a": Self.resource("no-store", etag: nil, stalls: false)]) { origin in
            var configuration = ProxyConfiguration()
            if isReverse { configuration.origin = origin.url("/") }
            let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
            try await ProxyServer.run(configuration, clock: ManualClock()) { server, _ in
                let nodes = "Via: 1.1 other\r\nCDN-Loop: other-cdn\r\n"
                _ = try await server.get(target, "Connection: via, CDN-Loop, x-other\r\n\(nodes)X-Other: 1\r\n")
            }
            let sent = try #require(origin.log.exchanges.last).headerFields
            #expect(sent[values: .via].first == "1.1 other")
            #expect(sent[values: try #require(HTTPField.Name("CDN-Loop"))].first == "other-cdn")
            #expect(sent[try #require(HTTPField.Name("X-Other"))] == nil)
        }
    }

    @Test(arguments: ["GET", "HEAD", "POST"], [true, false])
    func `E123: a request that two servers send to each other is rejected when it returns`(
        method: String, isReverse: Bool
    ) async throws {
        let film = Self.resource("no-store", etag: nil, stalls: false)
        if !isReverse, method == "POST" { return }  // The forward form does not allow this method.
        try await OriginServer.run(["/a": film]) { origin in
            var configuration = ProxyConfiguration()
            if isReverse { configuration.origin = origin.url("/") }
            let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
            try await ProxyServer.run(configuration) { one, _ in
                try await ProxyServer.run(configuration) { other, _ in
                    var fields = "Via: 1.1 other\r\nCDN-Loop: other-cdn\r\n"
                    for (hop, server) in [one, other].enumerated() {
                        let response = try await server.get(target, fields, method: method)
                        #expect(response.status < 500)
                        let sent = try #require(origin.log.exchanges.last).headerFields
                        let (via, loop) = (sent[values: .via], sent[values: HTTPField.Name("CDN-Loop")!])
                        #expect(via.count == hop + 2 && via.first == "1.1 other")
                        #expect(loop.count == hop + 2 && loop.first == "other-cdn")
                        fields = via.map { "Via: \($0)\r\n" }.joined() + loop.map { "CDN-Loop: \($0)\r\n" }.joined()
                    }
                    let count = origin.log.exchanges.count
                    #expect(try await one.get(target, fields, method: method).status == 508)
                    #expect(origin.log.exchanges.count == count)
                }
            }
        }
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `E124: a client's request for metadata inside the audio does not reach the origin`(
        freshness: FreshnessPolicy
    ) async throws {
        let station = Self.resource("max-age=60", etag: nil, stalls: false)
        try await OriginServer.run(["/a": station]) { origin in
            for isReverse in [true, false] {
                var configuration = ProxyConfiguration()
                if isReverse { configuration.origin = origin.url("/") }
                let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
                try await ProxyServer.run(configuration, freshness: freshness) { server, _ in
                    let response = try await server.get(target, "Icy-MetaData: 1\r\n")
                    #expect(response.status == 200)
                }
            }
            #expect(origin.log.exchanges.count == 2)
            let name = try #require(HTTPField.Name("Icy-MetaData"))
            #expect(origin.log.exchanges.allSatisfy { $0.headerFields[name] == nil })
        }
    }
}
