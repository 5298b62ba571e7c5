import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Responses of an origin that sends the header fields at once and the body later.
@Suite(.timeLimit(.minutes(1))) struct LateBodyTests {
    /// A resource whose first response has no body until the origin is released.
    private static func resource(_ text: String, type: String, etag: String? = nil) -> OriginResource {
        OriginResource(
            .data(Data(text.utf8)), etag: etag, contentType: type, rules: [OriginRule(0..<1, .stall(after: 0))])
    }

    @Test(arguments: ["bytes=1000-", "bytes=100-200", "bytes=36-"], ["\"v1\"", nil])
    func `E145: A range past the end causes one origin request if the body is late`(
        range: String, etag: String?
    ) async throws {
        let short = Self.resource(String(repeating: "a", count: 36), type: "application/octet-stream", etag: etag)
        try await OriginServer.run(["/a": short]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, clock: ManualClock()) { server, _ in
                let response = try await server.get("/a", "Range: \(range)\r\n")
                #expect(response.status == 416)
                #expect(response.field("content-range") == "bytes */36")
                origin.release()
            }
            try await origin.log.untilQuiet()
            #expect(origin.log.exchanges.count == 1)
        }
    }
}
