import Foundation
import Spool
import SpoolHTTP
import Testing

@Suite("Static members for transports", .timeLimit(.minutes(10)))
struct UpstreamNameTests {
    @Test("`.urlSession()` and `.asyncHTTPClient()` can be passed to a cache")
    func upstreams() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "spool-" + UUID().uuidString)
        var caches = [MediaCache(directory: directory, upstream: .urlSession())]
        #if AsyncHTTPClient
        caches.append(MediaCache.inMemory(upstream: .asyncHTTPClient()))
        #endif
        for cache in caches { await cache.close() }
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }
}
