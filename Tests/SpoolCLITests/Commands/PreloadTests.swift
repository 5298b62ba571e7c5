import Foundation
import SpoolTesting
import Testing

@Suite("spool preload", .timeLimit(.minutes(15)), .serialized)
struct PreloadTests {
    private static let seconds = 60
    /// The containers that can be played from the preloaded start. For the excluded container, ffmpeg's demuxer, which
    /// mpv uses, reads all fragments first.
    private static let playable = SampleContainer.allCases.filter { $0 != .bareFragmentedMP4 }

    /// Returns the maximum number of bytes that the origin may send.
    ///
    /// Whole blocks are fetched, so there may be one more block at each of the three ranges.
    private func bound(_ length: Int64, wanted: Int64) -> Int64 { max(length / 20, wanted + 3 * 65_536) }

    @Test(
        "preload fetches only a small part of a one-minute file, and this part plays without the origin",
        arguments: playable)
    func starts(_ sample: SampleContainer) async throws {
        let file = try await sample.file(seconds: Self.seconds)
        let path = "/\(sample.rawValue)"
        let resource = OriginResource(.file(file), contentType: sample.mediaType)
        try await withOrigin([path: resource]) { origin, spool in
            let url = origin.url(path + "?sig=secret").absoluteString
            let result = try await spool.run("preload", "--json", url)
            let reports: [PreloadOutput] = try result.json()
            let report = try #require(reports.first)
            #expect(result.status == 0 && result.errors.isEmpty && reports.count == 1)
            #expect(report.url == origin.url(path).absoluteString && report.complete)
            #expect(report.storedBytes == report.wanted)
            let length = OriginContent.file(file).length
            // In an Ogg file, the duration is in the last 64 KiB.
            let share = [.ogg, .opus].contains(sample) ? length / 20 + 65_536 : length / 20
            #expect(report.storedBytes <= share, "\(report.storedBytes) of \(length)")
            let sent = origin.log.bytesSent()
            #expect(sent <= bound(length, wanted: report.storedBytes) && sent == origin.log.distinctBytesSent(path))
            #expect(origin.log.exchanges.count <= 6)

            await origin.stop()
            let play = try await spool.run("play", url, "--headless", "--until", "0.4", "--json")
            #expect(play.status == 0, "\(play.errors)")
            #expect(try play.json(PlayOutput.self).bytesFromOrigin == 0)
        }
    }

    @Test("URLs and the entries of a list are reported in order, and a missing file does not prevent other preloads")
    func several() async throws {
        let media = OriginResource.pattern(400_000)
        try await withOrigin(["/a": media, "/b": media, "/c": media, "/gone": .pattern(1, .status(404))]) {
            origin, spool in
            let list = spool.file("list")
            let lines = ["# Later", "", "  \(origin.url("/c").absoluteString)\r", origin.url("/b").absoluteString]
            try ("\u{FEFF}" + lines.joined(separator: "\n")).write(to: list, atomically: true, encoding: .utf8)
            let arguments = [
                "preload", origin.url("/a").absoluteString, origin.url("/gone").absoluteString, "--file", list.path,
                "--bytes", "100kB", "--jobs", "2",
            ]
            let result = try await spool.run(arguments + ["--json"])
            let reports: [PreloadOutput] = try result.json()
            #expect(reports.map(\.url) == ["/a", "/gone", "/c", "/b"].map { origin.url($0).absoluteString })
            #expect(reports.map(\.complete) == [true, false, true, true])
            #expect(reports.map(\.storedBytes) == [100_000, 0, 100_000, 100_000])
            #expect(reports.map(\.wanted) == [100_000, nil, 100_000, 100_000])
            #expect(result.status == 1 && result.complaints.count == 1 && result.errors.contains("/gone"))
            let text = try await spool.run(arguments)
            #expect(text.text.split(separator: "\n").count == 4 && text.text.hasPrefix("100.0 kB of 100.0 kB  http"))
            #expect(origin.log.distinctBytesSent("/a") == origin.log.bytesSent("/a"))
        }
    }

