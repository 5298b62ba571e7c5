import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// The time for which live playlists are used from the cache.
@Suite(.timeLimit(.minutes(1))) struct LivePlaylistTests {
    private static func playlist(_ sequence: Int, control: String) -> OriginResource {
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-MEDIA-SEQUENCE:\(sequence)
            #EXTINF:4,
            s.ts

            """
        var list = OriginResource(.data(Data(text.utf8)), etag: nil, contentType: "application/vnd.apple.mpegurl")
        list.headerFields[.cacheControl] = control
        return list
    }

    @Test("E129: a stale live playlist is not used, even if its response allows the use of stale responses")
    func staleWhileRevalidate() async throws {
        let control = "max-age=0, stale-while-revalidate=300, stale-if-error=300"
        try await OriginServer.run(["/live.m3u8": Self.playlist(1000, control: control)]) { origin in
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/live.m3u8"
                for sequence in 1000..<1003 {
                    origin.set("/live.m3u8", Self.playlist(sequence, control: control))
                    let body = try await server.get(target).body
                    #expect(String(decoding: body, as: UTF8.self).contains("SEQUENCE:\(sequence)"))
                }
                await origin.stop()
                #expect(try await server.get(target).status == 504)
            }
        }
    }

    @Test("E213: only whole responses contain the origin's content digests, and rewritten playlists contain no digests")
    func digests() async throws {
        var list = Self.playlist(1, control: "max-age=100")
        var media = OriginResource(.pattern(PatternBytes(length: 1000)))
        for name in ["Content-Digest", "Content-MD5", "Repr-Digest", "Digest"] {
            list.headerFields[try #require(HTTPField.Name(name))] = "a"
            media.headerFields[try #require(HTTPField.Name(name))] = "a"
        }
        var whole = media
        whole.rules = [.always(.ignoresRanges(acceptRanges: nil))]
        try await OriginServer.run(["/a.m3u8": list, "/a": media, "/b": whole]) { origin in
            try await ProxyServer.run { server, _ in
                for method in ["HEAD", "GET", "HEAD"] {
                    let response = try await server.get("/http/127.0.0.1:\(origin.port)/a.m3u8", method: method)
                    #expect(response.status == 200)
                    #expect(!response.head.lowercased().contains("digest:"), "\(method)")
                    #expect(response.field("content-md5") == nil)
                }
                let part = try await server.get("/http/127.0.0.1:\(origin.port)/a", "Range: bytes=0-9\r\n")
                #expect(part.status == 206)
                #expect(part.field("content-digest") == nil && part.field("content-md5") == nil)
                #expect(part.field("repr-digest") == "a" && part.field("digest") == "a")
                for _ in 0..<2 {
                    let stored = try await server.get("/http/127.0.0.1:\(origin.port)/b")
                    #expect(stored.status == 200)
                    #expect(stored.field("content-digest") == "a" && stored.field("content-md5") == "a")
                    let range = try await server.get("/http/127.0.0.1:\(origin.port)/b", "Range: bytes=0-9\r\n")
                    #expect(range.status == 206)
                    #expect(range.field("content-digest") == nil && range.field("content-md5") == nil)
                }
                // On one connection, each response is prepared from the previous one.
                let request = "GET /http/127.0.0.1:\(origin.port)/b HTTP/1.1\r\nHost: localhost\r\n"
                let ends = ["\r\n", "Range: bytes=0-9\r\n\r\n", "\r\n", "Connection: close\r\n\r\n"]
                var bytes = try await server.exchange(ends.map { request + $0 }.joined())[...]
                for status in [200, 206, 200, 200] {
                    let response = try #require(RawResponse(&bytes))
                    #expect(response.status == status)
                    #expect(response.field("content-md5") == (status == 200 ? "a" : nil))
                }
            }
        }
    }

    @Test("E128: HEAD requests do not keep a live playlist fresh, and return the origin's status")
    func heads() async throws {
        let control = "max-age=0"
        try await OriginServer.run(["/live.m3u8": Self.playlist(1000, control: control)]) { origin in
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/live.m3u8"
                _ = try await server.get(target)
                origin.set("/live.m3u8", Self.playlist(1001, control: "max-age=100"))
                let head = try await server.get(target, method: "HEAD")
                #expect(head.field("cache-status") == "spool; fwd=stale; fwd-status=200")
                let body = try await server.get(target).body
                #expect(String(decoding: body, as: UTF8.self).contains("SEQUENCE:1001"))
            }
        }
    }

    @Test("E291: a large complete playlist is the same in every response until its version changes")
    func largePlaylist() async throws {
        func playlist(_ version: Int) -> OriginResource {
            let segments = (0..<4000).map { "#EXTINF:4,\nhttp://cdn.example/v\(version)/\($0).ts\n" }.joined()
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n\(segments)#EXT-X-ENDLIST\n"
            var list = OriginResource(
                .data(Data(text.utf8)), etag: "\"\(version)\"", contentType: "application/vnd.apple.mpegurl")
            list.headerFields[.cacheControl] = "max-age=\(version == 1 ? 100 : 0)"
            return list
        }
        try await OriginServer.run(["/a.m3u8": playlist(1), "/b.m3u8": playlist(0)]) { origin in
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)"
                let first = try await server.get("\(target)/a.m3u8")
                #expect(first.body.count > RewrittenManifests.minimumBytes)
                let second = try await server.get("\(target)/a.m3u8")
                #expect(second.status == 200 && second.body == first.body)
                #expect(second.field("etag") == first.field("etag"))
                let part = try await server.get("\(target)/a.m3u8", "Range: bytes=0-6\r\n")
                #expect(part.status == 206 && part.body == Array("#EXTM3U".utf8))
                let tag = try #require(first.field("etag"))
                #expect(try await server.get("\(target)/a.m3u8", "If-None-Match: \(tag)\r\n").status == 304)

                for version in [2, 3] {
                    origin.set("/b.m3u8", playlist(version))
                    let text = String(decoding: try await server.get("\(target)/b.m3u8").body, as: UTF8.self)
                    #expect(text.contains("/v\(version)/3999.ts"))
                }
            }
        }
    }

    @Test("E297: a large playlist is not sent to another user, whatever its validator and date")
    func playlistsOfUsers() async throws {
        let upstream = ScriptedUpstream([:])
        let field = try #require(HTTPField.Name("X-Emby-Token"))
        upstream.script("/a.m3u8") { request, _ in
            let user = request.headerFields[field] ?? ""
            let segments = (0..<4000).map { "#EXTINF:4,\ns\($0).ts?api_key=\(user)\n" }.joined()
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(segments)#EXT-X-ENDLIST\n"
            var head = HTTPResponse(status: .ok)
            head.headerFields = [
                .contentType: "application/vnd.apple.mpegurl", .contentLength: "\(text.utf8.count)",
                .cacheControl: "private", .date: "Thu, 26 Nov 2026 10:00:00 GMT",
                .lastModified: "Wed, 25 Nov 2026 10:00:00 GMT",
            ]
            return ScriptedUpstream.Response(head, .data(Data(text.utf8)))
        }
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.test/")
        try await ProxyServer.run(configuration, upstream: upstream) { (server, _) async throws in
            for user in ["alice", "bobby", "alice"] {
                let response = try await server.get("/a.m3u8", "X-Emby-Token: \(user)\r\n")
                let keys = String(decoding: response.body, as: UTF8.self).matches(of: /api_key=([a-z]*)/)
                #expect(keys.count == 4000 && keys.allSatisfy { $0.output.1 == user })
            }
        }
    }

    @Test(
        "E293: a playlist with the media type of a segment is rewritten, and cached no longer than other playlists",
        arguments: ["/live.M3U8", "/live"])
    func wrongType(path: String) async throws {
        func list(_ sequence: Int) -> OriginResource {
            var list = Self.playlist(sequence, control: "max-age=3600")
            list.contentType = "video/mp2t"
            return list
        }
        let now = Mutex(Date())
        try await OriginServer.run([path: list(1000)]) { origin in
            try await ProxyServer.run(now: { now.withLock { $0 } }) { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)\(path)"
                for sequence in [1000, 1001] {
                    origin.set(path, list(sequence))
                    let text = String(decoding: try await server.get(target).body, as: UTF8.self)
                    #expect(text.contains("SEQUENCE:\(sequence)"))
                    now.withLock { $0 += 3 }
                }
            }
        }
    }

    /// Returns an origin whose playlist is compressed in a format that the server can't decompress.
    private func originWithBrotli() -> ScriptedUpstream {
        let sent = Mutex(UInt8(0))
        let origin = ScriptedUpstream([:])
        origin.script("/live.m3u8") { _, _ in
            let count = sent.withLock { value in
                value += 1
                return value
            }
            let body = Data([0x8B, 0x15, 0x80, count] + Array(repeating: 0, count: 40))
            var head = HTTPResponse(status: .ok)
            head.headerFields = [
                .contentType: "application/vnd.apple.mpegurl", .contentLength: "\(body.count)",
                .contentEncoding: "br", .cacheControl: "max-age=3600",
            ]
            return ScriptedUpstream.Response(head, .data(body))
        }
        return origin
    }

    @Test("E348: in reverse mode, a compressed playlist is revalidated for each client, because it may be live")
    func compressed() async throws {
        var configuration = ProxyConfiguration()
        configuration.origin = URL(string: "http://origin.test/")
        try await ProxyServer.run(configuration, upstream: originWithBrotli()) { (server, _) async throws in
            for count in UInt8(1)...3 {
                let response = try await server.get("/live.m3u8")
                #expect(response.body.count == 44 && response.body[response.body.startIndex + 3] == count)
            }
        }
    }

    @Test(
        "E348: in forward mode, a player that requests a compressed playlist is redirected to the origin",
        arguments: [FreshnessPolicy.http, .revalidate, .immutable])
    func redirected(freshness: FreshnessPolicy) async throws {
        try await ProxyServer.run(freshness: freshness, upstream: originWithBrotli()) { server, _ in
            for _ in 0..<3 {
                let response = try await server.get("/http/origin.test/live.m3u8?a=%20b")
                #expect(response.status == 307)
                #expect(response.field("location") == "http://origin.test/live.m3u8?a=%20b")
                #expect(response.field("cache-control") == "no-store")
                #expect(response.body.isEmpty)
            }
        }
    }

    @Test(
        "E498: a playlist that the origin compresses with gzip is rewritten",
        arguments: [FreshnessPolicy.http, .immutable])
    func gzip(freshness: FreshnessPolicy) async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://127.0.0.2/s.ts\n#EXT-X-ENDLIST\n"
        let list = OriginResource(
            .data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl",
            rules: [.always(OriginBehavior.gzip)])
        try await OriginServer.run(["/a.m3u8": list]) { origin in
            try await ProxyServer.run(freshness: freshness) { server, _ in
                for _ in 0..<2 {
                    let response = try await server.get("/http/127.0.0.1:\(origin.port)/a.m3u8")
                    #expect(response.status == 200)
                    #expect(response.field("content-encoding") == nil)
                    #expect(String(decoding: response.body, as: UTF8.self).contains("\n/http/127.0.0.2/s.ts\n"))
                }
            }
        }
    }
}
