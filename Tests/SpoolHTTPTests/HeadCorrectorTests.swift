#if AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Spool
import SpoolTesting
import Testing

@testable import SpoolHTTP

/// Harmless faults in response heads, which players and curl accept.
@Suite(.timeLimit(.minutes(5))) struct HeadCorrectorTests {
    /// Responses whose body is `hello`, and whether the connection can be reused.
    private static let responses: [(text: String, isReusable: Bool)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", true),
        (
            "HTTP/1.1 103 Early\r\nLink:</x>\r\n\r\nHTTP/1.1 200 OK\r\nETag :\"a\"\r\nContent-Length:5\r\n\r\nhello",
            true
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length \t:5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\n:nothing\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:Identity\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nContent-Length:5\r\ncontent-length: 5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nContent-Length:5, 5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("http/1.1  200   OK\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200\r\nX Y:1\r\n[x]:1\r\n\u{e9}:1\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nX:a\rb\u{0}c\u{7f}\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked, chunked\r\nETag:\"a\"\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
        ("HTTP/1.1 103 Early\nLink:</x>\n\nHTTP/1.1 200 OK\nETag:\"a\"\nContent-Length:5\n\nhello", false),
        ("HTTP/1.1 200 OK\nContent-Length:5\nETag:\"a\"\n\nhello", false),
        ("HTTP/1.1 200 OK\r\nX:1\r\n\t2\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", false),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:7\r\nTransfer-Encoding:chunked\r\nETag:\"a\"\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            false
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked\r\nETag:\"a\"\r\n\r\n"
                + "01 \r\nh\r\n3 \t;a=b\r\nell\r\n1\r\no\r\n0  \r\n\r\n", true
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5 bytes\r\nETag:\"a\"\r\n\r\nhello", false),
        ("ICY 200 OK\r\nContent-Length:5\r\nETag:\"a\"\r\n\r\nhello", false),
    ]

    @Test("E521: an origin that sends interim responses without an end causes an error, and its bytes are not retained")
    func endlessInterimHeads() throws {
        let channel = try connection()
        let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        try channel.writeOutbound(HTTPClientRequestPart.head(request))
        let head = Array("HTTP/1.1 103 Early Hints\r\nLink: \(String(repeating: "v", count: 20_000))\r\n\r\n".utf8)
        // Each piece ends within a head.
        let piece = Array(head[10...] + head[..<10])
        try channel.writeInbound(ByteBuffer(bytes: head[..<10]))
        var count = 0
        #expect(throws: HTTPParserError.self) {
            while count < 1 << 24 {
                try channel.writeInbound(ByteBuffer(bytes: piece))
                while try channel.readInbound(as: HTTPClientResponsePart.self) != nil {}
                count += piece.count
            }
        }
        #expect(count < 300_000)
        _ = try? channel.finish()  // The connection was closed with an error.
    }

    /// Returns a client's connection with its parser.
    private func connection() throws -> EmbeddedChannel {
        let corrector = HeadCorrector()
        return EmbeddedChannel(handlers: [
            corrector, ByteToMessageHandler(HTTPResponseDecoder(informationalResponseStrategy: .forward)),
            HeadGate(corrector),
        ])
    }

    /// Sends a request, and parses a response that is received in these pieces.
    private func receive(
        _ pieces: [ArraySlice<UInt8>], on channel: EmbeddedChannel
    ) throws -> (head: HTTPResponseHead?, body: String) {
        let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        try channel.writeOutbound(HTTPClientRequestPart.head(request))
        for piece in pieces { try channel.writeInbound(ByteBuffer(bytes: piece)) }
        var (head, body) = (HTTPResponseHead?.none, "")
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head(let next): head = next
            case .body(let buffer): body += String(buffer: buffer)
            case .end: break
            }
        }
        return (head, body)
    }

    @Test(
        "E220: a harmless fault in headers is corrected, however the received bytes are divided",
        arguments: responses.indices)
    func divided(_ index: Int) throws {
        let response = Self.responses[index]
        let bytes = Array(response.text.utf8)
        var divisions = (1..<bytes.count).map { [bytes[..<$0], bytes[$0...]] }
        divisions += [[bytes[...]], bytes.indices.map { bytes[$0...$0] }]
        for pieces in divisions {
            let channel = try connection()
            for _ in 0..<(response.isReusable ? 3 : 1) {
                let received = try receive(pieces, on: channel)
                #expect(received.body == "hello")
                #expect(received.head?.headers["ETag"] == ["\"a\""])
                #expect((received.head?.headers["Connection"] == ["close"]) == !response.isReusable)
            }
        }
    }

    @Test("E220: a response with a harmless fault is received over a socket", arguments: responses.indices)
    func received(_ index: Int) async throws {
        let response = Self.responses[index]
        let resources: [String: OriginResource] = [
            "/a": .pattern(10, .raw(response.text))
        ]
        try await OriginServer.run(resources) { origin in
            let upstream = AsyncHTTPClientUpstream()
            var body: [UInt8] = []
            for try await chunk in try await upstream.open(UpstreamRequest(url: origin.url("/a"))).body {
                chunk.withUnsafeBytes { body += $0 }
            }
            #expect(body == Array("hello".utf8))
        }
    }

    @Test(
        "E220: headers that are correct, or that can't be corrected, are not changed",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length:5\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:5\r\nTransfer-Encoding:gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:5\r\nContent-Length:6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:5\r\nTransfer-Encoding:chunked\r\nTransfer-Encoding:identity\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:5 6\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length:5 kB\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length:5 bytes, 6 bytes\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200\r\n\r\n",
            "HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 404 Not  Found \r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
        ])
    func unchanged(_ head: String) {
        #expect(ResponseHeadText.examined(Array(head.utf8)).corrected == nil)
    }

    @Test("E505: white space within a chunk size, or within the data of a chunk, is not removed")
    func chunks() throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for rest in ["1 1\r\nhello\r\n", " 5\r\nhello\r\n", "5 x\r\nhello\r\n", "5 \nhello\r\n"] {
            let bytes = Array((head + rest).utf8)
            for pieces in [[bytes[...]], bytes.indices.map { bytes[$0...$0] }] {
                #expect(throws: (any Error).self) { try receive(pieces, on: connection()) }
            }
        }
        let bytes = Array((head + "a \r\n1 \r\n2 \r\n3 \r\n0\r\n\r\n").utf8)
        for pieces in [[bytes[...]], bytes.indices.map { bytes[$0...$0] }] {
            #expect(try receive(pieces, on: try connection()).body == "1 \r\n2 \r\n3 ")
        }
    }

    @Test("E285: if a response has too many header fields for the parser, the fields that a cache needs are retained")
    func manyFields() async throws {
        let others = (0..<300).map { "X-\($0): \($0)\r\n" }.joined()
        let text = "HTTP/1.1 200 OK\r\n\(others)Content-Length: 5\r\nETag: \"a\"\r\n\r\nhello"
        let received = try receive([Array(text.utf8)[...]], on: try connection())
        #expect(received.body == "hello")
        #expect(received.head?.headers["ETag"] == ["\"a\""])
        #expect(received.head?.headers["X-0"] == ["0"])
        #expect(received.head?.headers["Cache-Control"] == ["no-store"])
        #expect(received.head?.headers.count == 251)
        try await OriginServer.run(["/a": .pattern(10, .raw(text))]) { origin in
            let response = try await AsyncHTTPClientUpstream().open(UpstreamRequest(url: origin.url("/a")))
            #expect(response.head.headerFields[.eTag] == "\"a\"")
        }
    }

    @Test("E220: a folded header line can't change the framing of the body")
    func foldedFraming() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked\r\n gzip\r\nContent-Length:5\r\n\r\n"
        let corrected = ResponseHeadText.examined(Array(head.utf8)).corrected
            .map { String(decoding: $0, as: UTF8.self) }
        #expect(
            corrected
                == "HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked gzip\r\nContent-Length:5\r\nConnection: close\r\n\r\n"
        )
    }

    @Test("E220: bytes that are not headers, and headers without an end, are passed to the parser unchanged")
    func otherBytes() throws {
        for text in ["<html>\r\n", "HTTP/1.1 200 OK\r\n" + String(repeating: "A:b\r\n", count: 20_000)] {
            let channel = EmbeddedChannel(handler: HeadCorrector())
            try channel.writeInbound(ByteBuffer(string: text))
            #expect(try channel.readInbound(as: ByteBuffer.self).map { String(buffer: $0) } == text)
        }
        let channel = EmbeddedChannel(handler: HeadCorrector())
        try channel.writeInbound(ByteBuffer(string: "HTTP/1.1 2"))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        channel.pipeline.fireChannelInactive()
        #expect(try channel.readInbound(as: ByteBuffer.self).map { String(buffer: $0) } == "HTTP/1.1 2")
    }
}
#endif
