import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Responses whose header sections contain faults that players accept.
@Suite(.timeLimit(.minutes(5))) struct HeadTests {
    @Test(
        "A Content-Encoding that does not change the bytes, such as aws-chunked, is ignored",
        arguments: ["aws-chunked", "utf-8", "none", "identity", "", "binary", "8bit"])
    func contentCoding(_ coding: String) async throws {
        try await Situation(.always(.field("Content-Encoding", coding))).check()
    }

    @Test("A SHOUTcast response that starts with ICY 200 OK is received")
    func statusLine() async throws {
        let rule = OriginRule.head { "ICY" + $0.drop { $0 != " " } }
        try await Situation(
            .always(.ignoresRanges()), .always(.noLength(.close)), rule, etag: nil, seeks: [], isStored: false
        ).check()
    }

    /// Faults in headers that curl accepts.
    private static let faults: [(name: String, rule: OriginRule)] = [
        ("white space before a colon", .head { $0.replacing("ETag:", with: "ETag :") }),
        ("lines that end with LF", .head { $0.replacing("\r\n", with: "\n") }),
        ("a folded line", .line("X-Long: a\r\n  b")),
        ("an empty name", .line(": x")),
        ("Transfer-Encoding: identity", .line("Transfer-Encoding: identity")),
        ("no reason phrase", .head { $0.replacing(" OK\r\n", with: "\r\n") }),
        ("a lowercase version", .head { $0.replacing("HTTP/1.1", with: "http/1.1") }),
        ("an empty line before the head", .head { "\r\n" + $0 }),
        ("UTF-8 in a value", .line("icy-name: \u{266B} Radio")),
        ("300 fields", .line((0..<300).map { "X-\($0): \($0)" }.joined(separator: "\r\n"))),
        ("an early hint", .head { "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + $0 }),
    ]

    @Test("A response whose headers contain a fault that curl accepts is received", arguments: faults.indices)
    func fault(_ index: Int) async throws {
        // A response with more fields than the parser accepts is not stored.
        try await Situation(Self.faults[index].rule, isStored: Self.faults[index].name != "300 fields").check()
    }

    @Test("A response with a Latin-1 file name in its headers is received and stored")
    func latin1() async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                response.setField("Content-Disposition", "attachment; filename=\"\u{E9}t\u{E9}.mp3\"")
                response.rewriteHead = { $0.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }
            })
        try await Situation(rule).check()
    }

    @Test("A response with both Content-Length and chunked coding is received", arguments: [150_000, 99])
    func twoFramings(_ length: Int) async throws {
        try await Situation(
            .always(.ignoresRanges()), .always(.noLength(.chunked)), .line("Content-Length: \(length)")
        ).check()
    }

    @Test("E505: a response with white space after its chunk sizes is received", arguments: [" ", "  \t", " ;a=b"])
    func chunkSizes(_ end: String) async throws {
        let media = OriginContent.pattern(PatternBytes(seed: 7, length: 150_000))
        var raw = Array("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        for start in stride(from: Int64(0), to: 150_000, by: 1000) {
            raw += Array("3e8\(end)\r\n".utf8) + media.bytes(start..<start + 1000) + Array("\r\n".utf8)
        }
        raw += Array("0\(end)\r\n\r\n".utf8)
        let rule = OriginRule(0..<Int.max, prepare: { [raw] in $1.raw = .init(raw, closes: true) })
        try await Situation(OriginResource(media, rules: [rule]), seeks: [], isStored: false).check()
    }

    @Test("E506: a response is received if a unit follows the number in Content-Length", arguments: [" bytes", "byte"])
    func unit(_ unit: String) async throws {
        let rule = OriginRule.head { head in
            head.replacing(/Content-Length: [0-9]+/) { $0.output + unit }
        }
        try await Situation(rule).check()
    }

    @Test(
        "E507: bytes after the end of a response are ignored, and the next response is received over a new connection",
        arguments: ["\r\n", "garbage", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"], [true, false])
    func surplus(_ surplus: String, isReverse: Bool) async throws {
        let resources = ["first", "second"].map { text in
            let head = "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: \(text.utf8.count)\r\n\r\n"
            let raw = Array((head + text + surplus).utf8)
            let rule = OriginRule(0..<Int.max, prepare: { $1.raw = .init(raw, closes: false) })
            return ("/" + text, OriginResource(.data(Data()), rules: [rule]))
        }
        try await OriginServer.run(Dictionary(uniqueKeysWithValues: resources)) { origin in
            try await CompatibilityStage.server(
                freshness: .revalidate, origin: isReverse ? origin.url("/") : nil
            ) { server, _ in
                for text in ["first", "second", "first", "second"] {
                    let url = try #require(server.url(for: origin.url("/" + text)))
                    #expect(try await PlainClient().get(url).text == text)
                }
            }
        }
    }

    @Test(
        "A response without a length is received, whether it is chunked or ends with the connection",
        arguments: [true, false])
    func noLength(_ isChunked: Bool) async throws {
        try await Situation(
            .always(.ignoresRanges()), .always(.noLength(isChunked ? .chunked : .close)), isStored: false
        ).check()
    }

    @Test(
        "HEAD after GET returns the length of the media, even if the origin rejects HEAD or sends a different length",
        arguments: [403, 405, 501, 200])
    func headRequests(_ status: Int) async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.method == "HEAD", status != 200 { resource.refusal = OriginRefusal(status) }
            },
            revise: { [status] response in
                if status == 200, response.body.isEmpty { response.statedLength = 17 }
            })
        let resource = OriginResource(.pattern(PatternBytes(length: 150_000)), rules: [rule])
        try await OriginServer.run(["/media": resource]) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                _ = try await PlainClient().get(url, method: "HEAD")
                expectBytes(try await PlainClient().get(url).body, resource.content.bytes(0..<150_000))
                let head = try await PlainClient().get(url, method: "HEAD")
                #expect(head.status == 200)
                #expect(head.field("content-length") == "150000")
            }
        }
    }

    @Test(
        "Titles that a radio station inserts into its audio are sent only to clients that request titles",
        arguments: [true, false])
    func titles(isReverse: Bool) async throws {
        let plain = OriginContent.pattern(PatternBytes(seed: 1, length: 60_000))
        let titled = OriginContent.pattern(PatternBytes(seed: 2, length: 60_000))
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                guard request.headerFields[HTTPField.Name("Icy-MetaData")!] == "1" else { return }  // Never nil.
                resource.content = titled
                resource.headerFields[HTTPField.Name("icy-metaint")!] = "8192"  // The name is valid.
            })
        let station = OriginResource(plain, etag: nil, rules: [.always(.ignoresRanges(acceptRanges: nil)), rule])
        for freshness in [FreshnessPolicy.http, .immutable] {
            try await OriginServer.run(["/radio": station]) { origin in
                try await CompatibilityStage.server(
                    freshness: freshness, origin: isReverse ? origin.url("/") : nil
                ) { server, _ in
                    let url = try #require(server.url(for: origin.url("/radio")))
                    for _ in 0..<2 {
                        let first = try await PlainClient(fields: ["Icy-MetaData": "1"]).get(url)
                        let second = try await PlainClient().get(url)
                        expectBytes(second.body, plain.bytes(0..<60_000))
                        // A forward proxy requests only audio without titles, so that all clients can share one stored
                        // response.
                        let isTitled = first.field("icy-metaint") != nil
                        expectBytes(first.body, (isTitled ? titled : plain).bytes(0..<60_000))
                    }
                }
            }
        }
    }
}
