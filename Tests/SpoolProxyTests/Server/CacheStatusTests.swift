import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The `Cache-Status` field (RFC 9211) if other caches are between the server and the origin.
@Suite(.timeLimit(.minutes(10))) struct CacheStatusTests {
    @Test(
        "E188: the server appends its Cache-Status entry to the entries from caches between the server and the origin")
    func chain() async throws {
        var resource = OriginResource.pattern(1000)
        resource.headerFields[.cacheControl] = "max-age=1000"
        resource.headerFields[.cacheStatus] = "cdn; hit; ttl=30"
        let media = resource
        try await OriginServer.run(["/a": media]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            let first = "cdn; hit; ttl=30, spool; fwd=miss; fwd-status=200"
            let stored = "cdn; hit; ttl=30, spool; hit"
            try await ProxyServer.run(configuration) { server, _ in
                for (method, fields, expected) in [
                    ("HEAD", "", first), ("GET", "", first + "; stored"), ("GET", "", stored),
                    ("GET", "Range: bytes=5-9\r\n", stored), ("HEAD", "", stored),
                ] {
                    let response = try await server.get("/a", fields, method: method)
                    #expect(response.field("cache-status") == expected)
                }
            }
        }
    }
}
