import Foundation
import Spool
import SpoolHTTP
import Testing

@Suite("Upstreams by name", .timeLimit(.minutes(10)))
struct UpstreamNameTests {
    @Test("The upstreams are named by what they are")
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
