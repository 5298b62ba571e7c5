import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@Suite("spool get --hls", .timeLimit(.minutes(10)))
struct GetStreamTests {
    private func list(_ text: String) -> OriginResource {
        OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
    }

    private func stream(_ behaviors: OriginBehavior...) -> [String: OriginResource] {
        let segments = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXTINF:2,\n2.ts\n#EXT-X-ENDLIST\n"
        let rules = behaviors.map { OriginRule.always($0) }
        var resources = [
            "/m.m3u8": list(
                """
                #EXTM3U
                #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=1280x720
                high/l.m3u8
                #EXT-X-STREAM-INF:BANDWIDTH=500000,RESOLUTION=640x360
                low/l.m3u8

                """)
        ]
        for folder in ["high", "low"] {
            resources["/\(folder)/l.m3u8"] = list(segments)
            for name in ["1", "2"] {
                let content = OriginContent.pattern(PatternBytes(length: 200_000))
                resources["/\(folder)/\(name).ts"] = OriginResource(content, rules: rules)
            }
        }
        return resources
    }

    @Test("A stream is fetched once, and a second run reads it from the cache without the origin")
    func whole() async throws {
        try await withOrigin(stream()) { origin, spool in
            let url = origin.url("/m.m3u8?token=secret").absoluteString
            let first: StreamOutput = try await spool.run("get", "--hls", url, "--json").json()
            #expect(first.url == origin.url("/m.m3u8").absoluteString)
            #expect(first.variant == origin.url("/high/l.m3u8").absoluteString)
            #expect(first.segments == 2 && first.bytes > 400_000)
            #expect(first.bytesFromOrigin == first.bytes && first.bytesFromCache == 0)
            #expect(origin.log.bytesSent() == first.bytes)
            await origin.stop()
            let second = try await spool.run("get", "--hls", url, "--json")
            let again: StreamOutput = try second.json()
            #expect(again.segments == 2 && again.bytes == first.bytes && again.bytesFromCache == first.bytes)
            #expect(again.bytesFromOrigin == 0 && again.originRequests == 0)
            let text = try await spool.run("get", "--hls", url)
            #expect(text.status == 0 && text.text.hasPrefix("2 segments, ") && text.errors.isEmpty)
        }
    }

    @Test(
        "--variant selects the highest or lowest variant, or a variant by bit rate or resolution",
        arguments: [
            ("highest", "high"), ("lowest", "low"), ("600000", "low"), ("900000", "high"), ("1", "low"),
            ("640x480", "low"), ("720x1280", "high"),
        ])
    func variant(text: String, folder: String) async throws {
        try await withOrigin(stream()) { origin, spool in
            let result = try await spool.run(
                "get", "--hls", origin.url("/m.m3u8").absoluteString, "--variant", text, "--json")
            #expect(try result.json(StreamOutput.self).variant == origin.url("/\(folder)/l.m3u8").absoluteString)
            #expect(origin.log.exchanges.allSatisfy { $0.path.hasPrefix("/\(folder)/") || $0.path == "/m.m3u8" })
        }
    }

    @Test("A stream is fetched with the given header fields; if they are missing, the error names the rejected URL")
    func headers() async throws {
        try await withOrigin(stream(.requiresField("Authorization", "Bearer a", else: 401))) { origin, spool in
            let url = origin.url("/m.m3u8?token=secret").absoluteString
            let refused = try await spool.run("get", "--hls", url)
            #expect(refused.status == 1 && refused.output.isEmpty && refused.complaints.count == 1)
            #expect(refused.errors.contains(".ts") && !refused.errors.contains("secret"))
            let result = try await spool.run("get", "--hls", url, "--header", "Authorization: Bearer a", "--json")
            #expect(try result.json(StreamOutput.self).segments == 2)
        }
    }

    @Test("Fetching a live stream causes a one-line error")
    func live() async throws {
        let live = list("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n")
        try await withOrigin(["/live.m3u8": live]) { origin, spool in
            let result = try await spool.run("get", "--hls", origin.url("/live.m3u8").absoluteString)
            #expect(result.status == 1 && result.complaints.count == 1 && result.errors.contains("is live"))
        }
    }

    @Test(
        "Invalid arguments cause exit status 64 and a one-line error",
        arguments: [
            ["--hls", "http://h/a", "--variant", "x"], ["--hls", "http://h/a", "--variant", "0"],
            ["--hls", "http://h/a", "--variant", "1x2x3"], ["--hls", "http://h/a", "--variant", "-5"],
            ["--hls", "http://h/a", "--output", "a"], ["--hls", "http://h/a", "--range", "0-5"],
            ["http://h/a", "--variant", "lowest"], ["--hls"],
        ])
    func usage(arguments: [String]) async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run(["get"] + arguments)
        #expect(result.status == 64 && result.output.isEmpty)
        #expect(result.complaints.count == 1 && result.errors.hasPrefix("error: "), "\(result.errors)")
    }
}

/// The output of `get --hls --json`.
struct StreamOutput: Decodable {
    var url: String
    var variant: String
    var segments: Int
    var bytes: Int64
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
    var seconds: Double
}
