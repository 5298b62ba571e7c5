import Foundation
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

@Suite("Errors for rejected responses", .timeLimit(.minutes(10)))
struct RefusedResponseTests {
    private func stage(
        _ status: Int, _ body: Data, failure: UpstreamError? = nil, _ fields: HTTPFields = [:]
    ) throws -> MemoryStage {
        let stage = try MemoryStage([:])
        stage.origin.script("/a") { _, _ in
            var head = HTTPResponse(status: .init(code: status), headerFields: fields)
            head.headerFields[.contentType] = "text/plain"
            head.headerFields[.connection] = "close"
            head.headerFields[.setCookie] = "a=b"
            var response = ScriptedUpstream.Response(head, .data(body))
            response.failure = failure
            return response
        }
        return stage
    }

    private func error(_ stage: MemoryStage) async throws -> CacheError {
        try await stage.session(isFlowing: true) { cache in
            let media = cache.media(for: stage.url())
            return try #require(await #expect(throws: CacheError.self) { try await media.reader().response() })
        }
    }

    @Test(
        "The error for a rejection contains the origin's status, end-to-end fields and body, even after all retries",
        arguments: [301, 401, 404, 410, 418, 500, 503])
    func carried(status: Int) async throws {
        let stage = try stage(status, Data("Sorry".utf8), [.location: "/b"])
        let error = try await error(stage)
        #expect(error.httpStatus == status)
        #expect(error.key != nil)
        #expect(error.range != nil)
        let response = try #require(error.response)
        #expect(response.status == status)
        #expect(response.fields == [.location: "/b", .contentType: "text/plain"])
        #expect(response.url == stage.url())
        #expect(response.body == Data("Sorry".utf8))
        #expect(response.isWhole)
        let isRetried = status >= 500
        // The first missing resource of an origin is also requested without a range (E433).
        #expect(stage.origin.log.exchanges.count == (isRetried ? 6 : status == 404 ? 2 : 1))
    }

    @Test("The error for a rejection contains the first 64 KiB of a long body, or the received part of a truncated one")
    func partly() async throws {
        let long = try await error(stage(404, Data(repeating: 1, count: 65_537))).response
        #expect(long?.body.count == 65_536)
        #expect(long?.isWhole == false)
        let cut = try await error(stage(404, Data("So".utf8), failure: UpstreamError(.connectionLost, "cut"))).response
        #expect(cut?.body == Data("So".utf8))
        #expect(cut?.isWhole == false)
    }

    @Test("An encoded body that was not requested causes an error that contains the body")
    func encoded() async throws {
        let error = try await error(stage(200, Data("xyz".utf8), [.contentEncoding: "br"]))
        #expect(error.code == .malformedResponse)
        #expect(error.response?.fields[.contentEncoding] == "br")
        #expect(error.response?.body == Data("xyz".utf8))
    }
}
