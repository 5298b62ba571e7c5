import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("In-memory caches and custom stores", .timeLimit(.minutes(10)))
struct InMemoryTests {
    private let song = PatternBytes(seed: 1, length: 300_000)

    private func url(_ path: String) throws -> URL { try #require(URL(string: "http://origin.test/\(path)")) }

    @Test("An in-memory cache stores media from a custom transport, and uses a custom clock")
    func inMemory() async throws {
        let origin = ScriptedUpstream([
            "/a": OriginResource(.pattern(song), rules: [.first(2, .status(503))])
        ])
        let clock = ManualClock()
        let url = try url("a")
        let date = Mutex(Date(timeIntervalSince1970: 1_000_000))
        let cache = MediaCache.inMemory(upstream: origin, clock: clock, now: { date.withLock { $0 } })
        try await clock.flowing {
            try song.verify(try await cache.media(for: url).data(in: 0..<300_000), at: 0)
            origin.setReachable(false)
            try song.verify(try await cache.media(for: url).data(in: 0..<300_000), at: 0)
            let stored = try #require(try await cache.media(for: url).storedResource())
            #expect(stored.isComplete)
            #expect(abs(stored.lastUsed.timeIntervalSince(date.withLock { $0 })) < 1)
            #expect(cache.readOnlyReason == nil && cache.capacity == 256 << 20)
            await cache.close()
        }
        #expect(clock.now.offset >= RetryPolicy().initialDelay)
    }

    @Test("A cache in memory respects its capacity, and memory use does not grow with the amount of played media")
    func capacity() async throws {
        let store = MemoryByteStore()
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(1 << 20)
        configuration.byteStore = store
        let origin = ScriptedUpstream(
            Dictionary(uniqueKeysWithValues: (0..<20).map { ("/\($0)", OriginResource(.pattern(song))) }))
        let cache = MediaCache.inMemory(upstream: origin, configuration: configuration)
        for index in 0..<20 {
            try song.verify(try await cache.media(for: try url("\(index)")).data(in: 0..<300_000), at: 0)
            #expect(cache.storedByteCount <= 1 << 20)
        }
        // The last page of each file, which has 64 KiB, may be used only in part.
        #expect(store.byteCount <= (1 << 20) + 4 * 65_536)
        #expect(cache.storedByteCount > 600_000)
        try await cache.store.waitUntilIdle()
        try await cache.store.checkLedger()
        await cache.close()
    }

    @Test("Bytes that a store in memory has lost are fetched again, even though the catalog on disk lists them")
    func lost() async throws {
        let scratch = try ScratchDirectory()
        let origin = ScriptedUpstream(["/a": OriginResource(.pattern(song))])
        let directory = URL(fileURLWithPath: scratch.file("cache"))
        for round in 1...2 {
            var configuration = MediaCache.Configuration()
            configuration.byteStore = MemoryByteStore()
            let cache = MediaCache(directory: directory, upstream: origin, configuration: configuration)
            try song.verify(try await cache.media(for: try url("a")).data(in: 0..<300_000), at: 0)
            #expect(origin.log.bytesSent("/a") == Int64(round) * 300_000)
            await cache.close()
        }
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/media/00"))
    }

    @Test("Media can be stored outside of the catalog's directory, encrypted or not", arguments: [false, true])
    func elsewhere(isEncrypted: Bool) async throws {
        let scratch = try ScratchDirectory()
        let origin = ScriptedUpstream(["/a": OriginResource(.pattern(song))])
        let media = URL(fileURLWithPath: scratch.file("volume/media"))
        for _ in 1...2 {
            var configuration = MediaCache.Configuration()
            configuration.byteStore = FileByteStore(directory: media)
            configuration.capacity = .fractionOfVolume(0.5)
            if isEncrypted { configuration.encryptionKey = EncryptionKey(bytes: Data(repeating: 1, count: 32)) }
            let cache = MediaCache(
                directory: URL(fileURLWithPath: scratch.file("cache")), upstream: origin, configuration: configuration)
            try await cache.open()
            try song.verify(try await cache.media(for: try url("a")).data(in: 0..<300_000), at: 0)
            await cache.close()
        }
        #expect(origin.log.bytesSent("/a") == 300_000)
        let files = try FileManager.default.subpathsOfDirectory(atPath: media.path).filter { $0.hasSuffix(".media") }
        #expect(files.count == 1)
        #expect(!FileManager.default.fileExists(atPath: scratch.file("cache/media/" + (files.first ?? ""))))
    }

    @Test("If a store rejects every call, media plays without being cached")
    func refusing() async throws {
        var configuration = MediaCache.Configuration()
        configuration.byteStore = RefusingByteStore()
        let cache = MediaCache.inMemory(
            upstream: ScriptedUpstream(["/a": OriginResource(.pattern(song))]), configuration: configuration)
        try song.verify(try await cache.media(for: try url("a")).data(in: 0..<300_000), at: 0)
        #expect(cache.storedByteCount == 0)
        await cache.close()
    }

    @Test("A cache in memory rejects a capacity relative to the volume, a minimum free space, and read-only mode")
    func refused() async throws {
        var impossible: [MediaCache.Configuration] = Array(repeating: MediaCache.Configuration(), count: 3)
        impossible[0].capacity = .fractionOfVolume(0.1)
        impossible[1].minimumFreeSpace = 1
        impossible[2].isReadOnly = true
        for configuration in impossible {
            let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]), configuration: configuration)
            await #expect {
                try await cache.open()
            } throws: {
                ($0 as? CacheError)?.code == .invalidArgument && ($0 as? CacheError)?.message.contains("memory") == true
            }
            await cache.close()
        }
    }
}

/// A store on a storage medium that has been removed.
private struct RefusingByteStore: ByteStore {
    private let error = CacheError.storage("the card has been taken out", underlying: POSIXError(.EIO))

    func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? { throw error }
    func create(_ name: String) throws(CacheError) -> any StoredFile { throw error }
    func remove(_ name: String) throws(CacheError) -> Bool { throw error }
    func forEachName(_ body: (String) throws -> Bool) throws { throw error }
    func volumeSpace() throws(CacheError) -> VolumeSpace? { nil }
}
