import HTTPTypes
import NIOCore
import Testing

@testable import SpoolProxy

/// Request heads, which are parsed with the strict grammar of RFC 9112, from pieces of any size.
@Suite struct RequestParserTests {
    private static func parse(_ text: String, limit: Int = 32 << 10) throws -> RequestHead? {
        var buffer = ByteBuffer(string: text)
        var parser = RequestParser(limit: limit)
        return try parser.next(in: &buffer)
    }

    private static func status(_ text: String) -> Int? {
        do {
            _ = try parse(text)
            return nil
        } catch {
            return (error as? RequestFailure)?.status
        }
    }

    @Test func `A request line and its fields are parsed`() throws {
        let head = try #require(
            try Self.parse("GET /a?b=%20 HTTP/1.1\r\nHost: localhost:80\r\nRANGE:  bytes=0-\t \r\nX: \r\n\r\n"))
        #expect(head.method == .get)
        #expect(head.target == "/a?b=%20")
        #expect(head.host == "localhost:80")
        #expect(head.fields["range"] == "bytes=0-")
        #expect(head.fields["x"] == "")
        #expect(head.fields["y"] == nil)
        #expect(head.keepsAlive)
        #expect(head.body == .none)
        #expect(head.fields.all[.range] == "bytes=0-")
    }

    @Test func `Headers are parsed identically from pieces of any size`() throws {
        let text = "\r\nHEAD /x HTTP/1.0\r\nA: 1\r\nB: 2\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n"
        let bytes = Array(text.utf8)
        for size in 1...bytes.count {
            var parser = RequestParser(limit: 1000)
            var buffer = ByteBuffer()
            var heads: [RequestHead] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                buffer.writeBytes(bytes[start..<min(start + size, bytes.count)])
                while let head = try parser.next(in: &buffer) { heads.append(head) }
            }
            #expect(heads.map(\.target) == ["/x", "/next"])
            #expect(heads.map(\.method) == [.head, .get])
            #expect(heads.map(\.keepsAlive) == [false, true])
            #expect(buffer.readableBytes == 0)
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", "GET / HTTP/1.1\rHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX: a\u{0}b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n: v\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / http/1.1\r\nHost: h\r\n\r\n", "GET /\u{1} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /#x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: h\r\n\r\n", "GET http:/// HTTP/1.1\r\nHost: h\r\n\r\n",
        "G{T / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: \u{7F}\r\n\r\n", "GET /\r\nHost: h\r\n\r\n", "\n\n",
    ])
    func `An ambiguous or malformed request is rejected with 400`(_ text: String) {
        #expect(Self.status(text) == 400)
    }

    @Test(
        "E211: a request is rejected immediately if its first byte can't start a method",
        arguments: [
            "\u{16}", "\u{16}\u{3}\u{1}", "\n", "\r\r", "\rG", "\u{0}", " GET", "\r\n\u{16}", "\r\n\r\n\u{0}", "é", "{",
        ])
    func noMethod(text: String) {
        #expect(Self.status(text) == 400)
    }

    @Test func `Unsupported versions, codings and sizes are rejected with the matching status`() {
        #expect(Self.status("GET / HTTP/2.0\r\nHost: h\r\n\r\n") == 505)
        #expect(Self.status("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n") == 501)
        #expect(Self.status("GET /" + String(repeating: "a", count: 40_000)) == 414)
        #expect(Self.status("GET / HTTP/1.1\r\nA: " + String(repeating: "a", count: 40_000)) == 431)
        #expect(Self.status("GET / HTTP/1.1\r\nA: " + String(repeating: "a", count: 40_000) + "\r\n\r\n") == 431)
    }

    @Test func `An absolute target overrides the Host field`() throws {
        let head = try #require(try Self.parse("GET HTTP://a.example:81?x HTTP/1.1\r\nHost: b.example\r\n\r\n"))
        #expect(head.host == "a.example:81")
        #expect(head.target == "/?x")
    }

    @Test func `The HTTP version and the Connection options determine whether a connection stays open`() throws {
        func keeps(_ version: String, _ option: String) throws -> Bool? {
            try Self.parse("GET / HTTP/1.\(version)\r\nHost: h\r\nConnection: \(option)\r\n\r\n")?.keepsAlive
        }
        #expect(try keeps("1", "upgrade") == true)
        #expect(try keeps("1", "keep-alive, Close") == false)
        #expect(try keeps("0", "Keep-Alive") == true)
        #expect(try keeps("0", "x") == false)
    }

    @Test func `Parsing random bytes results in a valid head, an error or an incomplete request`() {
        var random = SystemRandomNumberGenerator()
        let pieces = [
            "GET ", "/", " HTTP/1.1", "\r\n", "\n", "\r", "Host: h", ":", " ", "\u{0}", "Content-Length: 5", "\t", "*",
            "~",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0..<14, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            guard let head = try? Self.parse(text.joined()) else { continue }  // Most inputs are rejected.
            #expect(head.target.hasPrefix("/") || head.target == "*" || head.method == .other("CONNECT"))
            #expect(!head.target.contains("\r"))
        }
    }
}
