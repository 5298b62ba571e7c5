import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolStorage

/// CASES E, 51–53: each media file has one owner, during every use and after every failure.
@Suite(.timeLimit(.minutes(10)))
struct FileOwnershipCases {
    static let film = PatternBytes(seed: 1, length: 6 << 20)
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test(
        "E51: after an unclean shutdown, a check that started before playback does not remove bytes stored later",
        arguments: [false, true])
    func checkBeforeAPlay(repairing: Bool) async throws {
        let disk = WatchedFileSystem()
        let stage = try MemoryStage(["/a": .pattern(6 << 20)], disk: disk)
        try await stage.sessionThatIsKilled { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<1 << 20), Self.film)
            try await cache.media(for: stage.url()).check(.bytes(3 << 20..<4 << 20), Self.film)
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let found = try await disk.hold(
                .punchHole, in: { try await cache.verify(repairing: repairing) },
                during: { try await media.check(.all, Self.film, covers: 0..<Self.film.length) })
            #expect(found.damagedBlockCount == 0)
            try await media.check(.all, Self.film, covers: 0..<Self.film.length)
            #expect(try await cache.verify(repairing: true).damagedBlockCount == 0)
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.film.length)
        try await stage.checkComplete(Self.film)
    }

    @Test("E51: after an unclean shutdown, a concurrent export is correct or fails, and playback is complete")
    func exportBesideAPlay() async throws {
        let disk = WatchedFileSystem()
        let stage = try MemoryStage(["/a": .pattern(6 << 20)], disk: disk)
        try await stage.sessionThatIsKilled { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film, covers: 0..<Self.film.length)
        }
        // Simulates that the end of the file was not written to disk before the shutdown.
        for path in mediaFiles(in: stage.directory) where try size(path) > 2 << 20 { try truncate(path, to: 2 << 20) }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await disk.hold(
                .size,
                in: {
                    let copy = URL(fileURLWithPath: stage.file("copy"))
                    do {
                        try await cache.media(for: stage.url()).export(to: copy)
                        try Self.film.verify(Data(contentsOf: copy), at: 0)
                    } catch let error as CacheError {
                        // Bytes that the file has lost cannot be exported until they are fetched again.
                        #expect([.incomplete, .storage].contains(error.code))
                    }
                },
                during: {
                    try await media.check(.all, Self.film, covers: 0..<Self.film.length)
                    await media.waitUntilIdle()
                    #expect(try await cache.storedResources().first?.isComplete == true)
                })
            try await media.check(.all, Self.film, covers: 0..<Self.film.length)
            #expect(try await cache.storedResources().first?.isComplete == true)
            #expect(try await cache.verify(repairing: true).damagedBlockCount == 0)
        }
        #expect(stage.origin.log.bytesSent("/a") == 10 << 20, "only the lost bytes are sent again")
        try await stage.checkComplete(Self.film)
    }

    @Test("E457: a late report of damage does not discard bytes that have been fetched again")
    func lateReport() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .drip(10_000, every: .seconds(1)))])
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let player = media.reader(chunkSize: 1000)
            _ = try await player.next()
            let store = try #require(cache.context.opening.openedStore)
            let generation = try #require(store.table.withLock { $0.lives.values.first?.generation })
            let report = { generation.recordInvalidated([0..<Block.size, 10 * Block.size..<11 * Block.size]) }
            // The transfer is in the middle of the first block.
            report()
            try await stage.flowing(stage.originClock) {
                try await media.check(.all, Self.song, covers: 0..<Self.song.length)
                await media.waitUntilIdle()
                report()
                try await media.check(.all, Self.song, covers: 0..<Self.song.length)
                await media.waitUntilIdle()
            }
            try await cache.checkLedger()
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
        try await stage.checkComplete(Self.song)
    }

    @Test("E51: after an unclean shutdown and a purge, checks during playback do not remove bytes that playback stored")
    func duringPlays() async throws {
        let paths = (0..<10).map { "/\($0)" }
        let stage = try MemoryStage(Dictionary(uniqueKeysWithValues: paths.map { ($0, .pattern(3_000_000)) }))
        try await stage.sessionThatIsKilled { cache in
            for path in paths { _ = try await cache.media(for: stage.url(path)).bytes() }
        }
        for path in mediaFiles(in: stage.directory) { try FileManager.default.removeItem(atPath: path) }
        for path in paths {
            stage.origin.update(path) { $0.rules = [.always(.drip(40_000, every: .milliseconds(3)))] }
        }
        try await stage.session { cache in
            try await stage.flowing(stage.originClock) {
                // The checks find that purged bytes are missing, but must not remove bytes that were stored later. The
                // checks end with playback.
                async let _: Void = {
                    while !Task.isCancelled { _ = try await cache.verify(repairing: false) }
                }()
                for path in paths {
                    let media = cache.media(for: stage.url(path))
                    try await media.check(.all, Self.song, covers: 0..<Self.song.length)
                    try await media.check(.all, Self.song, covers: 0..<Self.song.length)
                }
            }
            #expect(try await cache.verify(repairing: true).damagedBlockCount == 0)
        }
        for path in paths { try await stage.checkComplete(Self.song, path) }
    }

    @Test(
        "E52: if a file cannot be opened once, no stored bytes are lost",
        arguments: [POSIXErrorCode.EMFILE, .EIO])
    func transientOpen(code: POSIXErrorCode) async throws {
        let disk = FaultyFileSystem()
        let stage = try MemoryStage(["/a": .pattern(3_000_000)], disk: disk)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try await stage.session { cache in
            disk.fail([.open], with: .error(code), times: 1)
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            await cache.waitUntilIdle()
            #expect(cache.storedByteCount == Self.song.length)
        }
        try await stage.checkComplete(Self.song)
        #expect(stage.origin.log.bytesSent("/a") <= 2 * Self.song.length)
    }

    @Test("E52: if the catalog is busy while a resource is opened, no stored bytes are lost")
    func busyCatalog() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.sessionThatIsKilled { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try await stage.session { cache in
            let other = try CatalogFault(stage.directory)
            try await other.lock()
            do {
                let media = cache.media(for: stage.url())
                try await media.load()
                try await other.unlock()
                try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            }
            await cache.waitUntilIdle()
            #expect(cache.storedByteCount == Self.song.length)
        }
        try await stage.checkComplete(Self.song)
    }

    @Test(
        "E53: if a resource is released and reopened during a transfer, no byte is fetched twice")
    func oneScheduler() async throws {
        let short = PatternBytes(seed: 1, length: 200_000)
        let stage = try MemoryStage([:])
        try await stage.session(isFlowing: false) { cache in
            for round in 0..<12 {
                let path = "/\(round)"
                stage.origin.set(path, .pattern(200_000, .drip(10_000, every: .seconds(1))))
                var media: MediaResource? = cache.media(for: stage.url(path))
                var player = media?.reader(chunkSize: 1000)
                _ = try await player?.next()
                player = nil
                media = nil
                _ = cache.media(for: stage.url(path)).key
                try await stage.flowing(stage.originClock) {
                    // Resources that are closing have time to close while more bytes are received.
                    try await stage.origin.log.wait { exchanges in
                        exchanges.filter { $0.path == path }.allSatisfy { $0.isOver || $0.bytesSent >= 40_000 }
                    }
                    try await cache.media(for: stage.url(path)).check(.all, short, covers: 0..<short.length)
                    await cache.waitUntilIdle()
                }
                #expect(stage.origin.log.bytesSent(path) == short.length, "round \(round)")
                try await cache.checkLedger()
            }
        }
    }

    private func size(_ path: String) throws -> Int64 {
        (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.int64Value ?? 0
    }

    private func truncate(_ path: String, to size: UInt64) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: size)
        try file.close()
    }
}
