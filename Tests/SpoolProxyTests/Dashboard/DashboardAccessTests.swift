import Foundation
import HTTPTypes
import NIOCore
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Access to the live page's data and actions.
@Suite(.timeLimit(.minutes(5))) struct DashboardAccessTests {
    private static let paths = [
        "status", "resources", "history", "settings", "events", "resources/" + String(repeating: "0", count: 64),
    ]

    @Test("D67: changes require the operator's token, which no response contains")
    func token() async throws {
        let token = OperatorToken.random()
        try await ProxyServer.run(DashboardAPITests.configuration(token)) { server, _ in
            let body = "{\"action\":\"pin\",\"keys\":[\"x\"]}"
            #expect(try await server.post("", token, path: "check").status == 204)
            #expect(try await server.post(body, token).status == 200)
            for wrong in [nil, OperatorToken.random()] {
                for path in ["check", "actions"] {
                    let response = try await server.post(body, wrong, path: path)
                    #expect(response.status == 401)
                    #expect(try response.json["error"] is String)
                    #expect(!response.text.contains(token.text))
                }
            }
            let short = "Authorization: Bearer \(token.text.dropLast())\r\n"
            #expect(try await server.post(body, nil, short).status == 401)
            for method in ["GET", "PUT", "DELETE"] {
                #expect(try await server.get("/.spool/api/actions", method: method).status == 405)
            }
            for path in Self.paths.dropLast() where path != "events" {
                #expect(!(try await server.get("/.spool/api/" + path).text.contains(token.text)))
            }
            #expect("\(token)" != token.text)
        }
        try await ProxyServer.run { server, _ in
            let response = try await server.post("{}", OperatorToken.random())
            #expect(response.status == 403)
            #expect(try await server.json("settings")["canChange"] as? Bool == false)
        }
    }

    @Test
    func `Only the file's owner can read the stored token; a valid token is reused, and an invalid one is replaced`()
        throws
    {
        let folder = try ScratchDirectory()
        let file = URL(fileURLWithPath: folder.file("operator-token"))
        let token = try OperatorToken.stored(in: file)
        #expect(token.text.count == 64 && token != OperatorToken.random())
        func mode() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        }
        #expect(try mode() == 0o600)
        #expect(try OperatorToken.stored(in: file) == token)
        try Data("short\n".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let next = try OperatorToken.stored(in: file)
        #expect(next != token)
        #expect(try mode() == 0o600)
        #expect(try OperatorToken.stored(in: file) == next)
    }

    @Test("D102: an error that occurs before the path of a request is known is sent as text, even by the API")
    func unknownPath() async throws {
        var configuration = ProxyConfiguration()
        configuration.limits.headerTimeout = .milliseconds(100)
        configuration.limits.maximumHeaderSize = 1000
        let (line, end) = ("GET /.spool/api/status HTTP/1.1\r\n", "Host: localhost\r\n\r\n")
        let long = String(repeating: "a", count: 2000)
        try await ProxyServer.run(configuration) { server, _ in
            for (text, status) in [
                (line, 408), (line + "A: \(long)\r\n" + end, 431), ("GET /.spool/api/\(long) HTTP/1.1\r\n" + end, 414),
                ("GET  /.spool/api/status HTTP/1.1\r\n" + end, 400), (line + "A\r\n" + end, 400),
                (line + "Transfer-Encoding: gzip\r\n" + end, 501),
                ("GET /.spool/api/status HTTP/2.0\r\n" + end, 505),
            ] {
                var bytes = try await server.exchange(text)[...]
                let response = try #require(RawResponse(&bytes))
                #expect(response.status == status, "\(response.head)")
                #expect(response.field("content-type") == "text/plain; charset=utf-8", "\(response.head)")
                #expect(response.text.hasPrefix("spool: ") && response.text.split(separator: "\n").count == 1)
                #expect(response.field("connection") == "close" && bytes.isEmpty)
            }
        }
    }

    @Test("D90: every API error is JSON with one sentence, including errors from access control")
    func errorFormat() async throws {
        func check(_ response: RawResponse, _ status: Int) throws {
            #expect(response.status == status, "\(response.text)")
            #expect(response.field("content-type") == "application/json", "\(response.text)")
            #expect(response.field("content-security-policy") == DashboardAPI.policy)
            let json = try response.json
            #expect(Set(json.keys) == ["error"] && json["error"] is String)
        }
        let token = OperatorToken.random()
        var configuration = DashboardAPITests.configuration(token)
        configuration.token = "secret"
        try await ProxyServer.run(configuration) { server, _ in
            for path in ["/.spool/api/status", "/~wrong/.spool/api/status?a=/b", "/%7Ewrong/.spool/api/media"] {
                let response = try await server.get(path)
                try check(response, 401)
                #expect(response.field("www-authenticate") == "Bearer realm=\"spool\"")
            }
            let start = "/~secret/.spool/api/"
            try check(try await server.get(start + "nothing"), 404)
            for path in ["status", "media"] {
                let response = try await server.get(start + path, method: "DELETE")
                try check(response, 405)
                #expect(response.field("allow") == "GET, HEAD")
                try check(try await server.get(start + path, "Sec-Fetch-Site: cross-site\r\n"), 403)
            }
            let own = "Proxy-Authorization: Bearer secret\r\n"
            try check(try await server.post("{", token, own), 400)
            try check(try await server.post("{}", nil, own), 401)
            try check(try await server.post(String(repeating: " ", count: 2 << 20), token, own), 413)
            var unknown = try await server.exchange(
                "GET \(start)status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")[...]
            try check(try #require(RawResponse(&unknown)), 421)
            var malformed = try await server.exchange(
                "POST \(start)actions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token.text)\r\n"
                    + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")[...]
            try check(try #require(RawResponse(&malformed)), 400)
            // Pages outside the API report errors as text.
            #expect(try await server.get("/.spool/health").text.hasPrefix("spool: "))
        }
        try await ProxyServer.run { server, _ in
            try check(try await server.get("/.spool/api/status", "Sec-Fetch-Site: cross-site\r\n"), 403)
            try check(try await server.post("{}", token), 403)
        }
        configuration.origin = URL(string: "http://origin.test/")
        try await ProxyServer.run(configuration, upstream: ScriptedUpstream([:])) { server, _ in
            try check(try await server.get("/~secret/.spool/api/status"), 404)
        }
    }

    @Test(
        "D68: pages other than the live page can neither read nor use the API, even a page allowed by --cors-origin",
        arguments: [
            "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: null", "Origin: https://player.example",
            "Origin: http://localhost:1", "Referer: http://localhost/https/a.example/page.html",
            "Referer: https://player.example/", "Sec-Fetch-Dest: iframe", "Sec-Fetch-Dest: image",
            "Sec-Fetch-Dest: script", "Sec-Fetch-Dest: video", "Sec-Fetch-Mode: websocket",
        ])
    func otherPages(field: String) async throws {
        let token = OperatorToken.random()
        var configuration = DashboardAPITests.configuration(token)
        configuration.corsOrigins = ["https://player.example", "null"]
        try await ProxyServer.run(configuration) { server, _ in
            let fields = (field.hasPrefix("Origin") ? "" : "Origin: http://localhost\r\n") + field + "\r\n"
            for path in Self.paths {
                let response = try await server.get("/.spool/api/" + path, fields)
                #expect(response.status == 403, "\(path)")
            }
            #expect(try await server.post("", token, path: "check", fields).status == 403)
            #expect(try await server.post("{}", token, fields).status == 403)
        }
    }

    @Test("D69: the live page and programs may use the API, whether or not the server requires its own token")
    func livePage() async throws {
        let token = OperatorToken.random()
        for own in ["", "/~secret"] {
            var configuration = DashboardAPITests.configuration(token)
            configuration.token = own.isEmpty ? nil : "secret"
            try await ProxyServer.run(configuration) { server, _ in
                for fields in [
                    "", "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors\r\n",
                    "Sec-Fetch-Site: none\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n",
                    "Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n",
                    "Referer: http://localhost\(own)/.spool/\r\n",
                ] {
                    #expect(try await server.get("\(own)/.spool/api/status", fields).status == 200, "\(fields)")
                }
                let missing = try await server.get("/.spool/api/status")
                #expect(missing.status == (own.isEmpty ? 200 : 401))
            }
        }
    }

    @Test(
        "D80: an --admin address serves only the operator's pages, so that no other page has the same address",
        arguments: [true, false])
    func adminAddress(isReverse: Bool) async throws {
        let page = OriginResource(.data(Data("<p>".utf8)), contentType: "text/html")
        try await OriginServer.run(["/page.html": page]) { origin in
            var configuration = DashboardAPITests.configuration(nil)
            configuration.admin = ("127.0.0.1", 0)
            configuration.corsOrigins = ["https://player.example"]
            if isReverse { configuration.origin = origin.url("/") }
            try await ProxyServer.run(configuration) { server, _ in
                let path = isReverse ? "/page.html" : "/http/127.0.0.1:\(origin.port)/page.html"
                #expect(try await server.get(path).status == 200)
                let port = try #require(server.pageAddress.flatMap { URL(string: $0)?.port })
                func get(_ path: String, _ fields: String = "") async throws -> RawResponse {
                    let text = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\r\n"
                    var bytes = try await RawConnection.exchange(text, port: port)[...]
                    return try #require(RawResponse(&bytes))
                }
                #expect(try await get(path).status == 404)
                #expect(try await get("/.spool/").status == 200)
                for path in ["/.spool/api/media", "/.spool/metrics", "/.spool/api/status"] {
                    #expect(try await get(path).status == 200)
                    let response = try await get(
                        path, "Origin: https://player.example\r\nSec-Fetch-Site: cross-site\r\n")
                    #expect(response.status == 403)
                    #expect(response.field("access-control-allow-origin") == nil)
                }
            }
        }
    }

    @Test("D81: an --admin address that other machines can reach requires a token")
    func openAdminAddress() throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        for (host, token, isValid) in [
            ("0.0.0.0", nil, false), ("192.0.2.2", nil, false), ("::", nil, false), ("127.0.0.1", nil, true),
            ("localhost", nil, true), ("::1", nil, true), ("0.0.0.0", "secret", true),
        ] as [(String, String?, Bool)] {
            for isReverse in [true, false] {
                var configuration = ProxyConfiguration()
                configuration.admin = (host, 0)
                configuration.token = token
                if isReverse {
                    configuration.origin = URL(string: "http://origin.test/")
                    configuration.allowsUnauthenticatedClients = token == nil
                }
                let made = Result { try ProxyServer(cache: cache, configuration: configuration) }
                switch made {
                case .success: #expect(isValid, "\(host)")
                case .failure(let error): #expect(!isValid && (error as? ProxyError)?.code == .configuration)
                }
            }
        }
    }

    @Test("D82: the server does not request its own pages, even at another of its addresses")
    func ownPages() async throws {
        var configuration = DashboardAPITests.configuration(nil)
        configuration.admin = ("127.0.0.1", 0)
        try await ProxyServer.run(configuration) { server, _ in
            let port = try #require(server.pageAddress.flatMap { URL(string: $0)?.port })
            for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
                #expect(try await server.get("/http/\(host):\(port)/.spool/api/resources").status == 403)
            }
            let page = "http://127.0.0.1:\(port)/.spool/api/media"
            try await OriginServer.run(["/a": .redirect(to: page)]) { (origin) async throws in
                let response = try await server.get("/http/127.0.0.1:\(origin.port)/a")
                #expect(response.status == 502)
            }
        }
    }

    @Test("D70: a proxied page is sandboxed, so that it can't access the API at the same address")
    func proxiedPage() async throws {
        var page = OriginResource(
            .data(Data("<script src=\"/.spool/api/status\"></script>".utf8)), contentType: "text/html")
        page.headerFields[.cacheControl] = "max-age=100"
        page.headerFields[try #require(HTTPField.Name("Content-Security-Policy"))] = "sandbox allow-scripts"
        let resource = page
        try await OriginServer.run(["/page.html": resource]) { origin in
            try await ProxyServer.run { server, _ in
                for _ in 0..<2 {
                    let response = try await server.get("/http/127.0.0.1:\(origin.port)/page.html")
                    #expect(response.field("content-security-policy") == "sandbox")
                    #expect(response.field("access-control-allow-origin") == nil)
                }
                #expect(try await server.get("/.spool/").field("content-security-policy") == DashboardAPI.policy)
                #expect(
                    try await server.get("/.spool/api/status").field("content-security-policy") == DashboardAPI.policy)
            }
        }
    }

    @Test("D71: no API response contains a query, a token or the secret of a source")
    func secrets() async throws {
        let token = OperatorToken.random()
        var film = OriginResource(.pattern(PatternBytes(length: 100_000)))
        film.headerFields[try #require(HTTPField.Name("X-Signed"))] = "signature-secret"
        film.headerFields[try #require(HTTPField.Name("Content-Location"))] = "/a?query-secret"
        let none = OriginResource(.data(Data()), rules: [.always(.status(404))])
        try await OriginServer.run(["/film": film, "/none": none]) { origin in
            var configuration = DashboardAPITests.configuration(token)
            configuration.token = "server-secret"
            try await ProxyServer.run(configuration, freshness: .immutable) { server, cache in
                let start = "/~server-secret/http/127.0.0.1:\(origin.port)"
                let fields = "Authorization: Basic dXNlcjpwYXNzd29yZC1zZWNyZXQ=\r\n"
                _ = try await server.get(start + "/film?sig=query-secret", fields)
                _ = try await server.get(start + "/none?sig=query-secret", fields)
                let url = origin.url("/film?sig=query-secret").absoluteString
                    .replacingOccurrences(of: "//", with: "//user:password-secret@")
                let bearer = "Proxy-Authorization: Bearer server-secret\r\n"
                let preload = try await server.post("{\"action\":\"preload\",\"urls\":[\"\(url)\"]}", token, bearer)
                #expect(preload.status == 200)
                await cache.waitUntilIdle()
                var texts = [preload.text]
                let prefix = "/~server-secret/.spool/api/"
                let keys = try await cache.storedResources().map(\.key.hash)
                #expect(!keys.isEmpty)
                for path in ["status", "resources", "history", "settings"] + keys.map({ "resources/" + $0 }) {
                    let response = try await server.get(prefix + path)
                    #expect(response.status == 200)
                    texts.append(response.text)
                }
                texts.append(try await server.firstMessages())
                for text in texts {
                    #expect(!text.contains("secret") && !text.contains(token.text), "\(text)")
                    #expect(!text.contains("dXNlcjp"))
                }
            }
        }
    }

    @Test func `With --origin, the live page has a separate address and plays no media`() async throws {
        try await OriginServer.run(["/film": .pattern(1000)]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                let page = try await server.get("/.spool/")
                let status = try await server.get("/.spool/api/status")
                #expect(page.status == 404 && status.status == 404)
                #expect(server.pageAddress == nil)
            }
        }
        try await ProxyServer.run { server, _ in
            let port = try #require(server.port)
            #expect(server.pageAddress == "http://127.0.0.1:\(port)/.spool/")
        }
    }
}

extension ProxyServer {
    /// Returns the first two messages of a stream of events, as text.
    fileprivate func firstMessages() async throws -> String {
        var texts: [String] = []
        do {
            try await feed.events(after: nil, for: "127.0.0.1").run { message in
                texts.append(String(buffer: message))
                if texts.count == 2 { throw CancellationError() }
            }
        } catch is CancellationError {
            // The stream was cancelled after both messages had been received.
        }
        return texts.joined()
    }
}
