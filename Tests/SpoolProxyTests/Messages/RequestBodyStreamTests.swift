import NIOCore
import Testing

@testable import SpoolProxy

@Suite struct RequestBodyStreamTests {
    @Test func `A body is delivered completely, up to its end`() async throws {
        let stream = RequestBodyStream {}
        stream.take(ByteBuffer(string: "ab"))
        stream.take(ByteBuffer(string: "c"))
        stream.end()
        var text = ""
        for try await piece in stream.body { text += String(buffer: piece) }
        #expect(text == "abc")
        // The body was delivered completely, so a failure has no effect.
        stream.fail()
        for try await _ in stream.body { Issue.record("more than the body") }
    }

    @Test func `A body that fails before it is read throws an error, even if its end was received`() async throws {
        let stream = RequestBodyStream {}
        stream.take(ByteBuffer(string: "ab"))
        stream.end()
        stream.fail()
        await #expect(throws: RequestBodyStream.Interrupted.self) {
            for try await _ in stream.body {}
        }
    }

    @Test(
        "E461: single-byte pieces of a request body are joined, and do not retain the buffer that received them")
    func tinyPieces() async throws {
        let received = ByteBuffer(repeating: 7, count: 64 << 10)
        let stream = RequestBodyStream {}
        for index in 0..<262_144 where stream.hasSpace {
            if let piece = received.getSlice(at: index % received.readableBytes, length: 1) { stream.take(piece) }
        }
        stream.end()
        var (pieces, bytes, capacity) = (0, 0, 0)
        for try await piece in stream.body {
            pieces += 1
            bytes += piece.readableBytes
            capacity += piece.storageCapacity
        }
        #expect(bytes == 262_144)
        #expect(pieces < 1000)
        #expect(capacity <= 1 << 20)
    }
}
