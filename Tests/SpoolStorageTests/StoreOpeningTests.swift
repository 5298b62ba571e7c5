import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Opening a store: rejected directories, repairs, and checks that are postponed.
@Suite("Store: opening", .timeLimit(.minutes(10)))
struct StoreOpeningTests {
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func openError(_ body: () async throws -> Store) async -> CacheError? {
        await #expect(throws: CacheError.self) { _ = try await body() }
    }

    @Test("E58: an invalid configuration is rejected when the store is opened")
    func configuration() async throws {
        for open in [
            { try await fixture.open(capacity: -1) }, { try await fixture.open(memoryLimit: 0) },
            { try await fixture.open(memoryLimit: 1 << 20 - 1) }, { try await fixture.open(openFileLimit: 7) },
        ] as [@Sendable () async throws -> Store] {
            let error = await openError(open)
            #expect(error?.code == .invalidArgument)
        }
        #expect(!FileManager.default.fileExists(atPath: fixture.path))
        try await fixture.open(capacity: 0, memoryLimit: 1 << 20, openFileLimit: 8).close()
    }

    @Test("C36: opening a directory in use fails with an error that names the process, but inspecting it succeeds")
    func inUse() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        try await store.flush()
        let error = await openError { try await fixture.open() }
        #expect(error?.code == .directoryInUse)
        #expect(error?.message.contains("process \(ProcessInfo.processInfo.processIdentifier) (") == true)
        #expect(try await Store.inspect(path: fixture.path).count == 1)
        try await store.close()
        try await fixture.open().close()
        let none = await #expect(throws: CacheError.self) { _ = try await Store.inspect(path: "/nonexistent") }
        #expect(none?.code == .notStored)
    }

    @Test("A store that is released without being closed unlocks its directory, and its media can be read later")
    func releaseBytes() async throws {
        var store: Store? = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: #require(store))
        try await store?.flush()
        await store?.waitUntilIdle()
        store = nil
        let again = try await fixture.open()
        let lease = try #require(try await again.lease(key))
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        try await again.checkLedger()
        try await again.close()
    }

    @Test("E59: a directory that another user owns or can write to is rejected, and the error states the reason")
    func foreign() async throws {
        try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: true)
        for mode in [0o770, 0o702, 0o777] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: fixture.path)
            let error = await openError { try await fixture.open() }
            #expect(error?.message.contains("other users may write") == true)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: fixture.path)
        try await fixture.open().close()
        let owned = OwnedFiles(owner: 4711)
        let error = await openError {
            try await Store.open(
                path: fixture.path, fileSystem: owned, clock: CacheClock(clock: fixture.clock), report: { _ in })
        }
        #expect(error?.message.contains("another user (UID 4711)") == true)
        try "x".write(toFile: fixture.scratch.file("file"), atomically: false, encoding: .utf8)
        let file = await openError {
            try await Store.open(
                path: fixture.scratch.file("file"), clock: CacheClock(clock: fixture.clock), report: { _ in })
        }
        #expect(file?.message.contains("not a directory") == true)
    }

    @Test(
        "E59: on a read-only or full disk, stored media plays, new media stays in memory, and one notice reports this",
        arguments: [POSIXErrorCode.EROFS, .ENOSPC], [true, false])
    func readOnly(_ code: POSIXErrorCode, isClean: Bool) async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: first)
        try await first.close()
        if !isClean { try fixture.recordUncleanEnd() }
        let before = try Data(contentsOf: URL(fileURLWithPath: fixture.path + "/catalog.sqlite"))
        let writing: Set<FaultyFileSystem.Call> =
            code == .EROFS ? [.createDirectory, .lock, .write, .punchHole, .remove, .rename] : [.write]
        fixture.files.fail(writing, with: .error(code))
        let store = try await fixture.open()
        #expect(store.readOnlyReason?.posixCode == code && store.notices.count == 1)
        let lease = try #require(try await store.lease(key))
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        let new = try fixture.begin("b", length: 2 * block, in: store)
        try await fixture.store(0..<2 * block, of: "b", in: new.generation)
        try fixture.expect(0..<2 * block, of: "b", in: new.generation)
        #expect(store.usedMemory == 2 * block)
        store.recordUse(of: key)
        #expect(try await store.resources().count == 1)
        #expect(try await store.verify(repairing: false).blockCount == 3)
        await #expect(throws: CacheError.self) { _ = try await store.remove(key) }
        await #expect(throws: CacheError.self) { try await store.evict(to: 0) }
        lease.end()
        new.end()
        try await store.checkLedger()
        #expect(store.leaseCount == 0 && fixture.events.all.isEmpty)
        try await store.close()
        fixture.files.clearFaults()
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path + "/catalog.sqlite")) == before)
        let again = try await fixture.open()
        try await again.checkLedger()
        #expect(again.usedBytes == 3 * block && again.readOnlyReason == nil)
        try await again.close()
    }

    @Test("E59: on a read-only disk, a catalog with an incomplete transaction is not used")
    func brokenOffChange() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: first)
        try await first.close()
        let catalog = fixture.path + "/catalog.sqlite"
        // This creates the state that remains after a disk rejected the write-ahead log and then some pages.
        let queue = try DatabaseQueue(path: catalog)
        let journal = try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE")
            try db.execute(sql: "UPDATE setting SET value = 7 WHERE name = 'storedBytes'")
            let journal = try Data(contentsOf: URL(fileURLWithPath: catalog + "-journal"))
            try db.execute(sql: "COMMIT")
            return journal
        }
        try queue.close()
        try journal.write(to: URL(fileURLWithPath: catalog + "-journal"))
        fixture.files.fail([.createDirectory, .lock, .write, .punchHole, .remove, .rename], with: .error(.EROFS))
        let store = try await fixture.open()
        #expect(store.usedBytes == 0 && store.notices.count == 1)
        #expect(try await store.lease(key) == nil)
        try await store.close()
        fixture.files.clearFaults()
        let again = try await fixture.open()
        try await again.checkLedger()
        #expect(again.usedBytes == 3 * block)
        try await again.close()
    }

    @Test("E59: if the directory is missing and cannot be created, all media plays from memory")
    func nothingThere() async throws {
        fixture.files.fail([.createDirectory, .lock, .write], with: .error(.EROFS))
        let store = try await fixture.open()
        #expect(store.notices.count == 1 && store.usedBytes == 0)
        #expect(try await store.lease(key) == nil)
        let lease = try fixture.begin("a", length: 2 * block, in: store)
        try await fixture.store(0..<2 * block, of: "a", in: lease.generation)
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        #expect(try await store.resources().isEmpty)
        try await store.checkLedger()
        try await store.close()
        #expect(!FileManager.default.fileExists(atPath: fixture.path))
    }

    @Test("C33: after an unclean shutdown, orphaned files are removed, and opening a file frees its unclaimed bytes")
    func uncleanEnd() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: first)
        try await first.close()
        let path = try fixture.filledFile()
        // The bytes were stored, but the process was killed before it recorded their checksums.
        let file = try SystemFileSystem().openFile(path, .readWrite)
        try [UInt8](repeating: 7, count: 300_000).withUnsafeBytes { try file.write($0, at: 2 * block) }
        let folder = fixture.path + "/media/ab"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let orphan = folder + "/ab" + String(repeating: "0", count: 30) + ".media"
        for path in [orphan, folder + "/notes.txt"] {
            try "x".write(toFile: path, atomically: false, encoding: .utf8)
        }
        try fixture.recordUncleanEnd()
        let store = try await fixture.open()
        await store.waitUntilIdle()
        #expect(!FileManager.default.fileExists(atPath: orphan))
        #expect(FileManager.default.fileExists(atPath: folder + "/notes.txt"))
        #expect(try file.size() > 2 * block)
        let lease = try #require(try await store.lease(key))
        await store.waitUntilIdle()
        #expect(try file.size() == 2 * block)
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "After an unclean shutdown, recorded blocks without bytes on disk are discarded when their file is opened",
        arguments: [false, true])
    func claimsWithoutBytes(_ isFileGone: Bool) async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 6 * block, in: first)
        try await first.close()
        let path = try fixture.filledFile()
        if isFileGone {
            try FileManager.default.removeItem(atPath: path)
        } else {
            // The bytes were evicted, but the process was killed before it recorded that.
            let file = try SystemFileSystem().openFile(path, .readWrite)
            for range in [Block.range(of: 1), 4 * block..<6 * block] { try file.punchHole(range) }
        }
        try fixture.recordUncleanEnd()
        let store = try await fixture.open()
        #expect(store.usedBytes == 6 * block)
        let lease = try #require(try await store.lease(key))
        await store.waitUntilIdle()
        let kept: ByteRangeSet = isFileGone ? [] : [0..<65536, 131072..<262144]
        #expect(lease.generation.storedRanges == kept)
        #expect(store.usedBytes == kept.byteCount)
        let lost = fixture.events.invalidated.reduce(Int64(0)) { $0 + Int64($1.count) }
        #expect(lost == 6 * block - kept.byteCount)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A cleanup that failed is repeated after the store is reopened")
    func sweepGoesOn() async throws {
        try await fixture.open().close()
        try fixture.recordUncleanEnd()
        let folder = fixture.path + "/media/ab"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let orphan = folder + "/ab" + String(repeating: "0", count: 30) + ".media"
        try "x".write(toFile: orphan, atomically: false, encoding: .utf8)
        fixture.files.fail([.remove], with: .error(.EIO))
        let store = try await fixture.open()
        await store.waitUntilIdle()
        #expect(fixture.events.warnings.count == 1)
        try? await store.close()
        fixture.files.clearFaults()
        let again = try await fixture.open()
        await again.waitUntilIdle()
        #expect(!FileManager.default.fileExists(atPath: orphan))
        try await again.close()
    }

    @Test("C40: a damaged catalog is renamed with a notice, and its media files are removed")
    func damagedCatalog() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: block, in: first)
        try await first.close()
        try Data(repeating: 0x5A, count: 5000).write(to: URL(fileURLWithPath: fixture.path + "/catalog.sqlite"))
        let store = try await fixture.open()
        #expect(store.notices.count == 1 && store.notices[0].contains("set aside"))
        #expect(store.usedBytes == 0)
        #expect(try await store.lease(key) == nil)
        try await store.checkLedger()
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    @Test(
        "A cache directory from an earlier version of Spool is rejected with an error, and is not changed",
        arguments: [["1"], ["1", "2", "3", "offline", "4", "5", "6"], ["7"]])
    func earlierVersion(versions: [String]) async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await store.close()
        let queue = try DatabaseQueue(path: fixture.path + "/catalog.sqlite")
        try await queue.write { db in
            try db.execute(sql: "DELETE FROM grdb_migrations")
            for version in versions {
                try db.execute(sql: "INSERT INTO grdb_migrations VALUES (?)", arguments: [version])
            }
        }
        try queue.close()
        for open in [{ _ = try await fixture.open() }, { _ = try await Store.inspect(path: fixture.path) }] {
            for _ in 0..<2 {
                let error = await #expect(throws: CacheError.self) { try await open() }
                #expect(error?.code == .storage)
                let message = try #require(error?.message)
                #expect(message.contains("“\(fixture.path)/catalog.sqlite” was written by an earlier version of Spool"))
                #expect(message.contains("remove the cache directory"))
            }
        }
        #expect(fixture.mediaFiles.count == 1)
        #expect(!FolderTree.paths(under: fixture.path).contains { $0.contains("damaged") })
        let count = try await DatabaseQueue(path: fixture.path + "/catalog.sqlite").read {
            try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM block")
        }
        #expect(count == 2)
    }

    @Test("A version in an unknown format is not readable, stays on disk, and can be evicted")
    func unknownFormat() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: first)
        try await first.close()
        let queue = try DatabaseQueue(path: fixture.path + "/catalog.sqlite")
        try await queue.write { try $0.execute(sql: "UPDATE generation SET format = 2") }
        try queue.close()
        let store = try await fixture.open()
        #expect(try await store.lease(key) == nil)
        #expect(store.usedBytes == 2 * block)
        _ = try await store.verify(repairing: true)
        try await store.checkLedger()
        #expect(store.usedBytes == 2 * block)
        try await store.evict(to: block)
        #expect(store.usedBytes == 0)
        try await store.checkLedger()
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    @Test("E57: closing a store with a thousand transfers in progress does not open, read or write their files")
    func closingManyOpen() async throws {
        let store = try await fixture.open()
        var leases: [Lease] = []
        for number in 0..<1000 {
            let lease = try fixture.begin("\(number)", length: 2 * block, in: store)
            try await fixture.store(0..<block + 500, of: "\(number)", in: lease.generation, ending: false)
            leases.append(lease)
        }
        #expect(store.openFileCount <= 256)
        let before = fixture.files.counts
        try await store.close()
        let after = fixture.files.counts
        for call in [.open, .read, .write, .size] as [FaultyFileSystem.Call] { #expect(after[call] == before[call]) }
        #expect(after[.synchronize, default: 0] - before[.synchronize, default: 0] <= 1)
        #expect(after[.mark, default: 0] - before[.mark, default: 0] <= 256)
        leases = []
        let again = try await fixture.open()
        #expect(again.usedBytes == 1000 * (block + 500))
        try await again.checkLedger()
        try await again.close()
    }

    @Test("E60: once a clock that was wrong by years is corrected, the eviction order and times of use are correct")
    func calendarJumps() async throws {
        let store = try await fixture.open()
        for name in ["a", "b", "c", "d"] { try await fixture.store(name, length: block, in: store) }
        func use(_ name: String, years: Double) {
            fixture.calendar.withLock { $0 += years * 31_557_600 }
            store.recordUse(of: StoreFixture.key(name))
        }
        use("b", years: 20)
        use("c", years: 0)
        await store.waitUntilIdle()
        use("a", years: -20)
        await store.waitUntilIdle()
        use("d", years: 0)
        try await store.flush()
        let now = Date(timeIntervalSince1970: fixture.calendar.withLock { $0 })
        let order = try await store.resources().sorted { $0.lastUsedAt < $1.lastUsedAt }
        #expect(order.map(\.url) == ["b", "c", "a", "d"].map(StoreFixture.url))
        #expect(order.allSatisfy { abs($0.lastUsedAt.timeIntervalSince(now)) < 60 })
        // The wrong time can also be detected when the store is opened again.
        use("d", years: 10)
        try await store.close()
        fixture.calendar.withLock { $0 -= 10 * 31_557_600 }
        let again = try await fixture.open()
        await again.waitUntilIdle()
        #expect(try await again.resources().allSatisfy { abs($0.lastUsedAt.timeIntervalSince(now)) < 60 })
        again.recordUse(of: key)
        try await again.evict(to: block)
        #expect(try await again.resources().map(\.key) == [key])
        try await again.checkLedger()
        try await again.close()
    }
}

/// The real file system, but with another user as the owner of all files.
private struct OwnedFiles: FileSystem {
    let owner: UInt32
    private let base = SystemFileSystem()

    init(owner: UInt32) { self.owner = owner }

    func attributes(_ path: String) throws(CacheError) -> FileAttributes? {
        var attributes = try base.attributes(path)
        attributes?.owner = owner
        return attributes
    }
    func createDirectory(_ path: String) throws(CacheError) { try base.createDirectory(path) }
    func protectDirectory(_ path: String) -> [CacheError] { base.protectDirectory(path) }
    func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        try base.openFile(path, access)
    }
    func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? { try base.lockFile(path) }
    func remove(_ path: String) throws(CacheError) -> Bool { try base.remove(path) }
    func rename(_ path: String, to newPath: String) throws(CacheError) { try base.rename(path, to: newPath) }
    func list(_ path: String) throws(CacheError) -> [String] { try base.list(path) }
    func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace { try base.volumeSpace(at: path) }
}
