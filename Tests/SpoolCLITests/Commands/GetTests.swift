import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@Suite("spool get", .timeLimit(.minutes(10)))
struct GetTests {
    private static let media = PatternBytes(length: 3_000_001)

    private func origin(_ behaviors: OriginBehavior...) -> [String: OriginResource] {
        ["/song.mp3": OriginResource(.pattern(Self.media), rules: behaviors.map { .always($0) })]
    }

    @Test("A resource is fetched once, and a second run reads it from the cache without the origin")
    func whole() async throws {
        try await withOrigin(origin()) { origin, spool in
            let url = origin.url("/song.mp3?token=secret").absoluteString
            let first = try await spool.run("get", url, "--output", "song.mp3", "--json")
            #expect(first.status == 0 && first.errors.isEmpty)
            let response: GetOutput = try first.json()
            #expect(response.url == origin.url("/song.mp3").absoluteString)
            #expect(response.length == 3_000_001 && response.range == [0, 3_000_001] && response.bytes == 3_000_001)
            #expect(response.bytesFromOrigin == 3_000_001 && response.originRequests > 0 && response.complete)
            #expect(try Data(contentsOf: spool.file("song.mp3")) == Self.media.data)

            await origin.stop()
            let second = try await spool.run("get", url, "--output", "again.mp3", "--json")
            let again: GetOutput = try second.json()
            #expect(again.bytesFromOrigin == 0 && again.originRequests == 0 && again.bytesFromCache == 3_000_001)
            #expect(try Data(contentsOf: spool.file("again.mp3")) == Self.media.data)
            #expect(!FileManager.default.fileExists(atPath: spool.file("again.mp3.partial").path))
        }
    }

