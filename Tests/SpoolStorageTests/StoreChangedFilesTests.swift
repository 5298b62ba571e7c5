import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Media files that another program has changed, removed or created.
@Suite("Store: changed files", .timeLimit(.minutes(10)))
struct StoreChangedFilesTests {
    private let fixture: StoreFixture
    private let size = 3 * Block.size

    init() throws { fixture = try StoreFixture() }

    @Test("C34: taking a slice of a file that was removed while it was closed reports missing bytes")
    func sliceOfARemovedFile() async throws {
        let store = try await fixture.open(openFileLimit: 8)
        let user = TestUser()
        let lease = try fixture.begin("a", length: size, in: store, user: user)
        try await fixture.store(0..<size, of: "a", in: lease.generation)
        try FileManager.default.removeItem(atPath: fixture.filledFile())
        // Other files reuse the descriptors.
        var others: [Lease] = []
        for number in 0..<20 {
            let other = try fixture.begin("\(number)", length: size, in: store)
            try await fixture.store(0..<size, of: "\(number)", in: other.generation)
            others.append(other)
        }
        #expect(throws: MissingBytes.self) { try lease.generation.slice(0..<size) }
        #expect(lease.generation.storedRanges.isEmpty)
        #expect(user.state.withLock { $0.invalidated } == [0..<size])
        for lease in others + [lease] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("C34: taking a slice of a file that was truncated after an earlier slice reports missing bytes")
    func sliceOfAShorterFile() async throws {
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try fixture.begin("a", length: size, in: store, user: user)
        try await fixture.store(0..<size, of: "a", in: lease.generation)
        #expect(try lease.generation.slice(0..<size).count == Int(size))
        #expect(truncate(try fixture.filledFile(), off_t(Block.size + 5)) == 0)
        #expect(try lease.generation.slice(0..<Block.size).count == Int(Block.size))
        #expect(throws: MissingBytes.self) { try lease.generation.slice(0..<size) }
        #expect(user.state.withLock { $0.invalidated } == [Block.size..<size])
        #expect(lease.generation.storedRanges == [0..<Block.size])
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E174: changes to stored bytes of an open file are detected by a read one day later", arguments: [false, true])
    func changedWhileOpen(isSlice: Bool) async throws {
        let store = try await fixture.open()
        let user = TestUser()
        let lease = try fixture.begin("a", length: size, in: store, user: user)
        try await fixture.store(0..<size, of: "a", in: lease.generation)
        try await store.flush()
        try fixture.damage(try fixture.filledFile(), at: Block.size + 5)
        fixture.clock.advance(by: StoredBlocks.trustTime)
        #expect(lease.generation.dataIfAvailable(at: 0, count: 100) == nil)
        #expect(lease.generation.sliceIfAvailable(0..<100, holding: lease) == nil)
        if isSlice {
            #expect(throws: MissingBytes.self) { try lease.generation.slice(0..<size) }
        } else {
            #expect(throws: MissingBytes.self) { try lease.generation.read(0..<size) }
        }
        #expect(user.state.withLock { $0.invalidated } == [Block.range(of: 1)])
        #expect(lease.generation.storedRanges == [0..<Block.size, 2 * Block.size..<size])
        // The other blocks were verified again, and can be read without waiting.
        try fixture.expect(0..<Block.size, of: "a", in: lease.generation)
        #expect(lease.generation.dataIfAvailable(at: 0, count: 100) != nil)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E174: changes to a closed file are detected when it is opened again in the same process")
    func changedWhileClosed() async throws {
        let store = try await fixture.open(openFileLimit: 8)
        let lease = try fixture.begin("a", length: size, in: store)
        try await fixture.store(0..<size, of: "a", in: lease.generation)
        try await store.flush()
        try fixture.damage(try fixture.filledFile(), at: 5)
        // Other files reuse the descriptors.
        var others: [Lease] = []
        for number in 0..<20 as Range<Int> {
            let other = try fixture.begin("\(number)", length: size, in: store)
            try await fixture.store(0..<size, of: "\(number)", in: other.generation)
            others.append(other)
        }
        #expect(throws: MissingBytes.self) { try lease.generation.read(0..<size) }
        #expect(lease.generation.storedRanges == [Block.size..<size])
        for lease in others + [lease] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E174: blocks that are growing or not recorded yet are still readable after a day")
    func uncheckableAfterReopening() async throws {
        let store = try await fixture.open(openFileLimit: 8)
        let lease = try fixture.begin("a", length: size, in: store)
        let half = Block.size + Block.size / 2
        // Nothing is written to the catalog, because the clock does not advance. The second block has no checksum yet.
        try await fixture.store(0..<half, of: "a", in: lease.generation, ending: false)
        for _ in 0..<3 as Range<Int> {
            fixture.clock.advance(by: StoredBlocks.trustTime)
            try fixture.expect(0..<half, of: "a", in: lease.generation)
        }
        try await fixture.store(half..<half + 100, of: "a", in: lease.generation, ending: false)
        try fixture.expect(0..<half + 100, of: "a", in: lease.generation)
        try await fixture.store(half + 100..<size, of: "a", in: lease.generation)
        fixture.clock.advance(by: StoredBlocks.trustTime)
        try fixture.expect(0..<size, of: "a", in: lease.generation)
        #expect(fixture.events.invalidated.isEmpty)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E173: a file that temporarily can't be opened is read again later")
    func passedOver() async throws {
        let store = try await fixture.open()
        let lease = try fixture.begin("a", length: size, in: store)
        try await fixture.store(0..<size, of: "a", in: lease.generation)
        lease.generation.skipDisk(CacheError(.storage, "too many open files"))
        #expect(lease.generation.storedRanges.isEmpty && !lease.generation.isKept)
        #expect(
            lease.generation.storedPrefix(at: 0) == nil && lease.generation.dataIfAvailable(at: 0, count: 100) == nil)
        fixture.clock.advance(by: Generation.retryTime)
        #expect(lease.generation.isKept && lease.generation.storedRanges == [0..<size])
        try fixture.expect(0..<size, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A pipe with the name of a media file is rejected without waiting for a process at its other end")
    func noFile() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: size, in: store)
        try await store.close()
        let path = try fixture.filledFile()
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        for access in [FileAccess.read, .readWrite, .create] {
            let error = #expect(throws: CacheError.self) { try SystemFileSystem().openFile(path, access) }
            #expect(error?.code == .storage)
        }
    }

    @Test(
        "A link with a media file's name counts as damaged; checks continue with other files, and a repair removes it")
    func verifyingPastNoFile() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * Block.size, in: first)
        try await first.flush()
        let path = try fixture.filledFile()
        try await fixture.store("b", length: 2 * Block.size, in: first)
        try await first.close()
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
        let store = try await fixture.open()
        func check(_ repairing: Bool, _ blocks: Int, _ bad: Int, _ dropped: Int) async throws {
            let found = try await store.verify(repairing: repairing)
            #expect(
                found.blockCount == blocks && found.damagedBlockCount == bad && found.discardedBlockCount == dropped)
        }
        try await check(false, 5, 3, 0)
        try await check(true, 5, 3, 3)
        #expect(try await store.resources().map(\.url) == [StoreFixture.url("b")])
        try await check(true, 2, 0, 0)
        await store.waitUntilIdle()
        #expect(!FileManager.default.fileExists(atPath: path))
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "If a file can't be opened, a check continues with other files, and reports the unchecked blocks and the cause")
    func verifyingPastUnopenable() async throws {
        let first = try await fixture.open()
        try await fixture.store("a", length: 3 * Block.size, in: first)
        try await first.flush()
        let path = try fixture.filledFile()
        try await fixture.store("b", length: 2 * Block.size, in: first)
        try await first.flush()
        try await first.close()
        let other = fixture.mediaFiles.map { fixture.path + "/media/" + $0 }.first {
            $0 != path && (try? SystemFileSystem().openFile($0, .read).size()) ?? 0 > 0
        }
        try fixture.damage(try #require(other), at: 10)
        let store = try await fixture.open()
        fixture.files.decide { call, opened in call == .open && opened == path ? .error(.EPERM) : nil }
        for repairing in [false, true] {
            let found = try await store.verify(repairing: repairing)
            #expect(
                found.blockCount == 2 && found.damagedBlockCount == 1
                    && found.discardedBlockCount == (repairing ? 1 : 0))
            #expect(found.uncheckedBlockCount == 3)
            let cause = try #require(found.uncheckedCause)
            #expect(cause.contains(path) && cause.contains("not permitted"), "\(cause)")
        }
        // The check did not discard any blocks of the file.
        fixture.files.clearFaults()
        let found = try await store.verify(repairing: false)
        #expect(
            found.blockCount == 4 && found.damagedBlockCount == 0 && found.uncheckedBlockCount == 0
                && found.uncheckedCause == nil)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A file that a cleanup can't remove does not stop the cleanup")
    func sweep() async throws {
        try await fixture.open().close()
        let names = ["00", "ff"].map { String(repeating: $0, count: 16) }
        for name in names {
            let folder = fixture.path + "/media/" + name.prefix(2)
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        // The cleanup visits this directory before the orphan, because it is first in the sorted order.
        try FileManager.default.createDirectory(
            atPath: fixture.path + "/media/00/\(names[0]).media", withIntermediateDirectories: true)
        let orphan = fixture.path + "/media/ff/\(names[1]).media"
        #expect(FileManager.default.createFile(atPath: orphan, contents: Data(count: 1000)))
        try fixture.recordUncleanEnd()
        let store = try await fixture.open()
        await store.waitUntilIdle()
        #expect(!FileManager.default.fileExists(atPath: orphan))
        #expect(fixture.events.warnings.count == 1)
        try await store.close()
    }

    @Test("Released files are removed from the pool of open files")
    func pool() {
        let pool = FilePool(limit: 8)
        for _ in 0..<5000 {
            let file = PooledFile(
                pool: pool, openExisting: { () throws(CacheError) in MemoryFile() },
                create: { () throws(CacheError) in MemoryFile() })
            #expect(file.adopt(MemoryFile()))
        }
        #expect(pool.openCount == 0)
        #expect(pool.ringCount <= 1024)
    }
}
