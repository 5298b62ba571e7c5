import NIOCore
import Testing

@testable import SpoolProxy

/// The end of a request body, which is determined only by its framing.
@Suite struct RequestBodyReaderTests {
    /// Returns the bytes of the body, whether it is complete, and the bytes of the next request.
    private static func read(
        _ body: RequestHead.Body, _ text: String, piece: Int = .max
    ) throws -> (body: String, isWhole: Bool, rest: String) {
        var reader = RequestBodyReader(body)
        var buffer = ByteBuffer()
        var taken = ByteBuffer()
        var bytes = Array(text.utf8)[...]
        while true {
            switch try reader.next(in: &buffer) {
            case .bytes(var part): taken.writeBuffer(&part)
            case .end:
                return (String(buffer: taken), true, String(buffer: buffer) + String(decoding: bytes, as: UTF8.self))
            case .incomplete:
                guard !bytes.isEmpty else { return (String(buffer: taken), false, "") }
                buffer.writeBytes(bytes.prefix(piece))
                bytes = bytes.dropFirst(piece)
            }
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1000])
    func `Chunks are joined; extensions and trailers are skipped`(piece: Int) throws {
        let text = "5;a=b\r\nhello\r\n00A\r\n, world!!!\r\n0\r\nTrailer: x\r\n\r\nGET"
        let found = try Self.read(.chunked, text, piece: piece)
        #expect(found.body == "hello, world!!!")
        #expect(found.isWhole)
        #expect(found.rest == "GET")
    }

    @Test func `A body of known length ends after that number of bytes`() throws {
        let found = try Self.read(.length(3), "abcdef")
        #expect(found.body == "abc")
        #expect(found.rest == "def")
        #expect(try !Self.read(.length(9), "abc").isWhole)
        #expect(try Self.read(.none, "abc").rest == "abc")
    }

    @Test(arguments: [
        "5\nhello\r\n0\r\n\r\n", "x\r\n", "\r\n", "-1\r\n", "5\r\nhelloX", "5\r\nhello\n0\r\n\r\n", "0x5\r\nhello\r\n",
        "FFFFFFFFFFFFFFFF\r\n", ";a\r\n", "5 \r\nhello\r\n", "5\r\r\nhello", "0\r\na\nb\r\n\r\n",
    ])
    func `Invalid chunked framing is rejected`(_ text: String) {
        #expect(throws: RequestFailure.self) { try Self.read(.chunked, text) }
    }
}
