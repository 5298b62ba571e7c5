import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The server over real sockets, with a real origin.
@Suite(.timeLimit(.minutes(5))) struct ProxyServerTests {
    private static let pattern = PatternBytes(length: 3_000_000)

    private static var film: OriginResource { OriginResource(.pattern(pattern)) }

    private static func bytes(_ range: Range<Int64>) -> [UInt8] { OriginContent.pattern(pattern).bytes(range) }

    private static func target(_ origin: OriginServer, _ path: String = "/film.mp4") -> String {
        "/http/127.0.0.1:\(origin.port)\(path)"
    }

    @Test func `Media is delivered completely, and again without its origin`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let first = try await server.get(Self.target(origin))
                #expect(first.status == 200)
                #expect(first.body.elementsEqual(Self.bytes(0..<3_000_000)))
                #expect(first.field("cache-status") == "spool; fwd=miss; fwd-status=200; stored")
                await origin.stop()
                let second = try await server.get(Self.target(origin))
                #expect(second.body.elementsEqual(first.body))
                #expect(second.field("cache-status") == "spool; hit")
                #expect(second.field("etag") == first.field("etag"))
            }
        }
    }

    @Test func `Ranges are served as RFC 9110 requires`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run { server, _ in
                let target = Self.target(origin)
                let part = try await server.get(target, "Range: bytes=1000000-1000099\r\n")
                #expect(part.status == 206)
                #expect(part.body == Self.bytes(1_000_000..<1_000_100))
                #expect(part.field("content-range") == "bytes 1000000-1000099/3000000")
                let suffix = try await server.get(target, "Range: bytes=-50\r\n")
                #expect(suffix.body == Self.bytes(2_999_950..<3_000_000))
                let past = try await server.get(target, "Range: bytes=3000000-\r\n")
                #expect(past.status == 416)
                #expect(past.field("content-range") == "bytes */3000000")
                let several = try await server.get(target, "Range: bytes=0-4,100-104\r\n")
                #expect(several.status == 206)
                #expect(several.field("content-type")?.hasPrefix("multipart/byteranges; boundary=") == true)
                #expect(several.body.count == Int(several.field("content-length") ?? ""))
                let old = try await server.get(target, "Range: bytes=0-4\r\nIf-Range: \"old\"\r\n")
                #expect(old.status == 200)
                #expect(old.body.elementsEqual(Self.bytes(0..<3_000_000)))
                let tag = try #require(part.field("etag"))
                let same = try await server.get(target, "Range: bytes=700000-700099\r\nIf-Range: \(tag)\r\n")
                #expect(same.status == 206)
                #expect(same.body == Self.bytes(700_000..<700_100))
                for odd in ["bytes=a-b", "items=0-1", "bytes=5-2", "bytes=9223372036854775808-"] {
                    let response = try await server.get(target, "Range: \(odd)\r\n")
                    #expect(response.status == 200 || response.status == 416)
                }
            }
        }
    }

    @Test func `A range with If-Range or an unsatisfiable second range is fetched from its own offset`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let target = Self.target(origin)
                for _ in 0..<2 {
                    let held = try await server.get(target, "Range: bytes=1000000-1000099\r\nIf-Range: \"v1\"\r\n")
                    #expect(held.status == 206)
                    #expect(held.body == Self.bytes(1_000_000..<1_000_100))
                }
                // No bytes before the range were requested.
                #expect(origin.log.rangesSent("/film.mp4").allSatisfy { $0.lowerBound >= 900_000 })
                for _ in 0..<2 {
                    let left = try await server.get(target, "Range: bytes=2000000-2000099,3000000-\r\n")
                    #expect(left.status == 206)
                    #expect(left.body == Self.bytes(2_000_000..<2_000_100))
                }
                let old = try await server.get(target, "Range: bytes=1000000-1000099\r\nIf-Range: \"v0\"\r\n")
                #expect(old.status == 200)
                #expect(old.body.elementsEqual(Self.bytes(0..<3_000_000)))
            }
        }
    }

    @Test func `HEAD ignores Range, even if the origin responds`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run { server, _ in
                let response = try await server.get(Self.target(origin), "Range: bytes=9000000-\r\n", method: "HEAD")
                #expect(response.status == 200)
                #expect(response.field("content-length") == "3000000")
            }
        }
    }

    @Test func `Responses to pipelined requests are sent in order`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run { server, _ in
                let requests = (0..<20).map { index in
                    let last = index == 19 ? "Connection: close\r\n" : ""
                    return
                        "GET \(Self.target(origin)) HTTP/1.1\r\nHost: localhost\r\nRange: bytes=\(index * 100_000)-\(index * 100_000 + index)\r\n\(last)\r\n"
                }
                var bytes = try await server.exchange(requests.joined())[...]
                for index in 0..<20 {
                    let response = try #require(RawResponse(&bytes))
                    let start = Int64(index * 100_000)
                    #expect(response.body == Self.bytes(start..<start + Int64(index) + 1))
                }
                #expect(bytes.isEmpty)
            }
        }
    }

    @Test func `For concurrent clients, each byte of media that is not stored is fetched once`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run { server, _ in
                let target = Self.target(origin)
                try await withThrowingTaskGroup(of: [UInt8].self) { group in
                    for _ in 0..<16 { group.addTask { try await server.get(target).body } }
                    for try await body in group { #expect(body.elementsEqual(Self.bytes(0..<3_000_000))) }
                }
                #expect(origin.log.bytesSent("/film.mp4") == 3_000_000)
            }
        }
    }

    @Test func `HEAD returns the same status and length as GET, without a body`() async throws {
        try await OriginServer.run(["/film.mp4": Self.film]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let cold = try await server.get(Self.target(origin), method: "HEAD")
                #expect(cold.status == 200)
                #expect(cold.field("content-length") == "3000000")
                #expect(origin.log.bytesSent("/film.mp4") == 0)
                _ = try await server.get(Self.target(origin))
                let warm = try await server.get(Self.target(origin), method: "HEAD")
                #expect(warm.field("content-length") == "3000000")
                #expect(warm.field("cache-status") == "spool; hit")
            }
        }
    }

    @Test func `The forward form allows only GET, HEAD and OPTIONS`() async throws {
        try await ProxyServer.run { server, _ in
            for method in ["POST", "PUT", "DELETE", "CONNECT", "TRACE", "BREW"] {
                let response = try await server.get("/http/127.0.0.1:1/a", method: method)
                #expect(response.status == 405)
                #expect(response.field("allow") == "GET, HEAD, OPTIONS")
            }
            #expect(try await server.get("/http/127.0.0.1:1/a", method: "OPTIONS").status == 204)
            #expect(try await server.get("*", method: "OPTIONS").status == 204)
            #expect(try await server.get("*", method: "CONNECT").status == 405)
        }
    }

    @Test func `A malformed request is rejected with 400 and a reason, and ends only its own connection`() async throws
    {
        try await ProxyServer.run { server, _ in
            let bytes = try await server.exchange("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET / HTTP/1.1\r\n\r\n")
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(text.contains("Connection: close\r\n"))
            #expect(text.hasSuffix("2 Host fields\n"))
            #expect(try await server.get("/.spool/health").status == 200)
        }
    }

    @Test func `An HTML page from an origin is sandboxed, without the fields that affect other pages`() async throws {
        var page = OriginResource(.data(Data("<script>1</script>".utf8)), contentType: "text/html")
        for (name, value) in [
            ("Service-Worker-Allowed", "/"), ("Set-Cookie", "a=b"), ("Clear-Site-Data", "\"*\""),
            ("Content-Security-Policy", "default-src *"), ("Content-Disposition", "inline"),
        ] { page.headerFields[try #require(HTTPField.Name(name))] = value }
        let served = page
        try await OriginServer.run(["/page": served]) { origin in
            try await ProxyServer.run { server, _ in
                let response = try await server.get(Self.target(origin, "/page"))
                #expect(response.field("content-security-policy") == "sandbox")
                #expect(response.field("x-content-type-options") == "nosniff")
                #expect(response.field("content-disposition") == "inline")
                for name in ["service-worker-allowed", "set-cookie", "clear-site-data"] {
                    #expect(response.field(name) == nil)
                }
            }
        }
    }
}
