import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// Responses with status 200 and an empty body.
@Suite(.timeLimit(.minutes(10)))
struct EmptyResponseCases {
    static let film = PatternBytes(seed: 1, length: 6_000_000)

    @Test(
        "E242: an empty response without a length is delivered, but is not reused for the next reader",
        arguments: [.immutable, .http] as [FreshnessPolicy])
    func empty(_ policy: FreshnessPolicy) async throws {
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.film))], freshness: policy)
        stage.origin.script("/a") { _, _ in
            var head = HTTPResponse(status: .ok)
            head.headerFields[.contentType] = "application/octet-stream"
            head.headerFields[.cacheControl] = "max-age=1000"
            return ScriptedUpstream.Response(head, .data(Data()))
        }
        try await stage.session { cache in
            let events = cache.events()
            for try await chunk in cache.media(for: stage.url()).reader() { Issue.record("\(chunk.count) bytes") }
            for await event in events {
                if case .notCached = event.kind { break }
            }
            stage.origin.script("/a", nil)
            try await cache.media(for: stage.url()).check(.all, Self.film)
        }
    }
}
