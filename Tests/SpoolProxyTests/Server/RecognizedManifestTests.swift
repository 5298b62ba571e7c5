import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// Manifests that a player recognizes although they are unusual. The server must rewrite them, too.
@Suite(.timeLimit(.minutes(1))) struct RecognizedManifestTests {
    private static let steering = "#EXT-X-CONTENT-STEERING:SERVER-URI=\"https://steer.test/s\""
    private static let master = "\(steering)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://origin.test/v.m3u8\n"

    /// Returns an origin that sends `bodies` one after the other.
    private func origin(
        _ path: String, _ bodies: [String], _ fields: HTTPFields, hasLength: Bool = true
    ) -> ScriptedUpstream {
        let upstream = ScriptedUpstream([:])
        upstream.script(path) { _, index in
            let body = Data(bodies[min(index, bodies.count - 1)].utf8)
            var head = HTTPResponse(status: .ok, headerFields: fields)
            if hasLength { head.headerFields[.contentLength] = "\(body.count)" }
            return ScriptedUpstream.Response(head, .data(body))
        }
        return upstream
    }

    @Test("E499: a playlist is rewritten even if an earlier response with the same entity tag was not a playlist")
    func sameTag() async throws {
        let fields: HTTPFields = [
            .contentType: "application/vnd.apple.mpegurl", .eTag: "\"x\"", .cacheControl: "no-store",
        ]
        let upstream = origin("/a.m3u8", ["please wait", "#EXTM3U\n" + Self.master], fields)
        try await ProxyServer.run(upstream: upstream) { server, _ in
            let first = try await server.get("/http/origin.test/a.m3u8")
            #expect(String(decoding: first.body, as: UTF8.self) == "please wait")
            let second = String(decoding: try await server.get("/http/origin.test/a.m3u8").body, as: UTF8.self)
            #expect(!second.contains("STEERING") && second.contains("\n/http/origin.test/v.m3u8"))
        }
    }

    /// Playlists that players read, with the content type.
    private static let lists: [(text: String, type: String)] = [
        ("#EXTM3U x\n" + master, "application/vnd.apple.mpegurl"),
        ("#EXTM3U\r" + master.replacingOccurrences(of: "\n", with: "\r"), "text/plain"),
        ("#EXTM3U\n## \(steering)\n#EXT-X-UNKNOWN:\"\(steering)\n" + master, "text/plain"),
        ("#EXTM3U\n" + String(repeating: "# a comment\n", count: 1000) + master, "text/plain"),
    ]

    @Test(
        "E500: a playlist is rewritten even if its type, first line, line endings or comments are unusual",
        arguments: lists.indices, [true, false])
    func unusual(_ index: Int, hasLength: Bool) async throws {
        let (text, type) = Self.lists[index]
        let upstream = origin("/list", [text], [.contentType: type], hasLength: hasLength)
        try await ProxyServer.run(upstream: upstream) { server, _ in
            for _ in 0..<2 {
                let received = String(decoding: try await server.get("/http/origin.test/list").body, as: UTF8.self)
                #expect(!received.contains("#EXT-X-CONTENT-STEERING"))
                #expect(received.contains("/http/origin.test/v.m3u8"))
                #expect(!received.contains("http://origin.test/v.m3u8"))
            }
        }
    }

    @Test(
        "E500: a playlist with the type of other content is not sent unchanged",
        arguments: ["video/mp4", "audio/mpeg", "font/woff", "application/json", "text/event-stream"], [0, 30_000])
    func otherType(_ type: String, commentCount: Int) async throws {
        let text = "#EXTM3U\n" + String(repeating: "# a comment\n", count: commentCount) + Self.master
        let upstream = origin("/list", [text], [.contentType: type, .eTag: "\"v1\""], hasLength: commentCount > 0)
        try await ProxyServer.run(upstream: upstream) { server, _ in
            for _ in 0..<3 {
                let response = try await server.get("/http/origin.test/list")
                #expect(!String(decoding: response.body, as: UTF8.self).contains("STEERING"))
            }
        }
    }

    @Test("E501: a playlist that sets a cookie is rewritten for each client, even if it bypasses the cache")
    func cookies() async throws {
        let fields: HTTPFields = [
            .contentType: "application/vnd.apple.mpegurl", .setCookie: "a=b", .cacheControl: "no-cache", .eTag: "\"x\"",
        ]
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/s.ts\n#EXTINF:4,\nhttp://origin.test/t.ts\n"
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.test/")
        configuration.token = "secret"
        let upstream = origin("/live.m3u8", [list], fields)
        try await ProxyServer.run(configuration, upstream: upstream) { (server, _) async throws in
            for range in ["", "", "", "Range: bytes=0-\r\n"] {
                let response = try await server.get("/~secret/live.m3u8", range)
                #expect(response.field("set-cookie") == "a=b")
                let text = String(decoding: response.body, as: UTF8.self)
                #expect(text.contains("\n/~secret/s.ts\n") && text.contains("\n/~secret/t.ts\n"), "\(text)")
                #expect(response.field("content-length") == "\(response.body.count)")
            }
        }
    }

    @Test(
        "E348: a compressed response is redirected even if neither its path nor its type indicates a playlist",
        arguments: ["gzip", "br"])
    func compressed(coding: String) async throws {
        let fields: HTTPFields = [.contentType: "application/octet-stream", .contentEncoding: coding]
        let upstream = origin("/list", ["\u{1}\u{2}\u{3}"], fields)
        try await ProxyServer.run(upstream: upstream) { server, _ in
            for _ in 0..<2 {
                let response = try await server.get("/http/origin.test/list", "Accept-Encoding: gzip, br\r\n")
                #expect(response.status == 307 && response.body.isEmpty)
            }
        }
    }
}
