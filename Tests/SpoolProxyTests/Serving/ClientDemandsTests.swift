import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// Requests with which a client makes the server ask the origin again.
@Suite(.timeLimit(.minutes(5))) struct ClientDemandsTests {
    /// An origin that allows each response to be stored, and counts the requests.
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
        var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
        configuration.port = 0
        configuration.threads = 1
        configuration.origin = URL(string: "http://origin.example/")
        configuration.honoursRequestDirectives = directives
        settings.freshness = .http
        configuration.prepare(&settings)
        let cache = MediaCache.inMemory(upstream: upstream, configuration: settings)
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        do {
            try await body(server, upstream)
            await server.stop()
            await cache.close()
        } catch {
            await server.stop()
            await cache.close()
            throw error
        }
    }

    @Test(
        "E217: a client can force requests to the origin only if the server respects its directives",
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

    @Test("E217: the stored response is used after safe methods, and not after other ones")
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
