import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Responses to range requests that differ from those for a static file.
@Suite(.timeLimit(.minutes(5))) struct RangeTests {
    @Test("Media is received if a probe gets 206 without a total, bytes=0- gets 200, and later ranges get 206")
    func probe() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, _ in
                guard case .from(0) = request.headerFields[.range].flatMap({ RequestedRange($0) }) else { return }
                request.headerFields[.range] = nil
            },
            revise: { $0.contentRange?.total = nil })
        let situation = Situation(rule)
        try await situation.check()
        try await OriginServer.run(situation.resources) { origin in
            try await CompatibilityStage.server(freshness: .immutable) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                let probe = try await PlainClient().get(url, range: "bytes=0-1")
                // The server may send the whole resource, as the origin does.
                expectBytes(probe.media(from: 0).map { Array($0.prefix(2)) }, Array(situation.bytes(from: 0).prefix(2)))
            }
        }
    }

    /// Closures that return a `Content-Range` value, from the offsets of the first and last byte and the length.
    private static let forms: [@Sendable (Int64, Int64, Int64) -> String?] = [
        { _, _, _ in nil }, { "\($0)-\($1)/\($2)" }, { first, _, total in "\(first)-\(total)/\(total)" },
        { "bytes=\($0)-\($1)/\($2)" }, { "bytes: \($0)-\($1)/\($2)" }, { "bytes  \($0) - \($1) / \($2)" },
        { first, last, _ in "bytes \(first)-\(last)" }, { "Bytes \($0)-\($1)/\($2)" }, { _, _, _ in "" },
        { "bytes \($0)-\($1)/\($2);" }, { first, _, total in "bytes \(first)-/\(total)" },
    ]

    @Test("A 206 with a missing or malformed Content-Range is received correctly", arguments: forms.indices)
    func contentRange(_ index: Int) async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                guard response.status == 206 else { return }
                let text = Self.forms[index](
                    response.body.lowerBound, response.body.upperBound - 1, response.content.length)
                response.setField("Content-Range", text)
            })
        try await Situation(rule).check()
    }

    @Test("Media is received from a server that responds with 200 to every request with If-Range")
    func ifRange() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, _ in
                if request.headerFields[.ifRange] != nil { request.headerFields[.range] = nil }
            })
        try await Situation(rule).check()
    }

    @Test("Media is received even though Last-Modified is always the current time")
    func currentDate() async throws {
        let rule = OriginRule(0..<Int.max, prepare: { $1.lastModified = Date() })
        try await Situation(rule, etag: nil, isStored: false).check()
    }

    @Test("Media is received if bytes=0- gets 200, other ranges get 206, and Content-Encoding is none")
    func photoServer() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, _ in
                guard case .from(0) = request.headerFields[.range].flatMap({ RequestedRange($0) }) else { return }
                request.headerFields[.range] = nil
            },
            revise: { response in
                response.setField("Content-Encoding", "none")
                response.setField("Cache-Control", "no-store")
            })
        try await Situation(rule, etag: nil, isStored: false).check()
    }

    @Test("A recording that grows while it plays is received to its end", arguments: [nil, "tag"])
    func growing(_ etag: String?) async throws {
        let resource = OriginResource(.pattern(PatternBytes(seed: 7, length: 50_000)), etag: nil)
        let all = PatternBytes(seed: 7, length: 250_000)
        try await OriginServer.run(["/media": resource]) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                var received: [UInt8] = []
                for number in 0..<10 {
                    let length = Int64(50_000 + min(number, 4) * 50_000)
                    origin.update("/media") {
                        $0.content = .pattern(PatternBytes(seed: 7, length: length))
                        $0.etag = etag.map { "\"\($0)-\(length)\"" }
                    }
                    let response = try await PlainClient().get(url, range: "bytes=\(received.count)-")
                    switch response.status {
                    case 206: received += response.body
                    case 200: received = response.body
                    default: #expect(response.status == 416)
                    }
                }
                expectBytes(received, all.bytes(0..<250_000))
            }
        }
    }

    @Test(
        "A file of one byte, of whole blocks, or of whole blocks minus one byte is received and stored",
        arguments: [1, 65535, 65536, 131_072])
    func sizes(_ size: Int64) async throws {
        try await Situation(OriginResource(.pattern(PatternBytes(seed: 7, length: size))), seeks: []).check()
    }

    @Test("A whole file is preloaded from a server that rejects ranges of more than 10 MiB with status 403")
    func limitedRanges() async throws {
        let film = PatternBytes(seed: 7, length: 30_000_000)
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                let isLong =
                    switch request.headerFields[.range].flatMap({ RequestedRange($0) }) {
                    case .bounded(let first, let last): min(last + 1, film.length) - first > 10 << 20
                    case .from(let first): film.length - first > 10 << 20
                    default: true
                    }
                if isLong { resource.refusal = OriginRefusal(403) }
            })
        let resource = OriginResource(.pattern(film), rules: [rule])
        try await OriginServer.run(["/media": resource]) { origin in
            try await CompatibilityStage.cache { cache in
                let preload = try #require(cache.preload([MediaSource(url: origin.url("/media"))], .entire).first)
                for await state in preload.states where state.phase.isFinal { #expect(state.phase == .finished) }
                #expect(origin.log.exchanges.contains { $0.status == 403 })
                await origin.stop()
                let bytes = try await cache.media(for: origin.url("/media")).bytes()
                expectBytes(bytes, film.bytes(0..<film.length))
            }
        }
    }

    @Test("Media is received from a URL with a query of 13,800 bytes")
    func longQuery() async throws {
        var situation = Situation()
        situation.path = "/media?token=" + String(repeating: "a1%2F", count: 2760)
        try await situation.check()
    }

    @Test("Ranges beyond byte 2^31 are received, such as the index at the end of a 2.6 GB audiobook")
    func audiobook() async throws {
        let book = PatternBytes(seed: 9, length: 2_600_000_000)
        let end = book.length - 50_000
        try await OriginServer.run(["/book.m4b": OriginResource(.pattern(book))]) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/book.m4b")))
                let head = try await PlainClient().get(url, range: "bytes=0-999")
                #expect(head.field("content-range") == "bytes 0-999/2600000000")
                expectBytes(head.body, book.bytes(0..<1000))
                let index = try await PlainClient().get(url, range: "bytes=\(end)-")
                expectBytes(index.body, book.bytes(end..<book.length))
                let suffix = try await PlainClient().get(url, range: "bytes=-50000")
                expectBytes(suffix.body, index.body)
            }
            try await CompatibilityStage.cache { cache in
                let media = cache.media(for: origin.url("/book.m4b"))
                for start in [2_147_483_600, end, 0] {
                    let data = try await media.data(in: start..<start + 1000)
                    expectBytes(Array(data), book.bytes(start..<start + 1000))
                }
            }
            #expect(origin.log.bytesSent() < 100_000_000)
        }
    }
}