    @Test("For a stream, the playlist and the first segments are preloaded; a live stream causes an error")
    func stream() async throws {
        let ended = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/one.ts\n#EXTINF:2,\n/two.ts\n"
        let resources = [
            "/l.m3u8": OriginResource(.data(Data((ended + "#EXT-X-ENDLIST\n").utf8))),
            "/live.m3u8": OriginResource(.data(Data(ended.utf8))), "/one.ts": .pattern(300_000),
            "/two.ts": .pattern(400_000),
        ]
        try await withOrigin(resources) { origin, spool in
            let url = origin.url("/l.m3u8").absoluteString
            let length = Int64(ended.utf8.count) + 15
            for (option, bytes) in [
                (["--bytes", "1MB"], length), ([], length + 300_000), (["--seconds", "3"], length + 700_000),
                (["--all"], length + 700_000),
            ] {
                let result = try await spool.run(["preload", "--json", url] + option)
                let report = try #require(try result.json([PreloadOutput].self).first)
                #expect(result.status == 0 && report.complete, "\(result.errors)")
                #expect(report.storedBytes == bytes && report.wanted == bytes)
                #expect(origin.log.bytesSent() == bytes)
            }
            let live = try await spool.run("preload", origin.url("/live.m3u8").absoluteString, "--json")
            #expect(live.status == 1 && live.complaints.count == 1 && live.errors.contains("live"))
            #expect(try live.json([PreloadOutput].self).map(\.complete) == [false])
        }
    }

