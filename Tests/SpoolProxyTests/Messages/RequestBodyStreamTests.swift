import NIOCore
import Testing

@testable import SpoolProxy

@Suite struct RequestBodyStreamTests {
    @Test func `A body is delivered in the received pieces, up to its end`() async throws {
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
}
