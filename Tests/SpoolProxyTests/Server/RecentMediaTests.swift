import Foundation
import HTTPTypes
import NIOCore
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The requests that the fast path for recently sent media must pass to the normal path.
@Suite(.timeLimit(.minutes(5))) struct RecentMediaTests {
    /// Sends requests for one path over one connection, and returns the responses.
    ///
    /// - Parameter fields: The header field of each request; an empty string for none.
    private func responses(
        _ server: ProxyServer, _ target: String, _ fields: [String]
    ) async throws -> [RawResponse] {
        let requests = fields.enumerated().map { index, field in
            let last = index == fields.count - 1 ? "Connection: close\r\n" : ""
            return "GET \(target) HTTP/1.1\r\nHost: localhost\r\n" + (field.isEmpty ? "" : field + "\r\n") + last
                + "\r\n"
        }
        var bytes = try await server.exchange(requests.joined())[...]
        return try fields.map { _ in try #require(RawResponse(&bytes)) }
    }

    private static func film(_ fields: HTTPFields) -> OriginResource {
        var film = OriginResource.pattern(1000)
        film.headerFields = fields
        return film
    }

    @Test func `A request without the token is rejected with 401 on a connection that was authorized before`()
        async throws
    {
        try await OriginServer.run(["/film": Self.film([.cacheControl: "max-age=1000"])]) { origin in
            var configuration = ProxyConfiguration()
            configuration.token = "a-token-of-some-length"
            try await ProxyServer.run(configuration) { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/film"
                let field = "Proxy-Authorization: Bearer a-token-of-some-length"
                // The last request can't use the fast path, because it closes the connection.
                let all = try await responses(server, target, [field, field, field, "", "", field])
                #expect(all.map(\.status) == [200, 200, 200, 401, 401, 200])
            }
        }
    }

    @Test func `Each response has one Date, even if the origin sent none`() async throws {
        var film = OriginResource.pattern(10)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"1\"\r\nCache-Control: max-age=1000\r\n\r\n"
        film.raw = OriginResource.RawResponse(Array((head + "0123456789").utf8), closes: false)
        let undated = film
        try await OriginServer.run(["/film": undated]) { origin in
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/film"
                for response in try await responses(server, target, ["", "Range: bytes=1-9", "Range: bytes=2-9", ""]) {
                    let lines = response.head.lowercased().split(separator: "\r\n")
                    #expect(lines.count { $0.hasPrefix("date: ") } == 1, "\(response.head)")
                }
            }
        }
    }

    @Test func `A response that varies by Origin is not reused for a different Origin`() async throws {
        let fields: HTTPFields = [.cacheControl: "max-age=1000", .vary: "Origin"]
        try await OriginServer.run(["/film": Self.film(fields)]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                let sent = ["", "", "Origin: http://a.example", "Origin: http://b.example", "", ""]
                let all = try await responses(server, "/film", sent)
                #expect(all.map(\.status) == [200, 200, 200, 200, 200, 200])
                let asked = origin.log.exchanges.map { $0.headerFields[.origin] }
                #expect(asked == [nil, "http://a.example", "http://b.example"])
            }
        }
    }
}