    @Test(
        "If the URL of a playlist returns another document, preload and offline add fail, and do not store or pin it",
        arguments: [("/a.m3u8", "text/html"), ("/a.m3u8", "video/mp2t"), ("/a.mpd", "text/html"), ("/a.mpd", nil)])
    func notPlaylist(path: String, type: String?) async throws {
        let page = OriginResource(.data(Data("<html><body>Sign in</body></html>".utf8)), contentType: type)
        try await withOrigin([path: page]) { origin, spool in
            let url = origin.url(path).absoluteString
            let cause = path.hasSuffix("mpd") ? "a DASH manifest: " : "an HLS playlist: it does not start with #EXTM3U"
            for arguments in [
                ["preload"], ["preload", "--all"], ["preload", "--bytes", "9"], ["offline", "add", "A"],
            ] {
                let result = try await spool.run(arguments + [url, "--json"])
                #expect(
                    result.status == 1 && result.errors.contains("error: \(url) is not \(cause)"), "\(result.errors)")
                if arguments[0] == "preload" {
                    let report = try #require(try result.json([PreloadOutput].self).first)
                    #expect(!report.complete && report.storedBytes == 0)
                } else {
                    #expect(result.text == "[]\n", "\(result.text)")
                }
                #expect(try await spool.run("ls", "--json").json([MediaOutput].self).isEmpty)
            }
            #expect(try await spool.run("offline", "list", "--json").text == "[]\n")
        }
    }

    @Test("preload and offline add accept plain lists of files at the URL of a playlist")
    func plainLists() async throws {
        let lists = [
            "#EXTM3U\n#EXTINF:2,Song\na song.mp3\n", "\u{FEFF}#EXTM3U\r\nhttp://a.example/b\r\n", "# Songs\n/a/b.mp3\n",
            "a song.mp3\n", "http://a.example/radio\n",
        ]
        let resources = lists.enumerated().map { ("/\($0).m3u8", OriginResource(.data(Data($1.utf8)))) }
        try await withOrigin(Dictionary(uniqueKeysWithValues: resources)) { origin, spool in
            let urls = resources.map { origin.url($0.0).absoluteString }
            for arguments in [["preload"], ["offline", "add", "A"]] {
                let result = try await spool.run(arguments + urls)
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            }
            #expect(try await spool.run("offline", "list", "A").status == 0)
        }
    }

    @Test("preload stores all bytes or the first seconds, and does not request stored bytes again")
    func amounts() async throws {
        let file = try await SampleContainer.wav.file(seconds: 20)
        try await withOrigin(["/a.wav": OriginResource(.file(file))]) { origin, spool in
            let url = origin.url("/a.wav").absoluteString
            let five: [PreloadOutput] = try await spool.run("preload", url, "--seconds", "5", "--json").json()
            #expect(five[0].storedBytes > 470_000 && five[0].storedBytes < 500_000)
            let all: [PreloadOutput] = try await spool.run("preload", url, "--all", "--json").json()
            #expect(all[0].complete && all[0].wanted == OriginContent.file(file).length)
            await origin.stop()
            let again = try await spool.run("preload", url, "--all", "--smart")
            #expect(again.status == 64)
            let smart = try await spool.run("preload", url, "--smart")
            #expect(smart.status == 0, "\(smart.errors)")
        }
    }

    @Test("The error for an unreadable list contains the cause; for a malformed list, it contains only a line number")
    func lists() async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        try "http://a/b\nsecret\n".write(to: spool.file("list"), atomically: true, encoding: .utf8)
        for arguments in [
            ["--file", "none"], ["--file", "list"], [], ["http://a/b", "--jobs", "0"], ["--bytes", "x"],
        ] {
            let result = try await spool.run(["preload"] + arguments)
            #expect(result.status == 64 && result.complaints.count == 1 && !result.errors.contains("secret"))
        }
        let list = try await spool.run("preload", "--file", "list")
        #expect(list.errors.contains("line 2"))
        let none = try await spool.run("preload", "--file", "none")
        #expect(none.errors.contains("the list “none” can't be read: no such file or directory (see"))
    }

    @Test(
        "If preload is killed and restarted, it completes all files, and refetches at most one block per job and kill"
    )
    func killed() async throws {
        let count = 60
        let length: Int64 = 300_000
        let patterns = (0..<count).map { PatternBytes(seed: UInt64($0), length: length) }
        let resources = patterns.map { OriginResource(.pattern($0), rules: [.always(.rate(1_000_000))]) }
        let paths = (0..<count).map { "/\($0)" }
        try await withOrigin(Dictionary(uniqueKeysWithValues: zip(paths, resources))) { origin, spool in
            let urls = paths.map { origin.url($0).absoluteString }
            try urls.joined(separator: "\n").write(to: spool.file("list"), atomically: true, encoding: .utf8)
            var random = SplitMix(9)
            for _ in 0..<4 {
                let sent = origin.log.bytesSent()
                let process = try spool.start("preload", "--file", "list", "--all", "--jobs", "16")
                let bytes = Int64(500_000 + random.below(3_000_000))
                try await origin.log.wait { $0.reduce(0) { $0 + $1.bytesSent } - sent >= bytes }
                process.send(SIGKILL)
                _ = await process.end()
            }
            let last = try await spool.run("preload", "--file", "list", "--all", "--jobs", "16", "--json")
            let reports: [PreloadOutput] = try last.json()
            #expect(last.status == 0 && reports.allSatisfy { $0.complete && $0.storedBytes == length })
            let verified = try await spool.run("verify", "--json").json(VerifyOutput.self)
            #expect(verified.bad == 0 && verified.blocks == count * 5)
            let twice = paths.reduce(0) { $0 + origin.log.bytesSent($1) - origin.log.distinctBytesSent($1) }
            #expect(twice <= 4 * 16 * 65_536, "\(twice) bytes twice")
        }
    }
}

struct PreloadOutput: Decodable {
    var url: String
    var storedBytes: Int64
    var wanted: Int64?
    var complete: Bool

    private enum CodingKeys: String, CodingKey {
        case url, wanted, complete
        case storedBytes = "landed"
    }
}
