import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Faults of disks and catalogs, and changes by other programs.
@Suite("Store: faults", .timeLimit(.minutes(10)))
struct StoreFaultTests {
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    @Test(
        "E51: after an unclean shutdown, checks and exports during playback neither report damage nor discard records")
    func verifyBesidePlayback() async throws {
        let length = 40 * block
        do {
            let first = try await fixture.open()
            try await fixture.store("a", length: length, in: first)
            try await first.close()
        }
        try fixture.recordUncleanEnd()
        // The system has also deleted the media file.
        try FileManager.default.removeItem(atPath: fixture.filledFile())
        let store = try await fixture.open()
        let lease = try #require(try await store.lease(key))
        #expect(throws: MissingBytes.self) { try lease.generation.read(0..<10) }
        #expect(lease.generation.storedRanges.isEmpty)
        let isDone = Flag()
        try await withThrowingTaskGroup(of: Void.self) { [fixture, key] group in
            group.addTask {
                for start in stride(from: 0, to: length, by: 70_000) {
                    try await fixture.store(
                        start..<min(length, start + 70_000), of: "a", in: lease.generation, ending: false)
                    try fixture.expect(0..<min(length, start + 70_000), of: "a", in: lease.generation)
                }
                lease.generation.endWriting(at: length)
                isDone.set()
            }
            group.addTask {
                while !isDone.isSet {
                    let found = try await store.verify(repairing: true)
                    #expect(found.damagedBlockCount == 0)
                    // In most cases, the export fails, because the resource is not complete yet.
                    try? await store.export(key, to: URL(fileURLWithPath: fixture.scratch.file("copy")))
                }
            }
            try await group.waitForAll()
        }
        try fixture.expect(0..<length, of: "a", in: lease.generation)
        try await store.export(key, to: URL(fileURLWithPath: fixture.scratch.file("copy")))
        let copy = try Data(contentsOf: URL(fileURLWithPath: fixture.scratch.file("copy")))
        #expect(Array(copy) == StoreFixture.bytes(0..<length, of: "a"))
        lease.end()
        #expect(fixture.events.warnings.isEmpty)
        try await store.checkLedger()
        #expect(store.usedBytes == length)
        try await store.close()
    }

