import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
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

    @Test("E129: a stale live playlist is not used, even if its response allows that")
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
}
