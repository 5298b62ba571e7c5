import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Tests whether bodies that do not match their type or status are received and stored.
@Suite(.timeLimit(.minutes(5))) struct ContentTests {
    private static let song = OriginContent.data(.mpegAudio(frames: 400))
    private static let errors = [
        ("<?xml version=\"1.0\"?><subsonic-response status=\"failed\"/>", "text/xml"),
        ("{\"error\": \"rate limited\"}", "application/json"), ("<html>Sign in</html>", "text/html"),
        ("", "audio/mpeg"),
    ]

    @Test(
        "An error that is sent with status 200 is forwarded but not stored, and the next request receives the track",
        arguments: 0..<4)
    func error(_ index: Int) async throws {
        let (text, type) = Self.errors[index]
        let rule = OriginRule(
            0..<1,
            prepare: { _, resource in
                resource.content = .data(Data(text.utf8))
                (resource.contentType, resource.etag) = (type, nil)
            },
            revise: { if text.isEmpty { $0.framing = .chunked } })
        let track = OriginResource(Self.song, rules: [.first(1, .ignoresRanges()), rule])
        let all = Self.song.bytes(0..<Self.song.length)
        try await OriginServer.run(["/media": track]) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                #expect(try await PlainClient().get(url).text == text)
                expectBytes(try await PlainClient().get(url).body, all)
            }
        }
        try await OriginServer.run(["/media": track]) { origin in
            let scratch = try ScratchDirectory()
            for isLater in [false, true] {
                let cache = MediaCache(
                    directory: URL(fileURLWithPath: scratch.file("cache")), upstream: HTTPUpstream.standard())
                // An app may receive either an error or the text of the first response.
                let bytes = try? await cache.media(for: origin.url("/media")).bytes()
                if isLater { expectBytes(bytes, all) } else { #expect(bytes?.count != all.count) }
                await cache.close()
            }
        }
    }

    @Test("E495: a response with Content-Length 0 is forwarded but not stored, and the next request receives the track")
    func empty() async throws {
        let rule = OriginRule(
            0..<1,
            prepare: { _, resource in
                resource.content = .data(Data())
                (resource.contentType, resource.etag) = ("audio/mpeg", nil)
            })
        let track = OriginResource(Self.song, rules: [.first(1, .ignoresRanges()), rule])
        let all = Self.song.bytes(0..<Self.song.length)
        try await OriginServer.run(["/media": track]) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                #expect(try await PlainClient().get(url).body.isEmpty)
                expectBytes(try await PlainClient().get(url).body, all)
            }
        }
    }

    @Test(
        "An MP3 is received and stored even if its content type is missing or wrong",
        arguments: [
            "text/html; charset=UTF-8", "text/plain", "binary/octet-stream", "application/x-download", "", nil,
            "application/force-download", "video/mp4",
        ])
    func types(_ type: String?) async throws {
        try await Situation(OriginResource(Self.song, contentType: type)).check()
    }

    @Test(
        "E439: uncompressed media is received even though its Content-Encoding names a compression method",
        arguments: ["gzip", "x-gzip", "deflate", "br", "compress"], [nil, "\"v1\""])
    func falseCoding(_ coding: String, etag: String?) async throws {
        let rule = OriginRule.always(.field("Content-Encoding", coding))
        try await Situation(OriginResource(Self.song, etag: etag, rules: [rule]), isStored: etag != nil).check()
    }

    @Test("Playback of a preloaded MP3 with two large ID3 tags can start without the origin")
    func twoTags() async throws {
        let start = Data.id3Tag(imageSize: 300_000) + Data.id3Tag(imageSize: 400_000)
        let data = start + Data.mpegAudio(frames: 4000)
        try await OriginServer.run(["/media": OriginResource(.data(data))]) { origin in
            try await CompatibilityStage.cache { cache in
                let preload = try #require(cache.preload([MediaSource(url: origin.url("/media"))]).first)
                for await state in preload.states where state.phase.isFinal { #expect(state.phase == .finished) }
                await origin.stop()
                // A player reads a few blocks until it has identified the format.
                let end = Int64(start.count + 65536)
                let bytes = try await cache.media(for: origin.url("/media")).data(in: 0..<end)
                expectBytes(Array(bytes), Array(data.prefix(Int(end))))
            }
        }
    }

    @Test("Media is stored in a cache directory behind a symbolic link, and plays again without the origin")
    func symbolicLink() async throws {
        let scratch = try ScratchDirectory()
        try FileManager.default.createDirectory(atPath: scratch.file("volume"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("link"), withDestinationPath: scratch.file("volume"))
        try await OriginServer.run(["/media": OriginResource(Self.song)]) { origin in
            for isOffline in [false, true] {
                if isOffline { await origin.stop() }
                let cache = MediaCache(
                    directory: URL(fileURLWithPath: scratch.file("link/cache")), upstream: HTTPUpstream.standard())
                let bytes = try await cache.media(for: origin.url("/media")).bytes()
                expectBytes(bytes, Self.song.bytes(0..<Self.song.length))
                await cache.close()
            }
        }
    }
}
