import Foundation
import HTTPTypes
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import Spool
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

    @Test("After the disk has rejected bytes, responses are not reported as stored until the disk accepts bytes again")
    func fullDisk() async throws {
        var media = OriginResource.pattern(300_000)
        media.headerFields[.cacheControl] = "max-age=1000"
        try await OriginServer.run(["/a": media, "/b": media, "/c": media, "/d": media]) { origin in
            var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
            configuration.origin = origin.url("/")
            configuration.port = 0
            configuration.configure(&settings)
            let (scratch, disk) = (try ScratchDirectory(), FaultyFileSystem())
            let cache = MediaCache(
                directory: URL(fileURLWithPath: scratch.file("cache")),
                upstream: HTTPUpstream.standard(configuration.restricting(.init())), configuration: settings,
                fileSystem: disk, clock: CacheClock(clock: ContinuousClock()))
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            try await server.stopping(cache) {
                func isStored(_ path: String) async throws -> Bool {
                    let response = try await server.get(path)
                    #expect(response.body.count == 300_000)
                    return try #require(response.field("cache-status")).hasSuffix("; stored")
                }
                #expect(try await isStored("/a"))
                disk.fail([.write], with: .error(.ENOSPC))
                // The failure of the disk is not known when the headers of this response are sent.
                _ = try await isStored("/b")
                #expect(try await !isStored("/c"))
                #expect(cache.statistics.bytesStored == 300_000)
                #expect(cache.activity.counts.notCached == [.storage: 2])
                disk.clearFaults()
                _ = try await isStored("/d")
                #expect(try await server.get("/d").field("cache-status") == "spool; hit")
                #expect(cache.storedByteCount == 600_000)
            }
        }
    }
}
