import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// Tests with an origin that sends a part even though all bytes were requested.
@Suite(.timeLimit(.minutes(10))) struct PartForWholeTests {
    @Test("E141: if an origin sends the same 206 to every request, the reader gets an error after two requests")
    func alwaysTheSamePart() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        stage.origin.script("/a") { _, _ in
            var head = HTTPResponse(status: .partialContent)
            head.headerFields[.contentType] = "text/plain"
            head.headerFields[.contentLength] = "5"
            head.headerFields[.contentRange] = "bytes 0-4/10"
            return .init(head, .data(Data("01234".utf8)))
        }
        try await stage.session { cache in
            let reader = cache.media(for: MediaSource(url: stage.url())).reader()
            let error = await #expect(throws: CacheError.self) { try await reader.next() }
            #expect(error?.code == .malformedResponse)
            #expect(stage.origin.log.exchanges.count == 2)
        }
    }
}
