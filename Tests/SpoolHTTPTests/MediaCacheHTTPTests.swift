import Foundation
import Spool
import SpoolHTTP
import Testing

@Suite("A cache over the platform's HTTP")
struct MediaCacheHTTPTests {
    @Test("It keeps what it is told to, else what its configuration says")
    func capacity() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spool-http-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // What is left is in the temporary folder.
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(5)
        for (capacity, kept) in [(nil, 5), (.bytes(7), 7)] as [(CacheCapacity?, Int64)] {
            let cache = MediaCache(directory: folder, capacity: capacity, configuration: configuration)
            try await cache.open()
            #expect(cache.capacity == kept)
            await cache.close()
        }
    }
}
