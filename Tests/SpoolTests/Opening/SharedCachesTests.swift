import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// Several caches in one process that use the same directory.
@Suite("Caches with the same directory", .timeLimit(.minutes(10)))
struct SharedCachesTests {
    private static let song = PatternBytes(seed: 21, length: 300_000)

    private let scratch: ScratchDirectory
    private let origin = ScriptedUpstream(["/a": OriginResource(.pattern(song))])

    init() throws { scratch = try ScratchDirectory() }

    private func cache(
        _ name: String = "cache", _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) -> MediaCache {
        var configuration = MediaCache.Configuration()
        configure(&configuration)
        return MediaCache(
            directory: URL(fileURLWithPath: scratch.file(name)), upstream: origin, configuration: configuration)
    }

    private func play(_ cache: MediaCache) async throws {
        let url = try #require(URL(string: "http://origin.test/a"))
        try Self.song.verify(try await cache.media(for: url).data(in: 0..<Self.song.length), at: 0)
    }

    private func checkOpening(_ cache: MediaCache, fails names: String) async {
        let error = await #expect(throws: CacheError.self) { try await cache.open() }
        #expect(error?.code == .directoryInUse)
        #expect(error?.message.contains("different values of \(names);") == true, "\(error?.message ?? "")")
    }

    @Test("E261: a second cache joins the first one, and shares stored bytes, requests and events")
    func joined() async throws {
        let first = cache()
        let second = cache("../\(URL(fileURLWithPath: scratch.path).lastPathComponent)/cache")
        #expect(first.core === second.core)
        var events = second.events().makeAsyncIterator()
        try await play(first)
        try await play(second)
        #expect(origin.log.bytesSent("/a") == Self.song.length)
        #expect(second.storedByteCount == Self.song.length)
        #expect(await events.next() != nil)
        // The directory stays open until the last cache is closed.
        await first.close()
        try await second.open()
        await second.close()
        await first.close()
        await #expect(throws: CacheError.self) { try await second.open() }
    }

    @Test("E261: after the last cache has been closed or released, a new cache opens the directory")
    func closedOrReleased() async throws {
        let first = cache()
        var second: MediaCache? = cache()
        try await play(first)
        second = nil
        await first.close()
        second = cache()
        #expect(second?.core !== first.core)
        try await second?.open()
        #expect(second?.storedByteCount == Self.song.length)
        await second?.close()
    }

    @Test("E261: if one cache is closed and the other one is released, the directory is closed")
    func closedThenReleased() async throws {
        let first = cache()
        var second: MediaCache? = cache()
        try await second?.open()
        let events = first.events()
        await first.close()
        #expect(second?.core === first.core)
        second = nil
        // The events end when the directory is closed.
        for await _ in events {}
        let third = cache()
        try await third.open()
        await third.close()
    }

    @Test("E261: opening a cache with a different configuration reports the differing values, and media still plays")
    func different() async throws {
        let first = cache { $0.encryptionKey = EncryptionKey(bytes: Data(repeating: 1, count: 32)) }
        try await first.open()
        let sizes = cache {
            $0.capacity = .bytes(2 << 30)
            $0.minimumFreeSpace = 5
            $0.eviction = .largestFirst
        }
        await checkOpening(sizes, fails: "capacity, encryptionKey, eviction, minimumFreeSpace")
        try await play(sizes)
        let rules = cache {
            $0.encryptionKey = EncryptionKey(bytes: Data(repeating: 1, count: 32))
            $0.keyPolicy = .ignoringQuery
            $0.byteStore = MemoryByteStore()
        }
        await checkOpening(rules, fails: "byteStore, keyPolicy")
        let other = MediaCache(
            directory: URL(fileURLWithPath: scratch.file("cache")), upstream: ScriptedUpstream([:]),
            configuration: first.context.configuration)
        await checkOpening(other, fails: "upstream")
        for cache in [sizes, rules, other, first] { await cache.close() }
    }

    @Test("E261: a read-only cache never joins another cache, because it does not need a lock")
    func readOnly() async throws {
        let first = cache()
        try await play(first)
        _ = try await first.storedResources()
        let second = cache { $0.isReadOnly = true }
        #expect(second.core !== first.core)
        try await second.open()
        await second.close()
        await first.close()
    }
}
