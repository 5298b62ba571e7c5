import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// The effects of one client's request on the stored response and on other clients, for a server with its own origin.
@Suite(.timeLimit(.minutes(5))) struct ClientIndependenceTests {
    /// A response with a body of one byte.
    private struct Reply: Sendable {
        var status = 200
        var fields: HTTPFields
        var byte: UInt8 = 1
        /// Whether the last byte of a body of two bytes is sent with the next response.
        var isHeld = false
    }

    /// An origin whose responses a closure returns. It counts the requests.
    private final class ClosureUpstream: Upstream {
        private let requests = Mutex(0)
        private let held = Mutex<AsyncStream<Data>.Continuation?>(nil)
        private let respond: @Sendable (UpstreamRequest, Int) async throws -> Reply

        init(_ respond: @escaping @Sendable (UpstreamRequest, Int) async throws -> Reply) { self.respond = respond }

        var count: Int { requests.withLock { $0 } }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            let number = requests.withLock { count in
                count += 1
                return count
            }
            let reply = try await respond(request, number)
            let (stream, body) = AsyncStream.makeStream(of: Data.self)
            if reply.status == 200, request.method != .head { body.yield(Data([reply.byte])) }
            let previous = held.withLock { held in
                defer { held = reply.isHeld ? body : nil }
                return held
            }
            previous?.yield(Data([1]))
            previous?.finish()
            if !reply.isHeld { body.finish() }
            var fields = reply.fields
            if fields[.lastModified] == nil { fields[.eTag] = "\"a\"" }
            if reply.status == 200 { fields[.contentLength] = reply.isHeld ? "2" : "1" }
            return UpstreamResponse(
                head: HTTPResponse(status: .init(code: reply.status), headerFields: fields), url: request.url,
                body: UpstreamBody(stream))
        }
    }

    private static func run(_ upstream: ClosureUpstream, _ body: (ProxyServer) async throws -> Void) async throws {
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.example/")
        try await ProxyServer.run(configuration, upstream: upstream) { server, _ in try await body(server) }
    }

    @Test(
        "E320: a private response to a client with different fields does not disable the cache for other clients",
        arguments: ["X-Session: 1", "User-Agent: other", "Accept-Language: xx"])
    func otherField(field: String) async throws {
        let own = String(field.prefix { $0 != ":" })
        let upstream = ClosureUpstream { request, number in
            guard number > 1, request.headerFields.contains(where: { $0.name.rawName == own }) else {
                return Reply(fields: [.cacheControl: "public, max-age=600"])
            }
            return Reply(fields: [.cacheControl: "private, no-store", .setCookie: "sid=; Max-Age=0"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            let other = try await server.get("/a", "\(field)\r\nCache-Control: no-cache\r\n")
            #expect(other.field("set-cookie")?.hasPrefix("sid=") == true)
            let stored = try await server.get("/a")
            #expect(stored.field("cache-status")?.contains("hit") == true)
            #expect(upstream.count == 2)
        }
    }

    @Test(
        "E321: a cookie from a revalidation is sent only to the client whose request caused the revalidation",
        arguments: [200, 304])
    func cookieOfConfirmation(status: Int) async throws {
        let upstream = ClosureUpstream { _, number in
            guard number == 2 else {
                return Reply(status: number == 1 ? 200 : status, fields: [.cacheControl: "no-cache"])
            }
            return Reply(status: status, fields: [.cacheControl: "no-cache", .setCookie: "sid=2"])
        }
        try await Self.run(upstream) { (server) async throws in
            let cookies = try await [server.get("/a"), server.get("/a"), server.get("/a")].map {
                #expect($0.status == 200)
                #expect($0.body == [1])
                return $0.field("set-cookie")
            }
            #expect(cookies == [nil, "sid=2", nil])
        }
    }

    @Test("E322: a 304 to a request with no-store does not extend the freshness of the stored response")
    func confirmationWithoutStoring() async throws {
        let upstream = ClosureUpstream { _, number in
            number == 1
                ? Reply(fields: [.cacheControl: "max-age=0"])
                : Reply(status: 304, fields: [.cacheControl: "max-age=600"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            #expect(try await server.get("/a", "Cache-Control: no-store\r\n").body == [1])
            let count = upstream.count
            #expect(try await server.get("/a").body == [1])
            #expect(upstream.count == count + 1)
            // The 304 to the request without `no-store` has extended the freshness of the stored response.
            #expect(try await server.get("/a").body == [1])
            #expect(upstream.count == count + 1)
        }
    }

    @Test(
        "E415: a 304 that must not be stored neither updates the stored header fields nor extends freshness",
        arguments: ["no-store, max-age=600", "private, max-age=600"])
    func confirmationThatMustNotBeStored(control: String) async throws {
        let upstream = ClosureUpstream { _, number in
            number == 1
                ? Reply(fields: [.cacheControl: "max-age=0", .contentLanguage: "en"])
                : Reply(status: 304, fields: [.cacheControl: control, .contentLanguage: "fr"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").field("content-language") == "en")
            for count in 2...3 {
                #expect(try await server.get("/a").field("content-language") == "en")
                #expect(try await server.get("/a", "Cache-Control: no-store\r\n").field("content-language") == "en")
                #expect(upstream.count == 2 * count - 1)
            }
        }
    }

    @Test(
        "E450: cookies from a 304 are sent to the client together with the directives of the 304",
        arguments: ["no-store", "private", "no-cache"])
    func cookiesOfConfirmation(directive: String) async throws {
        let name = try #require(HTTPField.Name("CDN-Cache-Control"))
        let upstream = ClosureUpstream { _, number in
            number == 1
                ? Reply(fields: [.cacheControl: "public, max-age=600"])
                : Reply(status: 304, fields: [.cacheControl: "max-age=9", name: directive, .setCookie: "sid=b"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            let reloaded = try await server.get("/a", "Cache-Control: no-cache\r\n")
            #expect(reloaded.field("set-cookie") == "sid=b")
            #expect(reloaded.head.contains(directive), "\(reloaded.head)")
        }
    }

    @Test(
        "E466: a client that joins the readers of a version receives the cookies of the 304 that confirms the version")
    func cookiesOfReaders() async throws {
        let upstream = ClosureUpstream { request, number in
            request.headerFields[.ifNoneMatch] == nil
                ? Reply(fields: [.cacheControl: "public, max-age=600"], isHeld: number == 1)
                : Reply(status: 304, fields: [.setCookie: "sid=b"])
        }
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.example/")
        try await ProxyServer.run(configuration, upstream: upstream) { server, cache in
            async let first = server.get("/a")
            while try await cache.storedResources().isEmpty { await Task.yield() }
            let second = try await server.get("/a", "Cache-Control: no-cache\r\nX-Session: 1\r\n")
            #expect(second.status == 200 && second.field("set-cookie") == "sid=b")
            #expect(try await first.status == 200)
            #expect(upstream.count == 2)
        }
    }

    @Test("E451: a response that only pages of one origin may read is not sent to pages of another origin")
    func readersOfResponse() async throws {
        let upstream = ClosureUpstream { request, _ in
            let origin = request.headerFields[.origin] ?? "none"
            return Reply(fields: [.cacheControl: "public, max-age=600", .accessControlAllowOrigin: origin])
        }
        try await Self.run(upstream) { (server) async throws in
            for origin in ["https://a.example", "https://b.example", "https://a.example"] {
                let response = try await server.get("/a", "Origin: \(origin)\r\n")
                #expect(response.field("access-control-allow-origin") == origin)
            }
            #expect(upstream.count == 2)
        }
    }

    @Test(
        "E463: after a 304, the stored response is used only for pages of the origin that the response allows",
        arguments: [["a", "a", "b"], [nil, "a", "b"]] as [[String?]])
    func readersAfterConfirmation(pages: [String?]) async throws {
        let isCopied = pages[0] == nil
        let upstream = ClosureUpstream { request, number in
            guard number != 2 else {
                var fields: HTTPFields = [.cacheControl: "public, max-age=600", .eTag: "\"1\""]
                if isCopied { fields[.accessControlAllowOrigin] = request.headerFields[.origin] }
                if !isCopied { fields[.vary] = "Accept-Encoding" }
                return Reply(status: 304, fields: fields)
            }
            var fields: HTTPFields = [.cacheControl: number == 1 ? "max-age=0" : "max-age=600", .eTag: "\"1\""]
            fields[.accessControlAllowOrigin] = request.headerFields[.origin]
            if !isCopied { fields[.vary] = "Accept-Encoding" }
            return Reply(fields: fields)
        }
        try await Self.run(upstream) { (server) async throws in
            for page in pages {
                let field = page.map { "Origin: https://\($0).example\r\n" } ?? ""
                let response = try await server.get("/a", field)
                #expect(response.field("access-control-allow-origin") == page.map { "https://\($0).example" })
            }
            #expect(upstream.count == 3)
        }
    }

    @Test("E464: a response that always allows the same fixed origin is stored once for all clients")
    func fixedOrigin() async throws {
        let upstream = ClosureUpstream { _, _ in
            Reply(fields: [
                .cacheControl: "public, max-age=600", .accessControlAllowOrigin: "https://player.example",
            ])
        }
        try await Self.run(upstream) { (server) async throws in
            for field in ["", "Origin: https://player.example\r\n", ""] {
                let response = try await server.get("/a", field)
                #expect(response.field("access-control-allow-origin") == "https://player.example")
            }
            #expect(upstream.count == 1)
        }
    }

    @Test(
        "E465: an error in response to one client's HEAD request does not end the freshness of the stored response",
        arguments: [401, 403, 404, 429])
    func headWithError(status: Int) async throws {
        let upstream = ClosureUpstream { request, _ in
            request.method == .head
                ? Reply(status: status, fields: [:]) : Reply(fields: [.cacheControl: "public, max-age=600"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            let bad = try await server.get("/a", "Cache-Control: no-cache\r\nX-Session: 1\r\n", method: "HEAD")
            #expect(bad.status == status)
            #expect(try await server.get("/a").status == 200)
            #expect(upstream.count == 2)
        }
    }

    @Test(
        "E323: if the origin can't be reached, HEAD and GET requests receive the stale response",
        arguments: ["GET", "HEAD"])
    func staleHead(method: String) async throws {
        let upstream = ClosureUpstream { _, number in
            guard number == 1 else { throw UpstreamError(.unreachable, "no route") }
            return Reply(fields: [.cacheControl: "max-age=0, stale-if-error=600"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            let request = "\(method) /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            let text = String(decoding: try await server.exchange(request), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 200 "), "\(text)")
        }
    }

    @Test("E340: max-stale counts from the end of the lifetime of a response that was stale when it was received")
    func staleOnReceipt() async throws {
        let upstream = ClosureUpstream { _, _ in
            Reply(fields: [.cacheControl: "max-age=10", .age: "100", .eTag: "\"a\""])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            #expect(try await server.get("/a", "Cache-Control: max-stale=60\r\n").status == 200)
            #expect(upstream.count == 2)
            #expect(try await server.get("/a", "Cache-Control: max-stale=600\r\n").status == 200)
            #expect(upstream.count == 2)
        }
    }

    @Test("E336: while one client's reload waits for the origin, other clients receive the fresh stored response")
    func reload() async throws {
        let (gate, release) = AsyncStream.makeStream(of: Void.self)
        let (asked, isAsked) = AsyncStream.makeStream(of: Void.self)
        let upstream = ClosureUpstream { _, number in
            guard number > 1 else { return Reply(fields: [.cacheControl: "public, max-age=600"]) }
            isAsked.finish()
            for await _ in gate {}
            return Reply(status: 304, fields: [.cacheControl: "public, max-age=600"])
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a").status == 200)
            async let reloaded = server.get("/a", "Cache-Control: no-cache\r\n")
            for await _ in asked {}
            for fields in ["", "User-Agent: other\r\n"] {
                let stored = try await server.get("/a", fields)
                #expect(stored.body == [1])
                #expect(stored.field("cache-status")?.contains("hit") == true)
            }
            release.finish()
            #expect(try await reloaded.body == [1])
            #expect(upstream.count == 2)
        }
    }

    @Test("E338: a whole response to another user replaces the stored response, even if date and length are identical")
    func sameDate() async throws {
        let upstream = ClosureUpstream { request, _ in
            let isBob = HTTPField.Name("X-User").flatMap { request.headerFields[$0] } == "bob"
            let date = "Sun, 06 Nov 1994 08:49:37 GMT"
            return Reply(
                fields: [.cacheControl: "no-cache", .lastModified: date, .date: "Sun, 06 Nov 1994 09:49:37 GMT"],
                byte: isBob ? 2 : 1)
        }
        try await Self.run(upstream) { (server) async throws in
            #expect(try await server.get("/a", "X-User: alice\r\n").body == [1])
            #expect(try await server.get("/a", "X-User: bob\r\n").body == [2])
            #expect(try await server.get("/a", "X-User: alice\r\n").body == [1])
        }
    }
}
