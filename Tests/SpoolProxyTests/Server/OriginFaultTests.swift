import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The responses to clients if the origin fails, or responds in a way that is unusual for media.
@Suite(.timeLimit(.minutes(5))) struct OriginFaultTests {
    private static func target(_ origin: OriginServer, _ path: String) -> String {
        "/http/127.0.0.1:\(origin.port)\(path)"
    }

    /// Runs `body` with a reverse proxy of the origin.
    private func reverse(_ origin: OriginServer, _ body: (ProxyServer) async throws -> Void) async throws {
        var configuration = ProxyConfiguration()
        configuration.origin = origin.url("/")
        try await ProxyServer.run(configuration) { server, _ in try await body(server) }
    }

    @Test func `A response with status 204 has no Content-Length, even for HEAD`() async throws {
        var resource = OriginResource(.data(Data()))
        resource.refusal = OriginRefusal(204, ["Cache-Control": "max-age=60"])
        let empty = resource
        try await OriginServer.run(["/a": empty]) { origin in
            try await reverse(origin) { server in
                for method in ["GET", "HEAD", "HEAD"] {
                    let response = try await server.get("/a", method: method)
                    #expect(response.status == 204)
                    #expect(response.field("content-length") == nil, "\(method)")
                }
            }
        }
    }

    @Test(arguments: [
        ("Cache-Control: no-store", 3), ("Cache-Control: private", 3), ("Cache-Control: max-age=1000", 1),
        ("CDN-Cache-Control: max-age=1000", 1), ("Cache-Control: no-cache", 3),
    ])
    func `E85: each waiting client gets its own request if the response may not be reused`(
        control: String, requests: Int
    ) async throws {
        var resource = OriginResource(
            .pattern(PatternBytes(length: 50_000)), rules: [OriginRule(0..<1, .stall(after: nil))])
        let field = control.split(separator: ": ").map(String.init)
        resource.headerFields[.cacheControl] = "no-store"
        resource.headerFields[try #require(HTTPField.Name(field[0]))] = field[1]
        let page = resource
        let clock = ManualClock()
        var configuration = ProxyConfiguration()
        try await OriginServer.run(["/a": page]) { origin in
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, clock: clock) { server, _ in
                async let first = server.get("/a")
                async let second = server.get("/a")
                async let third = server.get("/a")
                try await clock.waitForSleepers(3)
                try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
                origin.release()
                for response in try await [first, second, third] {
                    #expect(response.body.elementsEqual(page.content.bytes(0..<50_000)))
                }
                #expect(origin.log.exchanges.count == requests)
            }
        }
    }

    @Test func `A response of a generic type that is not a manifest is served before it is complete`() async throws {
        let stalling = OriginResource.pattern(2000, .stall(after: 100))
        var resource = stalling
        resource.contentType = "application/octet-stream"
        let film = resource
        try await OriginServer.run(["/film": film]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let response = try await server.get(Self.target(origin, "/film"), "Range: bytes=0-9\r\n")
                #expect(response.status == 206)
                #expect(response.body == film.content.bytes(0..<10))
                origin.release()
            }
        }
    }

    @Test(
        "E287: a redirect whose body is never received or never ends is sent without a body",
        arguments: ["Content-Length: 500\r\n", "", "Transfer-Encoding: chunked\r\n"])
    func redirectWithoutBody(framing: String) async throws {
        let text = "HTTP/1.1 302 Found\r\nLocation: /b\r\n\(framing)\r\n"
        try await OriginServer.run(["/a": .pattern(10, .raw(text, closes: false))]) { origin in
            try await reverse(origin) { server in
                let response = try await server.get("/a")
                #expect(response.status == 302)
                #expect(response.field("location") == "/b")
                #expect(response.field("content-length") == "0")
                #expect(origin.log.exchanges.count == 1)
            }
        }
    }

    @Test func `A redirect loop at the origin causes 502 without Retry-After`() async throws {
        try await OriginServer.run(["/a": .redirect(to: "/b"), "/b": .redirect(to: "/a")]) { origin in
            try await ProxyServer.run { server, _ in
                let response = try await server.get(Self.target(origin, "/a"))
                #expect(response.status == 502)
                #expect(response.field("retry-after") == nil)
            }
        }
    }

    @Test func `If the origin closes the connection without a response, the client gets 502`() async throws {
        var resource = OriginResource(.data(Data()))
        resource.raw = OriginResource.RawResponse([], closes: true)
        let closing = resource
        try await OriginServer.run(["/a": closing]) { origin in
            try await reverse(origin) { server in
                let response = try await server.get("/a", method: "POST")
                #expect(response.status == 502)
            }
        }
    }

    @Test(arguments: [201, 202, 203, 204, 205, 226, 299])
    func `A success status other than 200 and 206 is forwarded with its fields`(status: Int) async throws {
        var resource = OriginResource(.data(Data()))
        resource.refusal = OriginRefusal(status, ["X-Beacon": "seen"])
        let beacon = resource
        try await OriginServer.run(["/a": beacon]) { origin in
            for freshness in [FreshnessPolicy.http, .immutable] {
                try await ProxyServer.run(freshness: freshness) { server, _ in
                    let response = try await server.get(Self.target(origin, "/a"))
                    #expect(response.status == status)
                    #expect(response.field("x-beacon") == "seen")
                }
            }
        }
    }

    @Test func `The long body of an error response is forwarded completely`() async throws {
        let rule = OriginRule(0..<Int.max, revise: { $0.status = 404 })
        let content = OriginContent.pattern(PatternBytes(length: 200_000))
        let page = OriginResource(content, etag: nil, contentType: "text/html", rules: [rule])
        try await OriginServer.run(["/page": page]) { origin in
            try await ProxyServer.run { server, _ in
                let response = try await server.get(Self.target(origin, "/page"))
                #expect(response.status == 404)
                #expect(response.field("content-type") == "text/html")
                #expect(response.body.elementsEqual(content.bytes(0..<200_000)))
                #expect(response.field("cache-status") == "spool; fwd=miss; fwd-status=404")
            }
        }
    }

    @Test func `An empty file is sent with its ETag, even if the origin rejects ranges of the file`() async throws {
        let empty = OriginResource(.data(Data()), etag: "\"empty\"", contentType: "video/mp4")
        try await OriginServer.run(["/empty": empty]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                for _ in 0..<2 {
                    let response = try await server.get(Self.target(origin, "/empty"))
                    #expect(response.status == 200)
                    #expect(response.field("etag") == "\"empty\"")
                    #expect(response.field("content-type") == "video/mp4")
                    #expect(response.field("content-length") == "0")
                }
                #expect(origin.log.exchanges.count == 2)
                #expect(try await server.get(Self.target(origin, "/empty"), "Range: bytes=0-\r\n").status == 416)
            }
        }
    }

    @Test(arguments: [(nil, 503), (60, 200), (0, 503)] as [(Int?, Int)])
    func `A stale response is used after an origin error only within its stale-if-error time`(
        window: Int?, status: Int
    ) async throws {
        let fails = OriginRule(1..<Int.max, revise: { $0.status = 503 })
        var resource = OriginResource.pattern(1000)
        resource.rules = [fails]
        resource.headerFields[.cacheControl] = "max-age=0" + (window.map { ", stale-if-error=\($0)" } ?? "")
        let film = resource
        try await OriginServer.run(["/film": film]) { origin in
            try await reverse(origin) { server in
                #expect(try await server.get("/film").status == 200)
                // The client must never receive the error instead of the stale response, so the request is repeated.
                for _ in 0..<40 {
                    let response = try await server.get("/film")
                    #expect(response.status == status)
                    if status == 200 { #expect(response.body == film.content.bytes(0..<1000)) }
                }
            }
        }
    }

    @Test func `HEAD for media that is not stored is sent with the header fields of the source`() async throws {
        let film = OriginResource.pattern(1000, .requiresField("Authorization", "Bearer 1", else: 401))
        try await OriginServer.run(["/film": film]) { origin in
            try await ProxyServer.run { server, _ in
                let url = origin.url("/film")
                let fields: HTTPFields = [.authorization: "Bearer 1"]
                for source in [
                    MediaSource(url: url, headerFields: fields),
                    MediaSource(url: url) { _ in ResolvedRequest(url: url, headerFields: fields) },
                ] {
                    let handed = try #require(server.url(for: source))
                    #expect(try await server.get(handed.path, method: "HEAD").status == 200)
                }
            }
        }
    }

    @Test func `A reverse proxy returns no URL for media from another origin`() async throws {
        try await OriginServer.run([:]) { origin in
            try await reverse(origin) { server in
                #expect(server.url(for: origin.url("/a"))?.path == "/a")
                let other = try #require(URL(string: "http://other.example/a"))
                #expect(server.url(for: other) == nil)
                #expect(server.url(for: MediaSource(url: other, headerFields: [.authorization: "a"])) == nil)
            }
        }
    }

    @Test func `A stale response after an origin error is reported in Cache-Status and in the metrics`() async throws {
        var resource = OriginResource(.pattern(PatternBytes(length: 1000)), rules: [OriginRule(1..<9, .status(500))])
        resource.headerFields[.cacheControl] = "max-age=0"
        let film = resource
        try await OriginServer.run(["/a": film]) { origin in
            try await ProxyServer.run { server, _ in
                let target = Self.target(origin, "/a")
                #expect(try await server.get(target).field("cache-status")?.contains("fwd=miss") == true)
                let stale = try await server.get(target)
                #expect(stale.status == 200)
                #expect(stale.field("cache-status")?.hasPrefix("spool; hit; ttl=-") == true)
                let figures = String(decoding: try await server.get("/.spool/metrics").body, as: UTF8.self)
                #expect(figures.contains("spool_requests_total{result=\"stale\"} 1"))
            }
        }
    }

    @Test func `If no response is received in time, the 504 contains the error of the last attempt`() async throws {
        let port = try await OriginServer.run([:]) { origin in origin.port }
        let clock = ManualClock()
        try await ProxyServer.run(clock: clock) { server, cache in
            let events = cache.events()
            async let response = server.get("/http/127.0.0.1:\(port)/a")
            try await clock.waitForSleepers(1)
            for await event in events {
                if case .retrying = event.kind { break }
            }
            clock.advance(by: .seconds(60))
            let said = try await response
            #expect(said.status == 504)
            let text = String(decoding: said.body, as: UTF8.self)
            #expect(text.contains("refused"), "\(text)")
        }
    }

    private func compressingOrigin() -> ScriptedUpstream {
        let upstream = ScriptedUpstream([:])
        upstream.script("/a") { _, _ in
            let fields: HTTPFields = [.contentType: "video/mp4", .contentEncoding: "gzip", .contentLength: "10"]
            return ScriptedUpstream.Response(HTTPResponse(status: .ok, headerFields: fields), .data(Data(0..<10)))
        }
        return upstream
    }

    @Test(
        "E410: in reverse mode, a response whose Content-Encoding was not requested is passed on without being cached")
    func passedOn() async throws {
        let upstream = compressingOrigin()
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.test/")
        try await ProxyServer.run(configuration, freshness: .immutable, upstream: upstream) {
            (server, cache) async throws in
            for count in [2, 3] {
                let response = try await server.get("/a", "Range: bytes=0-9\r\n")
                #expect(response.status == 200 && response.body == Array(0..<10))
                #expect(response.field("content-encoding") == "gzip")
                #expect(upstream.log.exchanges.count == count)
            }
            #expect(cache.storedByteCount == 0)
        }
    }

    @Test("E410: in forward mode, the client of a response whose Content-Encoding was not requested is redirected")
    func redirected() async throws {
        try await ProxyServer.run(freshness: .immutable, upstream: compressingOrigin()) { server, cache in
            for _ in 0..<2 {
                let response = try await server.get("/http/origin.test/a", "Range: bytes=0-9\r\n")
                #expect(response.status == 307)
                #expect(response.field("location") == "http://origin.test/a")
            }
            #expect(cache.storedByteCount == 0)
        }
    }

    @Test(
        "E191: in reverse mode, an error response does not contain the address of the origin",
        arguments: ["GET", "POST", "HEAD"])
    func hiddenOrigin(method: String) async throws {
        var resource = OriginResource.pattern(10)
        resource.raw = OriginResource.RawResponse(
            Array("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".utf8), closes: true)
        let broken = resource
        let port = try await OriginServer.run(["/a": broken]) { origin in
            try await reverse(origin) { server in
                let response = try await server.get("/a", method: method)
                #expect(response.status == 502)
                #expect(!String(decoding: response.body, as: UTF8.self).contains("127.0.0.1"))
            }
            return origin.port
        }
        // The origin at this port has stopped.
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://127.0.0.1:\(port)/")
        try await ProxyServer.run(configuration) { server, _ in
            let response = try await server.get("/a", method: method)
            #expect([502, 504].contains(response.status))
            let text = String(decoding: response.body, as: UTF8.self)
            #expect(!text.contains("127.0.0.1") && !text.contains("\(port)") && !text.contains("refused"), "\(text)")
        }
    }
}
