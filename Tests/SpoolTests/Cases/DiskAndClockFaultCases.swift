import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 59 and 60: disks that reject writes when a cache is opened, directories that other users can write to, and
/// wrong clocks.
@Suite(.timeLimit(.minutes(10)))
struct DiskAndClockFaultCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    static let refusals: [(Set<FaultyFileSystem.Call>, POSIXErrorCode)] = [
        ([.write, .createDirectory, .punchHole, .synchronize], .ENOSPC),
        ([.lock, .write, .createDirectory, .punchHole, .synchronize, .rename, .remove], .EROFS),
    ]

    @Test(
        "E59: complete media plays from a full or read-only disk; other media plays uncached, and one notice is shown",
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
        disk.clearFaults()
        try await stage.checkComplete(Self.song)
    }

    @Test(
        "E59: a directory that other users can write to is rejected with an error that contains its path",
        arguments: [0o777, 0o702])
    func writableByOthers(_ mode: Int) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { _ in }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: stage.directory)
        let error = await #expect(throws: CacheError.self) { await (try stage.open()).close() }
        #expect(error?.message.contains(stage.directory) == true)
    }

    @Test(
        "E59: a directory that belongs to another user is rejected with an error that contains its path",
        .enabled(if: geteuid() == 0))
    func ownedByAnother() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { _ in }
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: stage.directory)
        let error = await #expect(throws: CacheError.self) { await (try stage.open()).close() }
        #expect(error?.message.contains(stage.directory) == true)
    }

    @Test(
        "E60: media used while the clock was years ahead is evicted before media used later")
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

    @Test("E60: media that is used again after the clock was set back counts as used at the corrected time")
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
        "E60: media received or revalidated while the clock was years ahead is not fresh for years",
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
        // According to the correct clock, the media has been stale for a long time.
        stage.pass(86400)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, changed, covers: 0..<changed.length)
        }
    }

    @Test("E60: media stored while the clock was years behind is usable after the clock is corrected")
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