    @Test(
        "A14: ranges are written to standard output, clipped at the end as in HTTP",
        arguments: [
            ("0-0", 0..<1), ("100-199", 100..<200), ("2999990-", 2_999_990..<3_000_001),
            ("-500", 2_999_501..<3_000_001), ("2999999-9999999", 2_999_999..<3_000_001),
            ("-9999999999", 0..<3_000_001), ("65535-65536", 65535..<65537),
        ] as [(String, Range<Int64>)])
    func range(text: String, range: Range<Int64>) async throws {
        try await withOrigin(origin()) { origin, spool in
            let url = origin.url("/song.mp3").absoluteString
            let result = try await spool.run("get", url, "--range", text, "--output", "-")
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output == Data(Self.media.bytes(range)))
            let response: GetOutput = try await spool.run("get", url, "--range", text, "--json").json()
            #expect(response.range == [range.lowerBound, range.upperBound] && response.bytes == Int64(range.count))
            #expect(response.bytesFromOrigin == 0)
        }
    }

    @Test(
        "A13, A14: an unsatisfiable range causes a one-line error",
        arguments: ["3000001-", "9000000-9000001", "-0", "9223372036854775807-"])
    func unsatisfiable(text: String) async throws {
        try await withOrigin(origin()) { origin, spool in
            let result = try await spool.run(
                "get", origin.url("/song.mp3").absoluteString, "--range", text, "--output", "part")
            #expect(result.status == 1 && result.output.isEmpty)
            #expect(result.complaints.count == 1 && result.errors.hasPrefix("error: "))
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path) == ["cache"])
        }
    }

    @Test("An empty resource is written as an empty file")
    func empty() async throws {
        try await withOrigin(["/empty": .pattern(0)]) { origin, spool in
            let result = try await spool.run("get", origin.url("/empty").absoluteString, "--output", "empty", "--json")
            #expect(result.status == 0, "\(result.errors)")
            #expect(try result.json(GetOutput.self).range == [0, 0])
            #expect(try Data(contentsOf: spool.file("empty")).isEmpty)
        }
    }

    @Test("If consecutive processes read ranges in any order, no byte is sent twice and all bytes are correct")
    func eachByteOnce() async throws {
        try await withOrigin(origin()) { origin, spool in
            let url = origin.url("/song.mp3").absoluteString
            let ranges: [Range<Int64>] = [
                1_000_000..<1_200_000, 5..<6, 1_150_000..<1_700_000, 0..<70_000, 2_990_000..<3_000_001,
                900_000..<1_000_001, 0..<3_000_001,
            ]
            for range in ranges {
                let text = "\(range.lowerBound)-\(range.upperBound - 1)"
                let result = try await spool.run("get", url, "--range", text, "--output", "-")
                #expect(result.output == Data(Self.media.bytes(range)))
            }
            try await origin.log.waitUntilIdle()
            #expect(origin.log.bytesSent() == origin.log.distinctBytesSent("/song.mp3"))
            #expect(origin.log.distinctBytesSent("/song.mp3") == Self.media.length)
        }
    }

    @Test("The given header fields are sent to the origin")
    func headers() async throws {
        try await withOrigin(origin(.requiresField("Authorization", "Bearer a:b", else: 401))) { origin, spool in
            let url = origin.url("/song.mp3").absoluteString
            #expect(try await spool.run("get", url).status == 1)
            let result = try await spool.run(
                "get", url, "--header", "Authorization: Bearer a:b", "--header", "X-Other: 1", "--output", "-")
            #expect(result.output == Self.media.data)
            #expect(origin.log.exchanges.last?.headerFields[.init("X-Other")!] == "1")  // The name is valid.
        }
    }

    @Test("A22: media from an origin that does not send a length or support ranges is fetched completely")
    func sequential() async throws {
        try await withOrigin(origin(.ignoresRanges(), .noLength(.chunked))) { origin, spool in
            let result = try await spool.run("get", origin.url("/song.mp3").absoluteString, "--output", "-")
            #expect(result.output == Self.media.data)
        }
    }

    @Test(
        "Invalid arguments cause exit status 64 and a one-line error",
        arguments: [
            ["get"], ["get", "song.mp3"], ["get", "ftp://h/a"], ["get", "http://h/a", "--range", "5-2"],
            ["get", "http://h/a", "--range", "x"], ["get", "http://h/a", "--header", "none"],
            ["get", "http://h/a", "--capacity", "much"], ["get", "http://h/a", "--json", "--output", "-"],
            ["get", "http://h/a", "--unknown"], ["frobnicate"], ["rm"], ["rm", "--all", "http://h/a"],
            ["play", "http://h/a", "--speed", "0"], ["play", "http://h/a", "--seek", "5"], ["gc", "--to", "-1"],
        ])
    func usage(arguments: [String]) async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run(arguments)
        #expect(result.status == 64)
        #expect(result.output.isEmpty)
        #expect(result.complaints.count == 1 && result.errors.hasPrefix("error: "), "\(result.errors)")
    }

    @Test("An error status from the origin causes a one-line error that names the URL")
    func refused() async throws {
        try await withOrigin(["/gone": .pattern(10, .status(404))]) { origin, spool in
            let gone = try await spool.run("get", origin.url("/gone?key=secret").absoluteString)
            #expect(gone.status == 1)
            #expect(gone.complaints.count == 1 && gone.errors.contains("/gone") && !gone.errors.contains("secret"))
        }
    }

    @Test("E439: a body whose Content-Encoding was not requested is written unchanged, and is not cached")
    func falseCoding() async throws {
        let media = OriginResource.pattern(50_000, .field("Content-Encoding", "gzip"))
        try await withOrigin(["/song.mp3": media]) { origin, spool in
            let url = origin.url("/song.mp3").absoluteString
            let file = spool.folder.appendingPathComponent("song.mp3")
            let result = try await spool.run("get", url, "--output", file.path)
            #expect(result.status == 0 && result.errors.contains("without being cached"), "\(result.errors)")
            let bytes = try Data(contentsOf: file)
            #expect(bytes.elementsEqual(PatternBytes(seed: 1, length: 50_000).bytes(0..<50_000)))
            // Media that is not cached requires an output file; without one, `get` fails.
            #expect(try await spool.run("get", url).status == 1)
        }
    }

    @Test("An output file that can't be created causes a one-line error, and nothing is fetched")
    func unwritable() async throws {
        try await withOrigin(origin()) { origin, spool in
            let result = try await spool.run(
                "get", origin.url("/song.mp3").absoluteString, "--output", "no/such/folder/song.mp3")
            #expect(result.status == 1 && result.complaints.count == 1 && result.errors.contains("no/such/folder"))
            #expect(origin.log.exchanges.isEmpty)
        }
    }

    @Test("With --verbose, the log is written to standard error, and standard output remains valid JSON")
    func verbose() async throws {
        try await withOrigin(origin()) { origin, spool in
            let result = try await spool.run("get", origin.url("/song.mp3").absoluteString, "--verbose", "--json")
            #expect(result.complaints.count > 1)
            _ = try result.json(GetOutput.self)
        }
    }
}
