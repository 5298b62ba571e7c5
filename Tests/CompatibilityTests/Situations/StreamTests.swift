import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolStreams
import SpoolTesting
import Testing

/// HLS and DASH manifests with faults or unusual forms.
@Suite(.timeLimit(.minutes(5))) struct StreamTests {
    /// Returns the digest of the packets that ffmpeg reads from a URL.
    ///
    /// - Throws: ``Tool/Failed`` if ffmpeg reports an error.
    private func digest(_ url: URL) async throws -> String {
        let ffmpeg = try #require(Tool("ffmpeg"))
        let result = try await ffmpeg.run([
            "-nostdin", "-v", "error", "-xerror", "-allowed_extensions", "ALL", "-i", url.absoluteString, "-map", "0",
            "-c", "copy", "-f", "md5", "-",
        ])
        guard result.status == 0, let line = result.text.split(separator: "\n").last(where: { $0.hasPrefix("MD5=") })
        else { throw Tool.Failed(description: "\(result.status): \(result.text)") }
        return String(line)
    }

    /// Compares the packets that ffmpeg reads from the origin with those that it reads through the server.
    /// Then compares them again, after a download and without the origin.
    private func compare(_ resources: [String: OriginResource], _ path: String = "/media.m3u8") async throws {
        try await OriginServer.run(resources) { origin in
            let direct = try await digest(origin.url(path))
            try await CompatibilityStage.server(freshness: .immutable) { server, cache in
                let url = try #require(server.url(for: origin.url(path)))
                #expect(try await digest(url) == direct)
                try await HLSDownloader(MediaSource(url: origin.url(path)), in: cache).run()
                await origin.stop()
                #expect(try await digest(url) == direct)
            }
        }
    }

    @Test(
        "A stream plays if its segments require a cookie that the CDN sets with the playlist",
        .enabled(if: Tool("ffmpeg") != nil, "ffmpeg is not installed"))
    func cookie() async throws {
        // The sample removes its folder of files when it is deallocated, so the test uses the sample once more at the
        // end.
        let sample = try await HLSSample(.ts)
        var resources = try sample.resources().mapValues { resource in
            var resource = resource
            resource.rules = [.always(.requiresField("Cookie", "policy=1", else: 403))]
            return resource
        }
        resources["/media.m3u8"]?.rules = []
        resources["/media.m3u8"]?.headerFields[.setCookie] = "policy=1; Path=/"
        try await compare(resources)
        _ = sample.form
    }

    @Test(
        "A stream plays if its key is behind a redirect, or if its segments are byte ranges without offsets",
        .enabled(if: Tool("ffmpeg") != nil, "ffmpeg is not installed"), arguments: HLSSample.Form.allCases)
    func forms(_ form: HLSSample.Form) async throws {
        let sample = try await HLSSample(form)
        var resources = try sample.resources()
        if form == .encrypted {
            resources["/secret"] = resources["/key"]
            resources["/key"] = .redirect(to: "/secret")
        }
        try await compare(resources)
        _ = sample.form
    }

    @Test(
        "Files whose names contain unencoded characters in the playlist are requested at the correct paths",
        arguments: ["\n", "\r\n"])
    func names(_ lineEnd: String) async throws {
        let names = [
            "my show 1.ts", "gr\u{FC}\u{DF}.ts", "ep%20%239.ts", "a+b.ts", "x%2By%2Fz.ts", "[1].ts", "a|b.ts",
            "../up/../m/d.ts?u=http://h/x?a=b&c=d", "./q.ts?token=a%2Fb==;x", "%E2%82%AC~!$&'()*,;=@.ts",
        ]
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:3", ""] + names.flatMap { ["#EXTINF:2.0,\($0)", $0 + " \t"] }
        let text = (lines + ["#EXT-X-ENDLIST"]).joined(separator: lineEnd)
        let playlist = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        let paths = [
            "/m/my show 1.ts", "/m/gr\u{FC}\u{DF}.ts", "/m/ep #9.ts", "/m/a+b.ts", "/m/x+y/z.ts", "/m/[1].ts",
            "/m/a|b.ts", "/m/d.ts", "/m/q.ts", "/m/\u{20AC}~!$&'()*,;=@.ts",
        ]
        try await OriginServer.run(["/m/a.m3u8": playlist]) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/m/a.m3u8")))
                let references = try await PlainClient().get(url).text.split(whereSeparator: \.isNewline)
                    .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.hasPrefix("#") }
                #expect(references.count == names.count)
                for reference in references {
                    let address = try #require(URL(string: reference, relativeTo: url))
                    _ = try await PlainClient().get(address.absoluteURL)
                }
            }
            // A missing file may be requested once more without a range.
            let requested = origin.log.exchanges.filter { $0.headerFields[.range] != nil }
                .map { $0.path.removingPercentEncoding }
            #expect(requested == paths)
        }
    }

    @Test(
        "E438: a playlist with an image's content type is treated as a playlist",
        arguments: ["image/png", "image/jpeg"], [false, true])
    func images(_ type: String, isChunked: Bool) async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/s.ts\n#EXT-X-ENDLIST\n"
        let rules: [OriginRule] = isChunked ? [.always(.noLength(.chunked))] : []
        let playlist = OriginResource(.data(Data(text.utf8)), contentType: type, rules: rules)
        try await OriginServer.run(["/picture": playlist, "/s.ts": .pattern(50_000)]) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, cache in
                let url = try #require(server.url(for: origin.url("/picture")))
                let text = try await PlainClient().get(url).text
                #expect(text.contains("/http/127.0.0.1:\(origin.port)/s.ts"), "\(text)")
                let summary = try await HLSDownloader(MediaSource(url: origin.url("/picture")), in: cache).run()
                #expect(summary.progress.fractionCompleted == 1)
            }
        }
    }

    @Test(
        "E493: a plain list, even a long one, is passed on unchanged, unless it contains an #EXT-X- tag",
        arguments: [1, 100, 8000], ["audio/x-mpegurl", "text/plain"])
    func plainList(count: Int, type: String) async throws {
        let entries = (0..<count).map { "#EXTINF:-1,Station \($0)\r\nstation/\($0).mp3\r\n" }.joined()
        let list = "#EXTM3U\r\n" + entries + "#EXTINF:-1,Other\r\nhttp://stations.example/;\r\n"
        let resources = ["/list": list, "/tagged": list + "#EXT-X-ENDLIST\r\n"].mapValues {
            OriginResource(.data(Data($0.utf8)), contentType: type)
        }
        for isReverse in [false, true] {
            try await OriginServer.run(resources) { origin in
                try await CompatibilityStage.server(origin: isReverse ? origin.url("/") : nil) { server, _ in
                    let url = try #require(server.url(for: origin.url("/list")))
                    for _ in 0..<2 { #expect(try await PlainClient().get(url).text == list) }
                    guard !isReverse else { return }
                    let tagged = try #require(server.url(for: origin.url("/tagged")))
                    let text = try await PlainClient().get(tagged).text
                    // A player must request these files through the server.
                    #expect(text.contains("/http/stations.example/;"))
                }
            }
        }
    }

    /// The bodies that an origin sends instead of a playlist.
    private static let wrongBodies = [
        Data(repeating: 0xFF, count: 77), Data("<html>Error</html>".utf8), Data("#EXT".utf8),
    ]

    @Test(
        "E511: a playlist is received from an origin that sends wrong bytes for requests with Range",
        arguments: wrongBodies, [200, 206])
    func ranges(_ body: Data, status: Int) async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\ns.ts\n#EXT-X-ENDLIST\n"
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                guard request.headerFields[.range] != nil else { return }
                (resource.content, resource.etag) = (.data(body), nil)
                if status == 200 { request.headerFields[.range] = nil }
            })
        let playlist = OriginResource(
            .data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl", rules: [rule])
        let station = OriginResource(.data(Data("http://a/b\n".utf8)), contentType: "audio/x-mpegurl", rules: [rule])
        let resources = ["/a.m3u8": playlist, "/a.m3u": station, "/s.ts": .pattern(50_000)]
        for isReverse in [false, true] {
            try await OriginServer.run(resources) { origin in
                try await CompatibilityStage.server(origin: isReverse ? origin.url("/") : nil) { server, cache in
                    for (path, expected) in [("/a.m3u8", text), ("/a.m3u", "http://a/b\n")] {
                        let url = try #require(server.url(for: origin.url(path)))
                        #expect(try await PlainClient().get(url).text == expected)
                        #expect(try await PlainClient().get(url, range: "bytes=0-").text == expected)
                    }
                    let source = MediaSource(url: origin.url("/a.m3u8"))
                    #expect(try await HLSDownloader(source, in: cache).run().progress.fractionCompleted == 1)
                }
            }
        }
    }

    /// Playlists that players accept. `ORIGIN` stands for the origin's URL.
    private static let masterPlaylists = [
        "#EXT-X-STREAM-INF:\nORIGIN/a.m3u8", "#EXT-X-STREAM-INF:BANDWIDTH=\"1\"\nORIGIN/a.m3u8",
        "#EXT-X-STREAM-INF:BANDWIDTH = 1\nORIGIN/a.m3u8",
        "#EXT-X-TARGETDURATION:4\n#EXT-X-STREAM-INF:BANDWIDTH=1\nORIGIN/a.m3u8",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",URI=ORIGIN/a.m3u8\n"
            + "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nORIGIN/a.m3u8",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a \"b\" c\",URI=\"ORIGIN/a.m3u8\"\n"
            + "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nORIGIN/a.m3u8",
        "#EXT-X-STREAM-INF:PROGRAM-ID=1, BANDWIDTH=1 , RESOLUTION=640X360\n\nORIGIN/a.m3u8",
    ]

    @Test(
        "A master playlist with an error that players accept is rewritten and downloaded",
        arguments: masterPlaylists.indices, ["", "\u{FEFF}"])
    func masters(_ index: Int, mark: String) async throws {
        let media = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nORIGIN/s.ts\n#EXT-X-ENDLIST\n"
        try await OriginServer.run(["/s.ts": .pattern(50_000)]) { origin in
            let base = "http://127.0.0.1:\(origin.port)"
            for (path, text) in [
                ("/master.m3u8", "\(mark)#EXTM3U\n" + Self.masterPlaylists[index] + "\n"), ("/a.m3u8", media),
            ] {
                let data = Data(text.replacing("ORIGIN", with: base).utf8)
                origin.set(path, OriginResource(.data(data), contentType: "application/vnd.apple.mpegurl"))
            }
            try await CompatibilityStage.server(freshness: .immutable) { server, cache in
                for path in ["/master.m3u8", "/a.m3u8"] {
                    let url = try #require(server.url(for: origin.url(path)))
                    let text = try await PlainClient().get(url).text
                    #expect(text.contains("/http/127.0.0.1:\(origin.port)/"), "\(text)")
                    #expect(!text.replacing("/http/", with: "").contains(base), "\(text)")
                }
                let summary = try await HLSDownloader(
                    MediaSource(url: origin.url("/master.m3u8")), in: cache
                ).run()
                #expect(summary.progress.fractionCompleted == 1)
            }
        }
    }

    /// The forms of base URLs, each with the path of the first segment.
    private static let bases = [
        ("<BaseURL>v/</BaseURL>", "/d/v/1.m4s"), ("<BaseURL>../e/</BaseURL>", "/e/1.m4s"),
        ("<BaseURL><![CDATA[v/]]></BaseURL>", "/d/v/1.m4s"), ("<BaseURL> v/ </BaseURL>", "/d/v/1.m4s"),
        ("<BaseURL>ORIGIN/x/</BaseURL>", "/x/1.m4s"), ("<BaseURL>/x/</BaseURL>", "/x/1.m4s"), ("", "/d/1.m4s"),
        ("<BaseURL>a%20b/</BaseURL>", "/d/a%20b/1.m4s"),
    ]

    @Test("An MPD with a byte order mark and unusual base URLs is rewritten and downloaded", arguments: bases.indices)
    func dash(_ index: Int) async throws {
        let (base, path) = Self.bases[index]
        try await OriginServer.run([path: .pattern(50_000)]) { origin in
            let text = """
                \u{FEFF}<?xml version="1.0"?>
                <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT2S">
                <!-- a comment --><Period>\(base)<AdaptationSet contentType="video">
                <SegmentTemplate duration="2" media="$Number$.m4s"/>
                <Representation id="v" bandwidth="100000"/></AdaptationSet></Period></MPD>
                """.replacing("ORIGIN", with: "http://127.0.0.1:\(origin.port)")
            origin.set("/d/a.mpd", OriginResource(.data(Data(text.utf8)), contentType: "application/dash+xml"))
            try await CompatibilityStage.server(freshness: .immutable) { server, cache in
                let url = try #require(server.url(for: origin.url("/d/a.mpd")))
                let rewritten = try await PlainClient().get(url)
                #expect(rewritten.status == 200)
                let progress = try await DASHDownloader(MediaSource(url: origin.url("/d/a.mpd")), in: cache).run()
                #expect(progress.fractionCompleted == 1)
                #expect(origin.log.exchanges(path).count == 1)
            }
        }
    }
}