    @Test(
        "E52: if a file cannot be opened, no bytes are discarded, and the next read succeeds",
        arguments: [POSIXErrorCode.EMFILE, .ENFILE, .EIO, .EACCES])
    func failedOpening(_ code: POSIXErrorCode) async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: first)
        try await first.close()
        let store = try await fixture.open()
        await store.waitUntilIdle()
        fixture.files.fail([.open], with: .error(code), times: 2)
        let lease = try #require(try await store.lease(key))
        let error = #expect(throws: CacheError.self) { try lease.generation.read(0..<10) }
        #expect(error?.posixCode == code)
        #expect(lease.generation.storedRanges == [0..<3 * block])
        fixture.files.clearFaults()
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        #expect(fixture.events.all.isEmpty && lease.generation.isKept)
        lease.end()
        try await store.checkLedger()
        #expect(store.usedBytes == 3 * block)
        try await store.close()
    }

    @Test("E52: if the catalog cannot be read, an error is thrown and no bytes are discarded")
    func failedCatalog() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: first)
        try await first.close()
        let store = try await fixture.open()
        try alterCatalog("ALTER TABLE generation RENAME TO away")
        await #expect(throws: CacheError.self) { try await store.lease(key) }
        try alterCatalog("ALTER TABLE away RENAME TO generation")
        let lease = try #require(try await store.lease(key))
        // The checksums of blocks are read from the catalog together with the blocks.
        try alterCatalog("ALTER TABLE block RENAME TO away")
        #expect(throws: CacheError.self) { try lease.generation.read(0..<10) }
        #expect(lease.generation.storedRanges == [0..<3 * block])
        try alterCatalog("ALTER TABLE away RENAME TO block")
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E54: after a failed flush, all records are retained, and are written once the catalog accepts them")
    func failedFlush() async throws {
        let store = try await fixture.open()
        try await fixture.store("before", length: block, in: store)
        try await store.flush()
        try alterCatalog("CREATE TRIGGER refuse BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let lease = try fixture.begin("a", length: 4 * block, in: store)
        try await fixture.store(0..<3 * block + 100, of: "a", in: lease.generation)
        await #expect(throws: CacheError.self) { try await store.flush() }
        // Changes between two attempts must be recorded in the right order.
        #expect(try await store.remove(StoreFixture.key("before")))
        await #expect(throws: CacheError.self) { try await store.flush() }
        try await fixture.store(3 * block + 100..<4 * block, of: "a", in: lease.generation)
        #expect(fixture.events.warnings.count == 1)
        try alterCatalog("DROP TRIGGER refuse")
        lease.end()
        try await store.checkLedger()
        try await store.close()
        let again = try await fixture.open()
        #expect(again.usedBytes == 4 * block)
        let reopened = try #require(try await again.lease(key))
        try fixture.expect(0..<4 * block, of: "a", in: reopened.generation)
        reopened.end()
        try await again.checkLedger()
        try await again.close()
    }

    @Test("E54: blocks that are evicted and stored again while the catalog rejects writes are recorded correctly")
    func evictedWhileRefused() async throws {
        let store = try await fixture.open(capacity: 64 * block)
        let user = TestUser()
        let lease = try fixture.begin("a", length: 8 * block, in: store, user: user)
        try await fixture.store(0..<8 * block, of: "a", in: lease.generation)
        try await store.flush()
        try alterCatalog("CREATE TRIGGER refuse BEFORE UPDATE ON generation BEGIN SELECT RAISE(ABORT, 'refused'); END")
        try await store.evict(to: 2 * block)
        #expect(store.usedBytes == 2 * block)
        await #expect(throws: CacheError.self) { try await store.flush() }
        try await fixture.store(0..<4 * block, of: "a", in: lease.generation)
        await #expect(throws: CacheError.self) { try await store.flush() }
        try await store.evict(to: 3 * block)
        try alterCatalog("DROP TRIGGER refuse")
        lease.end()
        try await store.checkLedger()
        #expect(store.usedBytes == 3 * block)
        #expect(try await store.resource(key)?.storedRanges.byteCount == 3 * block)
        try await store.close()
    }

    @Test("E412: a version whose recording failed halfway is recorded later, and the previous version is removed")
    func failedRecording() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", as: "old", length: 2 * block, in: store)
        try await store.flush()
        try alterCatalog("CREATE TRIGGER refuse BEFORE INSERT ON variant BEGIN SELECT RAISE(ABORT, 'refused'); END")
        let lease = try store.begin(
            key, url: StoreFixture.url("a"),
            description: GenerationDescription(length: 3 * block, contentType: "video/mp4", version: "new"),
            variantOf: [StoreFixture.key("b")])
        try await fixture.store(0..<3 * block, of: "new", in: lease.generation)
        await #expect(throws: CacheError.self) { try await store.flush() }
        try alterCatalog("DROP TRIGGER refuse")
        lease.end()
        await store.waitUntilIdle()
        #expect(store.usedBytes == 3 * block)
        try await store.checkLedger()
        try await store.close()
        let again = try await fixture.open()
        #expect(again.usedBytes == 3 * block)
        let reopened = try #require(try await again.lease(key))
        try fixture.expect(0..<3 * block, of: "new", in: reopened.generation)
        reopened.end()
        try await again.close()
    }

    @Test("E54: damaged blocks that a read, check or export finds count as missing, and are reported and released once")
    func badBlocks() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 30 * block, in: first)
        try await first.close()
        for index in [2, 25, 26] { try fixture.damage(fixture.filledFile(), at: Int64(index) * block + 77) }
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try #require(try await store.lease(key, user: user))
        // A check without repair changes nothing.
        #expect(try await store.verify(repairing: false).damagedBlockCount == 3)
        #expect(lease.generation.storedRanges == [0..<30 * block] && store.usedBytes == 30 * block)
        // A read that finds damage checks the next megabyte, too.
        let missing = #expect(throws: MissingBytes.self) { try lease.generation.read(block..<4 * block) }
        #expect(missing?.invalidated == [2 * block..<3 * block])
        #expect(user.state.withLock { $0.invalidated } == [2 * block..<3 * block])
        #expect(store.usedBytes == 29 * block)
        let error = await #expect(throws: CacheError.self) {
            try await store.export(key, to: URL(fileURLWithPath: fixture.scratch.file("copy")))
        }
        #expect(error?.code == .incomplete)
        let progress = Mutex((0, 0))
        let found = try await store.verify(repairing: true) { done, all in progress.withLock { $0 = (done, all) } }
        #expect(found.blockCount == 29 && found.damagedBlockCount == 2 && found.discardedBlockCount == 2)
        #expect(progress.withLock { $0.0 } == 29)
        #expect(store.usedBytes == 27 * block)
        let bad: [Range<Int64>] = [2, 25, 26].map { Block.range(of: $0) }
        #expect(user.state.withLock { $0.invalidated } == bad)
        try await fixture.store(0..<30 * block, of: "a", in: lease.generation)
        try fixture.expect(0..<30 * block, of: "a", in: lease.generation)
        // The next check also finds damage to blocks that were verified before.
        try fixture.damage(fixture.filledFile(), at: 9)
        #expect(try await store.verify(repairing: true).damagedBlockCount == 1)
        #expect(lease.generation.storedRanges == [block..<30 * block])
        lease.end()
        try await store.checkLedger()
        try await store.close()
        #expect(!FileManager.default.fileExists(atPath: fixture.scratch.file("copy")))
    }

    @Test(
        "E54: the lost blocks of a truncated or deleted file count as missing, and the byte counts are correct",
        arguments: [0, 3 * 65536 + 5, -1])
    func lostFile(size: Int64) async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 8 * block, in: first)
        try await first.close()
        let path = try fixture.filledFile()
        if size < 0 {
            try FileManager.default.removeItem(atPath: path)
        } else {
            try SystemFileSystem().openFile(path, .readWrite).punchHole(size..<Int64.max)
        }
        let store = try await fixture.open()
        _ = try await store.verify(repairing: true)
        let left = max(0, size) / block * block
        #expect(store.usedBytes == left)
        try await store.checkLedger()
        let lease = try #require(try await store.lease(key))
        try await fixture.store(left..<8 * block, of: "a", in: lease.generation)
        try fixture.expect(0..<8 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E54: if a check can't open a file, the report contains the numbers of discarded and unchecked blocks")
    func interruptedCheckUp() async throws {
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try fixture.begin("a", length: 4 * block, in: store, user: user)
        try await fixture.store(0..<4 * block, of: "a", in: lease.generation)
        try await store.flush()
        try FileManager.default.removeItem(atPath: fixture.filledFile())
        // The file for the next version is created in the background, which counts as an open call.
        await store.waitUntilIdle()
        fixture.files.fail([.open], with: .error(.EACCES), after: 2)
        let interrupted = try await store.verify(repairing: true)
        #expect(
            interrupted.damagedBlockCount == 2 && interrupted.discardedBlockCount == 2
                && interrupted.uncheckedBlockCount == 2)
        #expect(lease.generation.storedRanges == [2 * block..<4 * block])
        #expect(user.state.withLock { $0.invalidated } == [0..<block, block..<2 * block])
        fixture.files.clearFaults()
        #expect(try await store.verify(repairing: true).damagedBlockCount == 2)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E55: if the stored start of a block can't be read, it is discarded, and the whole block is stored again")
    func unreadablePrefix() async throws {
        let first = try await fixture.open()
        let part = try fixture.begin("a", length: 4 * block, in: first)
        try await fixture.store(0..<block + 5000, of: "a", in: part.generation)
        part.end()
        try await first.close()
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try #require(try await store.lease(key, user: user))
        let generation = lease.generation
        #expect(generation.storingOffset(for: 2 * block - 1) == block + 5000)
        // The file for the next version is created in the background, which reads the lock file.
        await store.waitUntilIdle()
        fixture.files.fail([.read], with: .error(.EIO), times: 1)
        let result = try await fixture.store(block + 5000..<4 * block, of: "a", in: generation)
        #expect(result == .prefixInvalidated(block..<block + 5000))
        #expect(user.state.withLock { $0.invalidated } == [block..<2 * block])
        #expect(generation.storedRanges == [0..<block])
        try await fixture.store(block..<4 * block, of: "a", in: generation)
        try fixture.expect(0..<4 * block, of: "a", in: generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("C35: after a read fails with EIO, the block is fetched again into memory, and one event reports the error")
    func unreadable() async throws {
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try fixture.begin("a", length: 4 * block, in: store, user: user)
        try await fixture.store(0..<4 * block, of: "a", in: lease.generation)
        await store.waitUntilIdle()
        fixture.files.fail([.read], with: .error(.EIO), times: 1)
        #expect(throws: MissingBytes.self) { try lease.generation.read(block..<block + 10) }
        #expect(user.state.withLock { $0.invalidated } == [block..<2 * block])
        #expect(fixture.events.notCached.count == 1 && !lease.generation.isKept)
        try await fixture.store(block..<2 * block, of: "a", in: lease.generation)
        #expect(lease.generation.storedInMemory == [block..<2 * block])
        #expect(lease.generation.storedPrefix(at: 0) == 0..<4 * block)
        try fixture.expect(0..<4 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        #expect(store.usedBytes == 3 * block && store.usedMemory == 0)
        try await store.close()
    }

    @Test(
        "C35: if disk access fails, bytes stay in memory, no disk space is claimed, and one event reports the error",
        arguments: [POSIXErrorCode.ENOSPC, .EIO, .EROFS, .EMFILE], [FaultyFileSystem.Call.write, .open])
    func refusingDisk(_ code: POSIXErrorCode, _ call: FaultyFileSystem.Call) async throws {
        let store = try await fixture.open()
        await store.waitUntilIdle()
        fixture.files.fail([call], with: .error(code))
        // This version uses the file that was created in advance.
        let unused = try fixture.begin("x", in: store)
        let lease = try fixture.begin("a", length: 4 * block, in: store)
        try await fixture.store(0..<4 * block, of: "a", in: lease.generation)
        try fixture.expect(0..<4 * block, of: "a", in: lease.generation)
        #expect(store.usedBytes == 0 && store.usedMemory == 4 * block)
        #expect(fixture.events.notCached.count == 1 && fixture.events.notCached.first?.posixCode == code)
        fixture.files.clearFaults()
        lease.end()
        unused.end()
        try await store.checkLedger()
        #expect(try await store.resources().isEmpty)
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    @Test("C35: a file that cannot be removed during one cleanup is removed during the next")
    func removalFailsDuringSweep() async throws {
        var store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        await store.waitUntilIdle()
        try await store.flush()
        try await store.close()
        let stored = try fixture.filledFile()
        // The cleanup visits this directory last. The test pauses the cleanup there.
        let folder = fixture.path + "/media/ff"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try fixture.recordUncleanEnd()
        let (isThere, mayGoOn) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
        fixture.files.decide { call, path in
            if call == .list, path == folder {
                isThere.continuation.finish()
                mayGoOn.wait()
            }
            return call == .remove && path == stored ? .error(.EIO) : nil
        }
        store = try await fixture.open()
        for await _ in isThere.stream {}
        _ = try await store.remove(key)
        mayGoOn.signal()
        await store.waitUntilIdle()
        #expect(FileManager.default.fileExists(atPath: stored), "the test removes nothing")
        fixture.files.clearFaults()
        try await store.close()
        store = try await fixture.open()
        await store.waitUntilIdle()
        #expect(!FileManager.default.fileExists(atPath: stored), "the file stays forever")
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E56: if the directory of an open store is deleted, bytes stay in memory, and no file remains after closing")
    func deletedDirectory() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        await store.waitUntilIdle()
        try FileManager.default.removeItem(atPath: fixture.path)
        // Another store creates the directory again.
        let other = try await Store.open(path: fixture.path, clock: CacheClock(clock: fixture.clock), report: { _ in })
        await other.waitUntilIdle()
        for number in 0..<5 {
            let lease = try fixture.begin("\(number)", length: 2 * block, in: store)
            try await fixture.store(0..<2 * block, of: "\(number)", in: lease.generation)
            try fixture.expect(0..<2 * block, of: "\(number)", in: lease.generation)
            lease.end()
        }
        // Closing may throw, because the store can't write, but the store is closed anyway.
        try? await store.close()
        try await other.checkLedger()
        try await other.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    private func alterCatalog(_ sql: String) throws {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(60)
        let queue = try DatabaseQueue(path: fixture.path + "/catalog.sqlite", configuration: configuration)
        try queue.write { db in
            try db.execute(sql: "PRAGMA legacy_alter_table = ON")
            try db.execute(sql: sql)
        }
        try queue.close()
    }
}
