import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The number of requests that reach the origin for many concurrent clients, over sockets.
///
/// `SPOOL_PROXY_SEED` selects the seed, and `SPOOL_PROXY_RESPONSES` the number of responses.
@Suite(.timeLimit(.minutes(10))) struct OriginRequestCountTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["SPOOL_PROXY_RESPONSES"].flatMap { Int($0) } ?? 300
    private static let seed = environment["SPOOL_PROXY_SEED"].flatMap { UInt64($0) } ?? 1

    /// The origin's rules for reusing a response, and the number of origin requests for two client requests.
    private struct Reuse: Sendable {
        var fields: HTTPFields
        var etag: String?
        var lastModified: Date?
        /// The header fields of the second client request.
        var request = ""
        var originRequests: Int
    }

    private static let reuses = [
        Reuse(fields: [:], originRequests: 2),
        Reuse(fields: [.cacheControl: "no-cache"], originRequests: 2),
        Reuse(fields: [.cacheControl: "no-cache"], etag: "\"v1\"", originRequests: 2),
        Reuse(fields: [.cacheControl: "max-age=0"], lastModified: .now, originRequests: 2),
        Reuse(fields: [.cacheControl: "max-age=0"], request: "Cache-Control: max-stale=60\r\n", originRequests: 1),
        Reuse(
            fields: [.cacheControl: "max-age=3600"], etag: "\"v1\"", request: "Cache-Control: no-cache\r\n",
            originRequests: 2),
        Reuse(fields: [.cacheControl: "no-store"], originRequests: 2),
        Reuse(fields: [.cacheControl: "max-age=3600"], originRequests: 1),
        Reuse(fields: [.cacheControl: "max-age=3600"], etag: "\"v1\"", originRequests: 1),
        Reuse(fields: [.cacheControl: "max-age=3600, stale-while-revalidate=60"], etag: "W/\"v1\"", originRequests: 1),
    ]

    private static func draw(_ random: inout SplitMix) -> (resource: OriginResource, reuse: Reuse) {
        let reuse = random.pick(reuses)
        // Responses are never empty: an origin may reject the range of an empty response, which causes another request.
        let length = random.pick([1, 6, 36, 36, 500, 5000])
        var resource = OriginResource(
            .data(Data(repeating: 0x61, count: length)), etag: reuse.etag, lastModified: reuse.lastModified,
            contentType: random.pick(["text/plain", "application/json", "text/html", "audio/mpeg"]))
        resource.headerFields = reuse.fields
        return (resource, reuse)
    }

    @Test("E140: each of many concurrent requests for short responses causes at most one origin request")
    func countsRequests() async throws {
        var random = SplitMix(Self.seed)
        let drawn = (0..<Self.count).map { _ in Self.draw(&random) }
        let resources = Dictionary(uniqueKeysWithValues: drawn.indices.map { ("/\($0)", drawn[$0].resource) })
        try await OriginServer.run(resources) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration) { server, _ in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for worker in 0..<16 {
                        group.addTask {
                            for index in stride(from: worker, to: drawn.count, by: 16) {
                                for fields in ["", drawn[index].reuse.request] {
                                    let response = try await server.get("/\(index)", fields)
                                    #expect(response.status == 200, "/\(index)")
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                try await origin.log.waitUntilIdle()
                let counts = Dictionary(grouping: origin.log.exchanges, by: \.path).mapValues(\.count)
                for (index, item) in drawn.enumerated() {
                    #expect(
                        counts["/\(index)"] == item.reuse.originRequests,
                        "seed \(Self.seed), /\(index): \(item.resource.headerFields), \(item.reuse.etag ?? "no tag")")
                }
            }
        }
    }
}
