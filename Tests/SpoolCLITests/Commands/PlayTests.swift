import Foundation
import SpoolTesting
import Testing

@Suite("spool play and spool demo", .timeLimit(.minutes(10)), .serialized)
struct PlayTests {
    @Test(
        "D50: real media plays to its end with seeks, and again without its origin",
        arguments: [SampleMedia.mp3, .mp4MoovAtEnd])
    func plays(media: SampleMedia) async throws {
        let file = try await media.file()
        let path = "/\(media.rawValue)"
        let resource = OriginResource(.file(file), contentType: media.mediaType)
        try await withOrigin([path: resource]) { origin, spool in
            let url = origin.url(path + "?sig=secret").absoluteString
            let first = try await spool.run(
                "play", url, "--headless", "--speed", "10", "--seek", "2:8", "--seek", "9:1", "--json")
            #expect(first.status == 0 && first.errors.isEmpty, "\(first.errors)")
            let response: PlayOutput = try first.json()
            #expect(response.ended && abs((response.duration ?? 0) - 12) < 0.5)
            #expect(response.url == origin.url(path).absoluteString)
            let distinct = response.cachedRanges.reduce(0) { $0 + $1[1] - $1[0] }
            #expect(response.bytesFromOrigin == distinct && distinct > 0 && response.originRequests > 0)
            #if os(Linux)
            let information = try #require(response.loadingRequests.first)
            #expect(information.kind == "contentInformation" && information.offset == 0)
            #expect(response.loadingRequests.dropFirst().allSatisfy { $0.kind == "data" })
            #expect(response.loadingRequests.contains { $0.toEnd })
            #endif

            await origin.stop()
            let second: PlayOutput = try await spool.run("play", url, "--headless", "--speed", "50", "--json").json()
            #expect(second.ended && second.bytesFromOrigin == 0 && second.originRequests == 0)
            #expect(second.bytesFromCache > 0)
        }
    }

    @Test("--until stops playback at the given time, and a seek past the end ends playback")
    func until() async throws {
        let file = try await SampleMedia.mp3.file()
        try await withOrigin(["/a.mp3": OriginResource(.file(file))]) { origin, spool in
            let url = origin.url("/a.mp3").absoluteString
            let part: PlayOutput = try await spool.run(
                "play", url, "--headless", "--speed", "10", "--until", "4", "--json"
            ).json()
            #expect(!part.ended)
            let end: PlayOutput = try await spool.run("play", url, "--headless", "--seek", "0:100", "--json").json()
            #expect(end.ended)
        }
    }

    @Test("A truncated file is not reported as played to its end")
    func cutShort() async throws {
        let whole = try Data(contentsOf: try await SampleMedia.mp3.file())
        let spool = try SpoolProcess()
        defer { spool.remove() }
        try whole.prefix(whole.count / 2).write(to: spool.file("half.mp3"))
        let result = try await spool.run("play", "half.mp3", "--headless", "--speed", "50", "--json")
        let report: PlayOutput = try result.json()
        #expect(result.status == 0 && !report.ended && (report.duration ?? 0) > 11, "\(result.text)")
    }

    @Test("D48: a local file plays without creating a cache")
    func plain() async throws {
        let file = try await SampleMedia.wav.file()
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run("play", file.path, "--headless", "--speed", "100", "--json")
        let response: PlayOutput = try result.json()
        #expect(
            response.ended && response.bytesFromCache == 0 && response.cachedRanges.isEmpty && response.url == file.path
        )
        #expect(!FileManager.default.fileExists(atPath: spool.file("cache").path))
    }

    @Test("A file that is missing or not media causes a one-line error")
    func unplayable() async throws {
        try await withOrigin(["/noise": .pattern(50_000), "/gone": .pattern(1, .status(404))]) { origin, spool in
            for target in [
                origin.url("/noise").absoluteString, origin.url("/gone").absoluteString, "/no/such/file.mp3",
            ] {
                let result = try await spool.run("play", target, "--headless", "--json")
                #expect(result.status == 1 && result.output.isEmpty)
                #expect(result.complaints.count == 1 && result.errors.hasPrefix("error: "), "\(result.errors)")
            }
        }
    }

    @Test("If a playlist can't be loaded, the error states the cause and suggests spool serve")
    func playlist() async throws {
        try await withOrigin(["/gone.m3u8": .pattern(1, .status(404))]) { origin, spool in
            for (url, cause) in [
                ("http://127.0.0.1:1/a.m3u8", "cannot be reached: connection refused"),
                (origin.url("/gone.m3u8").absoluteString, "the origin responded with status 404"),
            ] {
                let result = try await spool.run("play", url, "--headless")
                #expect(result.status == 1 && result.complaints.count == 1, "\(result.errors)")
                let message = "error: \(url) can't be played: \(cause) (use “spool serve” "
                #expect(result.errors.hasPrefix(message), "\(result.errors)")
            }
        }
    }

    @Test("The demonstration succeeds, and prints at most twenty lines and one line of JSON")
    func demo() async throws {
        let file = try await SampleMedia.mp4MoovAtEnd.file(seconds: 30)
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run("demo", file.path)
        #expect(result.status == 0, "\(result.errors)\n\(result.text)")
        let lines = result.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 21)
        let response = try JSONDecoder().decode(DemoOutput.self, from: Data(try #require(lines.last).utf8))
        #expect(response.first.ended && response.second.ended)
        #expect(response.first.bytesFromOrigin == response.first.cachedRanges.reduce(0) { $0 + $1[1] - $1[0] })
        #expect(response.second.bytesFromOrigin == 0 && response.second.originRequests == 0)
        let third = try #require(response.third)
        #expect(third.player == "ffmpeg" && third.ended && third.bytesFromCache > 0)
        #expect(third.bytesFromOrigin == 0 && third.originRequests == 0)
        #expect(result.text.contains("http://127.0.0.1:"))
        #expect(!FileManager.default.fileExists(atPath: spool.file("cache").path))
    }
}
