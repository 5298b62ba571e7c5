import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 59 and 60: disks that can't be written at opening, folders that others may write, clocks that jump.
@Suite(.timeLimit(.minutes(10)))
struct UnfriendlyMachineCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    static let refusals: [(Set<FaultyFileSystem.Call>, POSIXErrorCode)] = [
        ([.write, .createDirectory, .punchHole, .synchronize], .ENOSPC),
        ([.lock, .write, .createDirectory, .punchHole, .synchronize, .rename, .remove], .EROFS),
    ]

    @Test(
        "E59: a full or read-only disk at opening: what is complete plays from it, the rest uncached, with one warning",
        arguments: 0..<2)
    func refusingDisk(_ index: Int) async throws {
        let (calls, code) = Self.refusals[index]
        let disk = FaultyFileSystem()
        let stage = try MemoryStage(["/a": .pattern(3_000_000), "/b": .pattern(3_000_000)], disk: disk)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        stage.origin.log.clear()
        disk.fail(calls, with: .error(code))
        try await stage.session { cache in
            #expect(cache.notices.count == 1)
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(stage.origin.log.exchanges.isEmpty)
            try await cache.media(for: stage.url("/b")).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(cache.storedByteCount == Self.song.length)
        }
        disk.heal()
        try await stage.checkComplete(Self.song)
    }

    @Test("E59: a folder that others may write is refused with a sentence", arguments: [0o777, 0o702])
    func writableByOthers(_ mode: Int) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { _ in }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: stage.directory)
        let error = await #expect(throws: CacheError.self) { await (try stage.open()).close() }
        #expect(error?.message.contains(stage.directory) == true)
    }

    @Test("E59: a folder of another user is refused with a sentence", .enabled(if: geteuid() == 0))
    func ownedByAnother() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { _ in }
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: stage.directory)
        let error = await #expect(throws: CacheError.self) { await (try stage.open()).close() }
        #expect(error?.message.contains(stage.directory) == true)
    }

    @Test(
        "E60: what was used while the clock was years ahead is not kept for years: it goes before what was used later")
    func evictionOrder() async throws {
        let paths = ["/a", "/b", "/c"]
        let stage = try MemoryStage(Dictionary(uniqueKeysWithValues: paths.map { ($0, .pattern(3_000_000)) })) {
            $0.eviction = .leastRecentlyUsed
        }
        stage.pass(10 * .years)
        try await stage.session { cache in _ = try await cache.media(for: stage.url("/a")).bytes() }
        stage.pass(-10 * .years)
        for path in ["/b", "/c"] {
            stage.pass(3600)
            try await stage.session { cache in _ = try await cache.media(for: stage.url(path)).bytes() }
        }
        stage.pass(3600)
        try await stage.session { cache in
            let now = stage.date.withLock { $0 }
            #expect(try await cache.storedResources().allSatisfy { $0.lastUsed <= now })
            try await cache.evict(to: 2 * Self.song.length)
            #expect(try await cache.media(for: stage.url("/a")).storedResource()?.storedByteCount ?? 0 == 0)
            #expect(try await cache.media(for: stage.url("/b")).storedResource()?.isComplete == true)
            #expect(try await cache.media(for: stage.url("/c")).storedResource()?.isComplete == true)
        }
    }

    @Test("E60: what is used again after the clock has gone back counts as used then")
    func usedAgain() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000), "/b": .pattern(3_000_000)]) {
            $0.eviction = .leastRecentlyUsed
        }
        stage.pass(10 * .years)
        try await stage.session { cache in
            for path in ["/a", "/b"] { _ = try await cache.media(for: stage.url(path)).bytes() }
        }
        stage.pass(-10 * .years)
        try await stage.session { cache in
            stage.pass(60)
            _ = try await cache.media(for: stage.url("/a")).bytes()
        }
        stage.pass(60)
        try await stage.session { cache in
            try await cache.evict(to: Self.song.length)
            #expect(try await cache.media(for: stage.url("/a")).storedResource()?.isComplete == true)
        }
    }

    @Test(
        "E60: what came, or was validated, while the clock was years ahead is not fresh for years",
        arguments: [true, false])
    func freshness(_ cameAhead: Bool) async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=1000"))], freshness: .http)
        if !cameAhead {
            try await stage.session { cache in _ = try await cache.media(for: stage.url()).bytes() }
        }
        stage.pass(10 * .years)
        try await stage.session { cache in _ = try await cache.media(for: stage.url()).bytes() }
        stage.pass(-10 * .years)
        let changed = PatternBytes(seed: 2, length: 2_000_000)
        stage.origin.update("/a") {
            $0.content = .pattern(changed)
            $0.etag = "\"v2\""
        }
        // Long past any freshness, by a clock that is right.
        stage.pass(86400)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, changed, covers: 0..<changed.length)
        }
    }

    @Test("E60: a clock that stands years behind, and is then set right, leaves stored media usable")
    func behind() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=1000"))], freshness: .http)
        stage.pass(-10 * .years)
        try await stage.session { cache in _ = try await cache.media(for: stage.url()).bytes() }
        stage.pass(10 * .years)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        #expect(stage.origin.log.exchanges.last?.status == 304)
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
    }
}
