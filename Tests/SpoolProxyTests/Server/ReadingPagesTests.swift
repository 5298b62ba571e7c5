import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Access to responses by web pages (the CORS protocol of the Fetch standard).
@Suite(.timeLimit(.minutes(5))) struct ReadingPagesTests {
    private static let page = "https://player.example"

    private static func run(
        letting origins: [String], _ body: (ProxyServer, _ target: String) async throws -> Void
    ) async throws {
        var film = OriginResource(.pattern(PatternBytes(length: 1000)))
        film.headerFields[.accessControlAllowOrigin] = "https://origin.example"
        var configuration = ProxyConfiguration()
        configuration.corsOrigins = origins
        try await OriginServer.run(["/film": film]) { origin in
            try await ProxyServer.run(configuration, freshness: .immutable) { server, _ in
                try await body(server, "/http/127.0.0.1:\(origin.port)/film")
            }
        }
    }

    @Test func `An allowed page receives CORS fields in responses from the cache and from the origin`() async throws {
        try await Self.run(letting: [Self.page]) { server, target in
            for _ in 0..<3 {
                let response = try await server.get(target, "Origin: \(Self.page)\r\nRange: bytes=0-9\r\n")
                #expect(response.status == 206)
                #expect(response.field("access-control-allow-origin") == Self.page)
                #expect(response.field("access-control-expose-headers")?.contains("Content-Range") == true)
            }
            let asked = try await server.get(
                target, "Origin: \(Self.page)\r\nAccess-Control-Request-Method: GET\r\n", method: "OPTIONS")
            #expect(asked.field("access-control-allow-methods") == "GET, HEAD")
            #expect(asked.field("access-control-allow-headers")?.contains("Range") == true)
        }
    }

    @Test func `A page that is not allowed receives no CORS fields, even if the origin allows it`() async throws {
        try await Self.run(letting: [Self.page]) { server, target in
            for _ in 0..<3 {
                let response = try await server.get(target, "Origin: https://origin.example\r\n")
                #expect(response.status == 200)
                #expect(response.field("access-control-allow-origin") == nil)
                #expect(response.field("vary") == "Origin")
            }
        }
    }

    @Test func `If pages are allowed, responses to requests without Origin also vary by Origin`() async throws {
        try await Self.run(letting: ["*"]) { server, target in
            for fields in ["", "", "Range: bytes=0-9\r\n", "Range: bytes=0-9\r\n"] {
                let response = try await server.get(target, fields)
                #expect(response.field("vary") == "Origin")
            }
        }
        try await Self.run(letting: []) { server, target in
            let response = try await server.get(target)
            #expect(response.field("vary") == nil)
        }
    }

    @Test(
        "E212: in forward mode, only the configuration lets pages read responses, and Referrer-Policy is `no-referrer`")
    func fieldsOfOrigins() async throws {
        var media = OriginResource(.pattern(PatternBytes(length: 1000)))
        media.headerFields[.cacheControl] = "max-age=1000"
        let names = [
            "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Allow-Credentials",
        ]
        for name in names { media.headerFields[try #require(HTTPField.Name(name))] = "*" }
        media.headerFields[try #require(HTTPField.Name("Referrer-Policy"))] = "unsafe-url"
        let resource = media
        try await OriginServer.run(["/a": resource]) { origin in
            try await ProxyServer.run { server, _ in
                for (method, fields) in [("HEAD", ""), ("GET", "Origin: \(Self.page)\r\n"), ("GET", "")] {
                    let response = try await server.get("/http/127.0.0.1:\(origin.port)/a", fields, method: method)
                    #expect(response.status == 200)
                    for name in names { #expect(response.field(name) == nil, "\(name)") }
                    #expect(response.field("referrer-policy") == "no-referrer")
                }
                #expect(try await server.get("/http/127.0.0.1:1/a").field("referrer-policy") == "no-referrer")
            }
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                let response = try await server.get("/a")
                for name in names { #expect(response.field(name) == "*", "\(name)") }
                #expect(response.field("referrer-policy") == "unsafe-url")
            }
        }
    }

    @Test("E214: a preflight does not require the token, and is not sent to the origin, in forward and reverse mode")
    func preflights() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            for isReverse in [false, true] {
                var configuration = ProxyConfiguration()
                configuration.token = "secret"
                configuration.corsOrigins = [Self.page]
                if isReverse { configuration.origin = origin.url("/") }
                try await ProxyServer.run(configuration) { server, _ in
                    let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
                    func preflight(_ page: String) async throws -> RawResponse {
                        let fields = "Origin: \(page)\r\nAccess-Control-Request-Method: GET\r\n"
                        return try await server.get(target, fields, method: "OPTIONS")
                    }
                    let response = try await preflight(Self.page)
                    #expect(response.status == 204)
                    #expect(response.field("access-control-allow-origin") == Self.page)
                    #expect(response.field("access-control-allow-headers")?.contains("Authorization") == true)
                    #expect(try await preflight("https://other.example").field("access-control-allow-origin") == nil)
                    // Without the token, other requests are rejected.
                    #expect(try await server.get(target, "Origin: \(Self.page)\r\n", method: "OPTIONS").status == 401)
                    let get = try await server.get(
                        target, "Origin: \(Self.page)\r\nAuthorization: Bearer secret\r\n")
                    #expect(get.status == 200 && get.field("access-control-allow-origin") == Self.page)
                }
            }
            #expect(origin.log.exchanges.allSatisfy { $0.method == "GET" })
        }
    }

    @Test(
        "E192: in forward mode, fields that redirect browsers or expose timings to pages are removed from responses"
    )
    func fieldsForPages() async throws {
        var media = OriginResource(.pattern(PatternBytes(length: 1000)))
        media.headerFields[.cacheControl] = "max-age=1000"
        let names = ["Refresh", "Link", "Timing-Allow-Origin"]
        for name in names { media.headerFields[try #require(HTTPField.Name(name))] = "0; url=/b" }
        let resource = media
        try await OriginServer.run(["/a": resource]) { origin in
            try await ProxyServer.run { server, _ in
                for method in ["HEAD", "GET", "GET"] {
                    let response = try await server.get("/http/127.0.0.1:\(origin.port)/a", method: method)
                    #expect(response.status == 200)
                    for name in names { #expect(response.field(name) == nil, "\(name)") }
                }
            }
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                let response = try await server.get("/a")
                for name in names { #expect(response.field(name) == "0; url=/b", "\(name)") }
            }
        }
    }

    @Test("E229: a response with long header fields retains the fields that protect pages, or is not stored")
    func longFields() async throws {
        let protective = ["Content-Security-Policy", "X-Frame-Options", "Strict-Transport-Security"]
        for (policy, link, isStored) in [(10, 20_000, true), (20_000, 10, false)] {
            var page = OriginResource(.pattern(PatternBytes(length: 1000)), contentType: "text/html")
            page.headerFields[.cacheControl] = "max-age=1000"
            let address = String(repeating: "a", count: link)
            page.headerFields[try #require(HTTPField.Name("Link"))] = "</\(address)>; rel=canonical"
            for name in protective {
                page.headerFields[try #require(HTTPField.Name(name))] = String(repeating: "a", count: policy)
            }
            let resource = page
            try await OriginServer.run(["/a": resource]) { origin in
                var configuration = ProxyConfiguration()
                configuration.origin = origin.url("/")
                try await ProxyServer.run(configuration) { server, _ in
                    for _ in 0..<3 {
                        let response = try await server.get("/a")
                        #expect(response.status == 200 && response.body.count == 1000)
                        for name in protective { #expect(response.field(name)?.count == policy, "\(name)") }
                    }
                    #expect(origin.log.exchanges.count == (isStored ? 1 : 3))
                }
            }
        }
    }

    @Test(
        "E228: a page from another origin can't use a forward proxy on this machine, even on a connection in use"
    )
    func otherPages() async throws {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            let cross = "Sec-Fetch-Site: cross-site\r\n"
            for isReverse in [false, true] {
                var configuration = ProxyConfiguration()
                if isReverse { configuration.origin = origin.url("/") }
                let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
                try await ProxyServer.run(configuration, freshness: .immutable) { server, _ in
                    let status = isReverse ? 200 : 403
                    #expect(try await server.get(target, cross).status == status)
                    #expect(origin.log.exchanges.isEmpty == !isReverse)
                    let request = "GET \(target) HTTP/1.1\r\nHost: localhost\r\n"
                    var bytes = try await server.exchange(
                        "\(request)\r\n\(request)\r\n\(request)\(cross)Connection: close\r\n\r\n")[...]
                    let statuses = try (0..<3).map { _ in try #require(RawResponse(&bytes)).status }
                    #expect(statuses == [200, 200, status])
                }
            }
        }
    }
}
