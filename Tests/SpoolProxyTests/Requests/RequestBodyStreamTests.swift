import NIOCore
import Testing

@testable import SpoolProxy

@Suite struct RequestBodyStreamTests {
    @Test func `A body comes in the pieces in which it was taken, to its end`() async throws {
        let stream = RequestBodyStream {}
        stream.take(ByteBuffer(string: "ab"))
        stream.take(ByteBuffer(string: "c"))
        stream.end()
        var text = ""
        for try await piece in stream.body { text += String(buffer: piece) }
        #expect(text == "abc")
        // It has come to its end: nothing is missing.
        stream.fail()
        for try await _ in stream.body { Issue.record("more than the body") }
    }

    @Test func `A body that is given up before it was taken is not one that has ended`() async throws {
        let stream = RequestBodyStream {}
        stream.take(ByteBuffer(string: "ab"))
        stream.end()
        stream.fail()
        await #expect(throws: RequestBodyStream.Interrupted.self) {
            for try await _ in stream.body {}
        }
    }
}
