import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// Client requests that cause the server to send requests to the origin.
@Suite(.timeLimit(.minutes(5))) struct ClientDemandsTests {
    /// An origin that allows each of its responses to be stored, and records the methods of requests.
    private final class CountingUpstream: Upstream {
        private let methods = Mutex<[String]>([])

        /// The methods of all requests so far.
        var received: [String] { methods.withLock { $0 } }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            methods.withLock { $0.append(request.method.rawValue) }
            let fields: HTTPFields = [.cacheControl: "max-age=3600", .eTag: "\"a\"", .contentLength: "1"]
            let (stream, body) = AsyncStream.makeStream(of: Data.self)
            body.yield(Data([1]))
            body.finish()
            return UpstreamResponse(
                head: HTTPResponse(status: .ok, headerFields: fields), url: request.url, body: UpstreamBody(stream))
        }
    }

    private static func run(
        respecting directives: Bool?, _ body: (ProxyServer, CountingUpstream) async throws -> Void
    ) async throws {
        let upstream = CountingUpstream()
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.example/")
        configuration.honorsClientCacheControl = directives
        try await ProxyServer.run(configuration, upstream: upstream) { server, _ in try await body(server, upstream) }
    }

    @Test(
        "E217: a client can force requests to the origin only if the server respects the client's directives",
        arguments: [nil, true, false] as [Bool?])
    func directives(isRespected: Bool?) async throws {
        try await Self.run(respecting: isRespected) { (server, upstream) async throws in
            #expect(try await server.get("/a").status == 200)
            for fields in ["Cache-Control: no-cache\r\n", "Cache-Control: max-age=0\r\n", "Pragma: no-cache\r\n"] {
                #expect(try await server.get("/a", fields).status == 200)
            }
            #expect(upstream.received.count == (isRespected == false ? 1 : 4))
        }
    }

    /// An origin whose first response is for one client only, and that never sends another response.
    private struct StallingUpstream: Upstream {
        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            if request.method == .get, request.headerFields[.accept] == nil {
                let (stream, body) = AsyncStream.makeStream(of: Data.self)
                body.finish()
                let fields: HTTPFields = [.setCookie: "a=b", .contentLength: "0"]
                return UpstreamResponse(
                    head: HTTPResponse(status: .ok, headerFields: fields), url: request.url, body: UpstreamBody(stream))
            }
            try await ContinuousClock().sleep(for: .seconds(3600))
            throw UpstreamError(.timedOut, "no response")
        }
    }

    @Test(
        "E216: if the origin does not respond to a safe request, the client gets 504 at the time limit",
        arguments: ["HEAD", "OPTIONS", "GET"])
    func limits(method: String) async throws {
        let clock = ManualClock()
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        configuration.origin = URL(string: "http://origin.example/")
        var settings = MediaCache.Configuration()
        settings.freshness = .http
        configuration.configure(&settings)
        let cache = MediaCache.inMemory(upstream: StallingUpstream(), configuration: settings)
        let server = try ProxyServer(cache: cache, configuration: configuration, clock: clock)
        try await server.start()
        // The cookie in this response makes later requests bypass the cache.
        if method == "GET" { #expect(try await server.get("/a").status == 200) }
        let advancing = Task {
            while !Task.isCancelled {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(2))
            }
        }
        let response = try await server.get("/a", "Accept: */*\r\n", method: method)
        #expect(response.status == 504)
        #expect(response.field("retry-after") == "1")
        advancing.cancel()
        await server.stop()
        await cache.close()
    }

    @Test("E217: a stored response is used after a request with a safe method, but not after one with an unsafe method")
    func methods() async throws {
        for (method, isSafe) in [
            ("PROPFIND", true), ("REPORT", true), ("SEARCH", true), ("QUERY", true), ("OPTIONS", true), ("POST", false),
            ("propfind", false), ("UNKNOWN", false),
        ] {
            try await Self.run(respecting: nil) { (server, upstream) async throws in
                #expect(try await server.get("/a").status == 200)
                #expect(try await server.get("/a", "Content-Length: 0\r\n", method: method).status == 200)
                #expect(try await server.get("/a").status == 200)
                #expect(upstream.received == ["GET", method] + (isSafe ? [] : ["GET"]), "\(method)")
            }
        }
    }
}
