import Foundation
import HTTPTypes
import Logging
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 54–56: however bytes are removed, they are counted once. Each session ends with a check of the counts.
@Suite(.timeLimit(.minutes(10)))
struct SpaceAccountCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)
    static let changed = PatternBytes(seed: 2, length: 2_500_000)

    @Test("E54: concurrent removals of one resource release its bytes only once")
    func removedAtOnce() async throws {
        let stage = try MemoryStage([:])
        try await stage.session { cache in
            for round in 0..<30 {
                for path in ["/gone\(round)", "/kept\(round)"] {
                    stage.origin.set(path, .pattern(200_000))
                    _ = try await cache.media(for: stage.url(path)).bytes()
                }
                await cache.waitUntilIdle()
                let key = cache.key(for: stage.url("/gone\(round)"))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 { group.addTask { try await cache.remove(key) } }
                    try await group.waitForAll()
                }
                await cache.waitUntilIdle()
                try await cache.checkLedger()
                #expect(cache.storedByteCount == Int64(round + 1) * 200_000)
            }
        }
    }

    @Test("E54: if a resource is removed while it is being opened, the byte counts remain correct")
    func removedWhileOpening() async throws {
        let disk = WatchedFileSystem()
        let stage = try MemoryStage(["/a": .pattern(3_000_000)], disk: disk)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<1_000_000), Self.song)
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await disk.hold(.open, in: { try await media.load() }, during: { try await cache.remove(media.key) })
            try await media.check(.bytes(0..<500_000), Self.song)
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            await media.waitUntilIdle()
            try await cache.checkLedger()
        }
        // Bytes that were fetched after the removal may be stored or not, but they are correct.
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }

    @Test("E54: if a version is discarded while another transfer starts its successor, the successor is complete")
    func invalidatedBesideItsSuccessor() async throws {
        let (begun, mayBegin) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
        let isFirst = Mutex(true)
        let stage = try MemoryStage(["/a": .pattern(3_000_000)]) { configuration in
            configuration.logger = Logger(label: "spool.tests") { _ in
                HookedLog { message in
                    guard message.contains("changed"), isFirst.withLock({ $0.take() }) else { return }
                    // The reader has detected that the stored version was replaced. The successor may start now.
                    mayBegin.continuation.finish()
                    _ = begun.wait(timeout: .now() + 1)
                }
            }
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<60_000), Self.song)
        }
        stage.origin.update("/a") {
            $0.content = .pattern(Self.changed)
            $0.etag = "\"v2\""
        }
        let isUnanswered = Mutex(true)
        stage.origin.script("/a") { request, _ in
            let range = request.headerFields[.range] ?? ""
            if range.hasPrefix("bytes=1048576"), isUnanswered.withLock({ $0.take() }) {
                try await stage.origin.log.wait {
                    $0.contains { $0.requestedRange?.hasPrefix("bytes=2031616") == true }
                }
                let fields: HTTPFields = [.contentRange: "bytes */\(Self.changed.length)"]
                return .init(HTTPResponse(status: .rangeNotSatisfiable, headerFields: fields), .data(Data()))
            }
            if range.hasPrefix("bytes=2031616") {
                for await _ in mayBegin.stream {}
            }
            return nil
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await media.check(.bytes(1_048_576..<1_048_600), Self.changed) }
                group.addTask {
                    try await media.check(.bytes(2_031_616..<2_031_700), Self.changed)
                    begun.signal()
                }
                try await group.waitForAll()
            }
            stage.origin.script("/a", nil)
            try await media.check(.all, Self.changed, covers: 0..<Self.changed.length)
        }
        try await stage.checkComplete(Self.changed)
    }

    enum Finder: CaseIterable { case play, repair, export }

    @Test(
        "E54: the bytes of damaged blocks that a read, a repair or an export finds are released",
        arguments: Finder.allCases)
    func lostBlocks(_ finder: Finder) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        let path = try #require(mediaFiles(in: stage.directory).first)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 1 << 20)
        try file.seek(toOffset: 5 * 65536 + 5)
        try file.write(contentsOf: Data([1, 2, 3, 4]))
        try file.close()
        try await stage.session { cache in
            switch finder {
            case .play:
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            case .repair: #expect(try await cache.verify(repairing: true).discardedBlockCount > 0)
            case .export:
                await #expect(throws: CacheError.self) {
                    try await cache.media(for: stage.url()).export(to: URL(fileURLWithPath: stage.file("copy")))
                }
                // The export ends at the first damaged block. The repair finds the others.
                await cache.waitUntilIdle()
                #expect(cache.storedByteCount < Self.song.length)
                _ = try await cache.verify(repairing: true)
            }
            await cache.waitUntilIdle()
            try await cache.checkLedger()
            #expect(
                finder == .play ? cache.storedByteCount == Self.song.length : cache.storedByteCount < Self.song.length)
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try await stage.checkComplete(Self.song)
    }

    @Test("E54: a repair of an open resource releases the damaged blocks, and they are fetched again")
    func repairedWhileOpen() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            _ = try await cache.storedResources()
            let path = try #require(mediaFiles(in: stage.directory).max { $0.size < $1.size })
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            for block in 0..<40 as Range<UInt64> {
                try file.seek(toOffset: block * 65536 + 5)
                try file.write(contentsOf: Data([1, 2, 3, 4]))
            }
            try file.close()
            #expect(try await cache.verify(repairing: true).discardedBlockCount == 40)
            #expect(cache.storedByteCount == Self.song.length - 40 * 65536)
            try await cache.checkLedger()
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try await stage.checkComplete(Self.song)
    }

    @Test("E54: block records that could not be written are written later")
    func failedFlush() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let player = media.reader()
            try await player.check(Self.song, upTo: 1)
            _ = try await cache.storedResources()
            let other = try CatalogFault(stage.directory)
            try await other.refuseBlocks()
            try await player.check(Self.song)
            // This flush fails. Its error does not matter here.
            _ = try? await cache.storedResources()
            try await other.acceptBlocks()
        }
        try await stage.checkComplete(Self.song)
    }

    @Test(
        "E55: if the stored start of a block is unreadable, its bytes are fetched again, and playback continues",
        arguments: [1, 2, .max])
    func unreadablePrefix(times: Int) async throws {
        let disk = FaultyFileSystem()
        let stage = try MemoryStage(
            ["/a": OriginResource(.pattern(Self.song), rules: [.request(0, .truncate(after: 100_000))])], disk: disk)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<100_000), Self.song)
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).load()
            disk.fail([.read], with: .error(.EIO), times: times)
            try await cache.media(for: stage.url()).check(.from(100_000), Self.song, covers: 100_000..<Self.song.length)
            disk.clearFaults()
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(try await cache.verify(repairing: false).damagedBlockCount == 0)
        }
    }

    enum Deleted: CaseIterable { case content, folder }

    /// Deletes a directory as `rm -r` does, and tries again if a file is created in a directory that has just been
    /// emptied.
    private static func delete(_ path: String) throws {
        for _ in 0..<20 where (try? FileManager.default.removeItem(atPath: path)) != nil { return }
        try FileManager.default.removeItem(atPath: path)
    }

    @Test(
        "E56: if the directory of an open cache is deleted, media continues to play, and no unknown files remain",
        arguments: Deleted.allCases)
    func deletedBeneath(_ deleted: Deleted) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        let cache = try await stage.open()
        try await stage.flowing {
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<100_000), Self.song)
            switch deleted {
            case .content:
                for name in try FileManager.default.contentsOfDirectory(atPath: stage.directory) {
                    try Self.delete(stage.directory + "/" + name)
                }
            case .folder: try Self.delete(stage.directory)
            }
            for round in 0..<5 {
                stage.origin.set("/\(round)", .pattern(3_000_000))
                try await cache.media(for: stage.url("/\(round)")).check(.all, Self.song, covers: 0..<Self.song.length)
            }
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            await cache.close()
        }
        try await stage.session { cache in
            await cache.waitUntilIdle()
            let known = try await cache.storedResources().count
            // One file may have been created in advance.
            #expect(mediaFiles(in: stage.directory).count <= known + 1)
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }

    @Test("E56: an empty resource can be evicted, as can a resource that lost all its bytes while open")
    func emptyResidue() async throws {
        let stage = try MemoryStage(["/empty": .pattern(0), "/a": .pattern(3_000_000)])
        try await stage.session { cache in
            _ = try await cache.media(for: stage.url("/empty")).contentInformation()
            let media = cache.media(for: stage.url())
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            // The last block is not evicted until its transfer has ended.
            await media.waitUntilIdle()
            try await cache.evict(to: 0)
            #expect(cache.storedByteCount == 0)
        }
        try await stage.session { cache in
            try await cache.evict(to: 0)
            #expect(try await cache.storedResources().isEmpty)
        }
        #expect(mediaFiles(in: stage.directory).isEmpty)
    }
}

extension Bool {
    /// Returns the value, and sets it to `false`.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}

extension String {
    /// The size of the file at this path.
    fileprivate var size: Int {
        ((try? FileManager.default.attributesOfItem(atPath: self)[.size]) as? NSNumber)?.intValue ?? 0
    }
}
