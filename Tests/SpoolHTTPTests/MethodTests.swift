import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolHTTP

/// Tests of the requests that a proxy server sends in addition to `GET`.
@Suite("Request methods and bodies", .timeLimit(.minutes(10)))
struct MethodTests {
    private func body(_ pieces: [[UInt8]]) -> UpstreamBody {
        UpstreamBody(
            AsyncStream<[UInt8]> { stream in
                for piece in pieces { stream.yield(piece) }
                stream.finish()
            })
    }

    @Test("The body of a POST or PUT request is streamed, with or without a known length")
    func bodies() async throws {
        let piece = [UInt8](repeating: 7, count: 100_000)
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            for (index, (upstream, hasLength)) in Transports.all.flatMap({ [($0, true), ($0, false)] }).enumerated() {
                var request = UpstreamRequest(url: origin.url("/a"))
                request.method = index % 2 == 0 ? .post : .put
                request.body = body([piece, piece])
                if hasLength { request.headerFields[.contentLength] = "200000" }
                let response = try await upstream.open(request)
                for try await _ in response.body {}
                let exchange = try #require(origin.log.exchanges.last)
                #expect(exchange.method == request.method.rawValue)
                #expect(exchange.requestBody == piece + piece)
                if upstream is URLSessionUpstream { continue }
                #expect(exchange.headerFields[.contentLength] == (hasLength ? "200000" : nil))
            }
        }
    }

    @Test("A response to HEAD contains headers but no body, and its connection is reused")
    func head() async throws {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            for upstream in Transports.all {
                for _ in 0..<2 {
                    var request = UpstreamRequest(url: origin.url("/a"))
                    request.method = .head
                    let response = try await upstream.open(request)
                    #expect(response.head.headerFields[.contentLength] == "1000")
                    var count = 0
                    for try await chunk in response.body { count += chunk.count }
                    #expect(count == 0)
                }
                #expect(Set(origin.log.exchanges.suffix(2).map(\.connection)).count == 1)
            }
        }
    }

    @Test("A redirect is followed only if following redirects is enabled and the method is GET or HEAD")
    func redirects() async throws {
        try await OriginServer.run(["/a": .redirect(to: "/b"), "/b": .pattern(10)]) { origin in
            for upstream in Transports.all {
                for (method, follows, status) in [
                    (.get, true, 200), (.head, true, 200), (.get, false, 302), (.head, false, 302),
                ] as [(HTTPRequest.Method, Bool, Int)] {
                    var request = UpstreamRequest(url: origin.url("/a"))
                    request.method = method
                    request.followsRedirects = follows
                    let response = try await upstream.open(request)
                    #expect(response.head.status.code == status)
                    for try await _ in response.body {}
                }
            }
        }
        let url = try #require(URL(string: "http://h/a"))
        for method in [HTTPRequest.Method.post, .put, .delete, .patch] {
            var request = UpstreamRequest(url: url)
            request.method = method
            var walk = try RedirectWalk(request, .init())
            let head = HTTPResponse(status: .temporaryRedirect, headerFields: [.location: "/b"])
            #expect(try !walk.follow(head))
        }
    }

    @Test("Sending body bytes restarts the timeout for the response headers")
    func slowBody() async throws {
        let clock = ManualClock()
        var configuration = HTTPUpstream.Configuration()
        configuration.clock = clock
        let exchange = Exchange<Data>("http://h/a", configuration)
        let head = Task { try await exchange.head() }
        try await clock.waitForSleepers(1)
        exchange.recordSent()
        clock.advance(by: configuration.responseTimeout)
        try await clock.waitForSleepers(1)
        clock.advance(by: configuration.responseTimeout)
        let error = await #expect(throws: UpstreamError.self) { try await head.value }
        #expect(error?.code == .timedOut)
    }

    #if AsyncHTTPClient
    @Test("If a cache does not follow redirects, a read fails with the redirect's status and Location")
    func cache() async throws {
        let scratch = try ScratchDirectory()
        var configuration = MediaCache.Configuration()
        configuration.followsRedirects = false
        try await OriginServer.run(["/a": .redirect(to: "/b"), "/b": .pattern(10)]) { origin in
            let cache = MediaCache(
                directory: URL(fileURLWithPath: scratch.path), upstream: AsyncHTTPClientUpstream(),
                configuration: configuration)
            let error = await #expect(throws: CacheError.self) {
                try await cache.media(for: origin.url("/a")).response()
            }
            #expect(error?.response?.status == 302)
            #expect(error?.response?.fields[.location] == "/b")
            await cache.close()
        }
    }
    #endif
}
