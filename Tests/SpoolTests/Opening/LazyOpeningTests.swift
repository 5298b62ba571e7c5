import Foundation
import Logging
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

/// Tests that creating a cache cannot fail, and that its directory is opened when the cache is first used.
@Suite(.timeLimit(.minutes(10)))
struct LazyOpeningTests {
    private static let song = PatternBytes(seed: 1, length: 400_000)
    private let stage: MemoryStage

    init() throws { stage = try MemoryStage(["/a": OriginResource(.pattern(Self.song))]) }

    private func cache(
        at path: String? = nil, _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.logger = .init(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        return MediaCache(
            directory: URL(fileURLWithPath: path ?? stage.directory), upstream: stage.origin,
            configuration: configuration)
    }

    private func play(_ cache: MediaCache) async throws {
        try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
    }

    @Test("The directory is opened at the first use of the cache, and never if the cache is not used")
    func lazily() async throws {
        let unused = cache()
        #expect(unused.storedByteCount == 0 && unused.capacity == nil && unused.readOnlyReason == nil)
        await unused.close()
        #expect(!FileManager.default.fileExists(atPath: stage.directory))
        let cache = cache()
        #expect(!FileManager.default.fileExists(atPath: stage.directory))
        try await play(cache)
        #expect(cache.storedByteCount == Self.song.length)
        try await cache.checkLedger()
        await cache.close()
    }

    @Test("Concurrent uses of a cache open its directory only once")
    func together() async throws {
        let cache = cache()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { try await play(cache) } }
            for _ in 0..<10 { group.addTask { _ = try await cache.storedResources() } }
            for _ in 0..<10 { group.addTask { try await cache.open() } }
            try await group.waitForAll()
        }
        #expect(cache.storedByteCount == Self.song.length)
        try await cache.checkLedger()
        await cache.close()
    }

    enum Trouble: CaseIterable {
        case inUse, noDirectory, writableByOthers, noConfiguration
    }

    @Test(
        "If the directory is unusable, media still plays, and an event and all other calls report the reason",
        arguments: Trouble.allCases)
    func unusable(_ trouble: Trouble) async throws {
        var path = stage.directory
        var first: MediaCache?
        var configure: (inout MediaCache.Configuration) -> Void = { _ in }
        let code: CacheError.Code
        switch trouble {
        case .inUse:
            // Like a cache in another process, this cache does not share anything with other caches.
            first = MediaCache(
                directory: URL(fileURLWithPath: path), upstream: stage.origin,
                configuration: MediaCache.Configuration(), fileSystem: SystemFileSystem(),
                clock: CacheClock(clock: ContinuousClock()))
            try await first?.open()
            code = .directoryInUse
        case .noDirectory:
            path = stage.file("file")
            try Data("no directory".utf8).write(to: URL(fileURLWithPath: path))
            code = .storage
        case .writableByOthers:
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o777])
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
            code = .storage
        case .noConfiguration:
            configure = { $0.memoryLimit = -1 }
            code = .invalidArgument
        }
        let cache = cache(at: path, configure)
        var events = cache.events().makeAsyncIterator()
        try await play(cache)
        try await play(cache)
        #expect(cache.storedByteCount == 0)
        let error = await #expect(throws: CacheError.self) { try await cache.open() }
        #expect(error?.code == code)
        await #expect(throws: CacheError.self) { try await cache.storedResources() }
        await #expect(throws: CacheError.self) { try await cache.removeAll() }
        while let event = await events.next() {
            guard case .cacheUnavailable(let cause) = event.kind else { continue }
            #expect(event.key == nil && event.redactedURL == path && cause.message == error?.message)
            break
        }
        await cache.close()
        if trouble == .inUse {
            #expect(error?.message.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
            try await first?.checkLedger()
        }
        await first?.close()
    }

    @Test("E497: each of several concurrent close() calls waits until the cache is closed")
    func closedTogether() async throws {
        for _ in 0..<20 {
            let cache = cache()
            try await play(cache)
            let lock = URL(fileURLWithPath: stage.directory + "/lock")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        await cache.close()
                        // An empty lock file marks a clean shutdown.
                        let isEmpty = try Data(contentsOf: lock).isEmpty
                        #expect(isEmpty)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("evict() returns the number of evicted bytes, whether or not the directory was already open")
    func evictions() async throws {
        let first = cache()
        try await play(first)
        await first.close()
        let second = cache { $0.capacity = .bytes(100_000) }
        let evicted = try await second.evict()
        #expect(evicted >= Self.song.length - 100_000 && second.storedByteCount == Self.song.length - evicted)
        await second.close()
        let third = cache()
        try await play(third)
        try await third.pin(third.key(for: stage.url()))
        await third.close()
        let fourth = cache()
        #expect(try await fourth.evict(to: 0) == 0)
        try await fourth.unpin(fourth.key(for: stage.url()))
        #expect(try await fourth.evict(to: 0) == Self.song.length)
        await fourth.close()
        let error = await #expect(throws: CacheError.self) { try await fourth.evict() }
        #expect(error?.code == .closed)
    }

    @Test("A cache that is closed before or while it opens stays closed")
    func closed() async throws {
        let early = cache()
        await early.close()
        let error = await #expect(throws: CacheError.self) { try await early.open() }
        #expect(error?.code == .closed)
        let late = cache()
        async let opening: Void = late.open()
        await late.close()
        _ = try? await opening  // The opening may succeed or fail.
        await #expect(throws: CacheError.self) { try await play(late) }
        // No cache uses the directory now.
        let next = cache()
        try await play(next)
        #expect(next.storedByteCount == Self.song.length)
        await next.close()
    }
}
