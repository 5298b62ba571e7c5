import Foundation
import Spool
import SpoolHTTP
import Testing

@Suite("A cache with the platform's HTTP client")
struct MediaCacheHTTPTests {
    @Test("The capacity argument overrides the configuration's capacity")
    func capacity() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spool-http-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // A leftover in the temporary folder is harmless.
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(5)
        for (capacity, kept) in [(nil, 5), (.bytes(7), 7)] as [(CacheCapacity?, Int64)] {
            let cache = MediaCache(directory: folder, capacity: capacity, configuration: configuration)
            try await cache.open()
            #expect(cache.capacity == kept)
            await cache.close()
        }
    }

    @Test("E261: two caches can share a directory if neither has a custom transport")
    func joined() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spool-http-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // A leftover in the temporary folder is harmless.
        let first = MediaCache(directory: folder)
        try await first.open()
        let second = MediaCache(directory: folder)
        try await second.open()
        await first.close()
        await second.close()
    }
}
