import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolTesting
import Testing

/// Malformed responses over real sockets. Each response causes only its own request to fail, and the process and the
/// transport continue to work.
@Suite(.timeLimit(.minutes(10)))
struct HostileHeadTests {
    private static func clients() -> [any Upstream] {
        var clients: [any Upstream] = [URLSessionUpstream()]
        #if AsyncHTTPClient
        clients.append(AsyncHTTPClientUpstream())
        #endif
        return clients
    }

    /// Checks that a request for `/a` fails with each client, and that a valid response is then received.
    private func checkRefused(
        _ response: String, closes: Bool = true, codes: Set<UpstreamError.Code>? = nil,
        by clients: [any Upstream] = clients()
    ) async throws {
        let resources: [String: OriginResource] = [
            "/a": .pattern(10, .raw(response, closes: closes)), "/b": .pattern(1000),
        ]
        try await OriginServer.run(resources) { origin in
            for upstream in clients {
                let error = await #expect(throws: UpstreamError.self, "\(type(of: upstream))") {
                    for try await _ in try await upstream.open(UpstreamRequest(url: origin.url("/a"))).body {}
                }
                if let codes, let error { #expect(codes.contains(error.code), "\(type(of: upstream)): \(error)") }
                let count = try await bytes(of: origin.url("/b"), over: upstream)
                #expect(count == 1000)
            }
        }
    }

    /// Returns the size of a valid response. Retries after transient errors, because the connection of the malformed
    /// response may still be closing.
    private func bytes(of url: URL, over upstream: any Upstream) async throws -> Int {
        while true {
            do {
                var count = 0
                for try await chunk in try await upstream.open(UpstreamRequest(url: url)).body { count += chunk.count }
                return count
            } catch let error as UpstreamError where error.isTransient { continue }
        }
    }

    @Test(
        "E63: a request fails if the status of the response is 101 or outside the range 100 to 599",
        arguments: ["000", "001", "020", "050", "099", "600", "700", "999", "101"], [true, false])
    func statuses(_ status: String, closes: Bool) async throws {
        #if AsyncHTTPClient
        try await checkRefused(
            "HTTP/1.1 \(status) Odd\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello", closes: closes,
            codes: [.malformedResponse],
            by: [AsyncHTTPClientUpstream()])
        #endif
    }

    @Test(
        "E63: a request fails if the response has no valid HTTP/1 status line",
        arguments: [
            "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 99999999999999999999 OK", "HTTP/1.1 -20 OK", "HTTP/1.1", "",
            "HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/99.1 200 OK", "\u{0}\u{1}\u{2}", "<html>",
        ])
    func statusLines(_ line: String) async throws {
        #if AsyncHTTPClient
        try await checkRefused("\(line)\r\nContent-Length: 5\r\n\r\nhello", by: [AsyncHTTPClientUpstream()])
        #endif
    }

    @Test(
        "E63: a malformed header field causes only its own request to fail, or has no effect",
        arguments: [
            ": x", "A\u{0}: x", "A: \u{0}\u{1}\u{7f}", "A\r: x", "A : x", "  folded", "A", "\u{e9}: \u{fffd}",
            "Content-Length: -5", "Content-Length: 99999999999999999999999", "Content-Length: 0x5", "Content-Length: ",
            "Content-Length: 18446744073709551615", "Content-Length: 9223372036854775808",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Connection: upgrade\r\nUpgrade: h2c",
            String(repeating: "A: b\r\n", count: 10_000) + "A: b", "A: " + String(repeating: "b", count: 1_000_000),
            "Location: http://127.0.0.1:70000/", "Content-Range: bytes 9223372036854775807-9223372036854775807/*",
        ])
    func oddFields(_ field: String) async throws {
        let resources: [String: OriginResource] = [
            "/a": .pattern(10, .raw("HTTP/1.1 206 OK\r\n\(field)\r\n\r\nhello")), "/b": .pattern(1000),
        ]
        #if AsyncHTTPClient
        try await OriginServer.run(resources) { origin in
            let upstream = AsyncHTTPClientUpstream()
            do {
                for try await _ in try await upstream.open(UpstreamRequest(url: origin.url("/a"))).body {}
            } catch let error as UpstreamError {
                #expect(!error.message.isEmpty)
            }
            let count = try await bytes(of: origin.url("/b"), over: upstream)
            #expect(count == 1000)
        }
        #endif
    }

    @Test(
        "E70: a body with two lengths, or with a transfer coding other than a single “chunked”, is rejected",
        arguments: [
            "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: gzip",
            "Content-Length: 15\r\nContent-Length: 16", "Content-Length: 15, 16",
        ])
    func framings(_ fields: String) async throws {
        #if AsyncHTTPClient
        let error = "HTTP/1.1 200 OK\r\n\(fields)\r\nETag: \"a\"\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        try await checkRefused(error, codes: [.malformedResponse], by: [AsyncHTTPClientUpstream()])
        #endif
    }

    @Test("E63: a request fails if it is redirected to an invalid port", arguments: [0, 65536, 99999])
    func ports(_ port: Int) async throws {
        try await checkRefused(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:\(port)/\r\nContent-Length: 0\r\n\r\n",
            codes: [.invalidRedirect])
    }

    @Test("A redirect is followed without waiting for the rest of its body", arguments: [nil, 3] as [Int64?])
    func redirectWithEndlessBody(_ sent: Int64?) async throws {
        #if AsyncHTTPClient
        let head = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1000\r\n\r\n" + (sent == nil ? "" : "abc")
        try await OriginServer.run(["/a": .pattern(10, .raw(head, closes: false)), "/b": .pattern(1000)]) { origin in
            var configuration = HTTPUpstream.Configuration()
            configuration.clock = ManualClock()
            let response = try await AsyncHTTPClientUpstream(configuration).open(UpstreamRequest(url: origin.url("/a")))
            #expect(response.url == origin.url("/b"))
            var count = 0
            for try await chunk in response.body { count += chunk.count }
            #expect(count == 1000)
        }
        #endif
    }

    @Test("E70: a request fails if the response contains two different Location fields")
    func twoLocations() async throws {
        #if AsyncHTTPClient
        try await checkRefused(
            "HTTP/1.1 302 Found\r\nLocation: /b\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n",
            codes: [.invalidRedirect],
            by: [AsyncHTTPClientUpstream()])
        #endif
    }
}
