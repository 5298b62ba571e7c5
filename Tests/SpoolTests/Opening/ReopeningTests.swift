import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASE E, 300: a volume that is full or read-only while the cache opens.
@Suite(.timeLimit(.minutes(5)))
struct ReopeningTests {
    private static let song = PatternBytes(seed: 1, length: 300_000)
    private let disk = FaultyFileSystem()
    private let stage: MemoryStage

    init() throws {
        stage = try MemoryStage(["/a": .pattern(300_000), "/b": .pattern(300_000)], disk: disk)
    }

    private func play(_ cache: MediaCache, _ path: String = "/a") async throws {
        try await cache.media(for: stage.url(path)).check(.all, Self.song, covers: 0..<Self.song.length)
        await cache.waitUntilIdle()
    }

    private func isStored(_ cache: MediaCache, _ path: String = "/a") async throws -> Bool {
        try await cache.media(for: stage.url(path)).storedResource()?.isComplete == true
    }

    @Test(
        "E300: a volume that is temporarily full while the cache opens is used again after five seconds",
        arguments: [true, false])
    func fullForAMoment(isNew: Bool) async throws {
        if !isNew { try await stage.session { try await play($0, "/b") } }
        disk.fail([.write, .createDirectory, .punchHole], with: .error(.ENOSPC))
        try await stage.session(isFlowing: false) { cache in
            #expect(cache.readOnlyReason?.posixCode == .ENOSPC)
            let open = cache.media(for: stage.url()).reader(.bytes(0..<Self.song.length))
            var bytes = try await open.next()?.data ?? Data()
            try await play(cache)
            #expect(try await !isStored(cache))
            disk.clearFaults()
            // The next attempt is not due yet.
            stage.clock.advance(by: .seconds(4))
            try await play(cache)
            #expect(cache.readOnlyReason != nil)
            stage.clock.advance(by: .seconds(1))
            // The next use starts the attempt, and does not wait for it.
            try await play(cache)
            try await cache.open()
            #expect(cache.readOnlyReason == nil)
            try await play(cache)
            #expect(try await isStored(cache))
            if !isNew { #expect(try await isStored(cache, "/b")) }
            // A reader that was already open continues with its version.
            while let chunk = try await open.next() { bytes += chunk.data }
            #expect(Array(bytes) == Self.song.bytes(0..<Self.song.length))
        }
        try await stage.checkComplete(Self.song)
    }

    @Test("E300: attempts to open a full volume are five seconds apart at first, and one minute apart later")
    func backOff() async throws {
        disk.fail([.write], with: .error(.ENOSPC))
        try await stage.session(isFlowing: false) { cache in
            var attempts: [Int] = []
            for second in 1...200 {
                stage.clock.advance(by: .seconds(1))
                let before = disk.counts[.lock] ?? 0
                try await cache.open()
                if disk.counts[.lock] ?? 0 > before { attempts.append(second) }
            }
            #expect(attempts == [5, 15, 35, 75, 135, 195])
        }
    }

    @Test("E300: a directory that another process has open is used after that process has closed it")
    func inUse() async throws {
        let first = try await stage.open()
        let second = MediaCache(
            directory: URL(fileURLWithPath: stage.directory), upstream: stage.origin, configuration: .init(),
            fileSystem: disk, clock: CacheClock(clock: stage.clock))
        let error = await #expect(throws: CacheError.self) { try await second.open() }
        #expect(error?.code == .directoryInUse)
        await first.close()
        stage.clock.advance(by: .seconds(5))
        try await second.open()
        try await play(second)
        #expect(try await isStored(second))
        await second.close()
    }
}
