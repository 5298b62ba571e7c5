import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Changes that the tests cause in the middle of a read.
@Suite("MediaFile: changes during a read", .timeLimit(.minutes(10)))
struct MediaFileRaceTests {
    private let fixture: MediaFixture
    private let file: HookedFile
    private let media: MediaFile

    init() throws {
        fixture = try MediaFixture()
        file = HookedFile(try fixture.files.openFile(fixture.path, .create))
        media = MediaFile(file: file, sealer: fixture.sealer)
    }

    @Test("If a block is evicted during a read, the read reports a missing range instead of returning zeros")
    func evicted() throws {
        try fixture.store(0..<131072, in: media)
        file.beforeNextRead { [media] in _ = media.evict(0..<65536) }
        #expect(throws: MissingBytes(range: 10..<65536)) { try fixture.read(10..<70_000, from: media) }
        #expect(try fixture.read(65536..<131072, from: media) == fixture.bytes(65536..<131072))
    }

    @Test("If a block is evicted and received again during a read, the read returns the new bytes")
    func evictedAndStored() throws {
        try fixture.store(0..<131072, in: media)
        file.beforeNextRead { [media] in _ = media.evict(0..<65536) }
        file.afterNextRead { [media, fixture] in try? fixture.store(0..<65536, in: media) }
        #expect(try fixture.read(10..<70_000, from: media) == fixture.bytes(10..<70_000))
    }

    @Test("If two readers find the same damaged block, the second does not discard bytes received in the meantime")
    func foundTwice() throws {
        try fixture.store(0..<131072, in: media)
        let records = media.takeSeals(partial: true)
        try fixture.overwrite(5..<6) { $0[0] ^= 1 }
        let reopened = MediaFile(file: file, sealer: fixture.sealer, blocks: records)
        file.afterNextRead { [fixture] in
            #expect(throws: MissingBytes(indices: [0], range: 0..<10)) { try fixture.read(0..<10, from: reopened) }
            #expect(throws: Never.self) { try fixture.store(0..<65536, in: reopened) }
        }
        #expect(try fixture.read(0..<65536, from: reopened) == fixture.bytes(0..<65536))
        #expect(reopened.contains(0..<131072))
    }

    @Test("If a block is evicted during a check, the check does not report it as damaged")
    func verifiedAndEvicted() throws {
        try fixture.store(0..<131072, in: media)
        let records = media.takeSeals(partial: true)
        file.beforeNextRead { [media] in _ = media.evict(0..<65536) }
        #expect(media.repair(records) == [])
    }

    @Test("A block is not evicted while a slice of it is being prepared")
    func sliced() throws {
        try fixture.store(0..<131072, in: media)
        let reopened = MediaFile(file: file, sealer: fixture.sealer, blocks: media.takeSeals(partial: true))
        file.beforeNextRead { #expect(reopened.evict(0..<131072).indices == [1]) }
        let hold = reopened.hold(10..<20)
        try reopened.prove(10..<20)
        #expect(reopened.evict(0..<131072).indices.isEmpty)
        #expect(try fixture.read(10..<20, from: reopened) == fixture.bytes(10..<20))
        reopened.endHold(hold)
    }

    @Test("E58: a file descriptor still counts toward the limit while it is being closed")
    func countedWhileClosing() throws {
        let pool = FilePool(limit: 1)
        let pooled = PooledFile(
            pool: pool, openExisting: { () throws(CacheError) in MemoryFile() },
            create: { () throws(CacheError) in MemoryFile() })
        let closing = Mutex<Int?>(nil)
        let isAdopted = pooled.adopt(HookedFile(MemoryFile()) { closing.withLock { $0 = pool.openCount } })
        #expect(isAdopted)
        pooled.close()
        #expect(closing.withLock { $0 } == 1)
        #expect(pool.openCount == 0)
    }
}

/// A file that runs closures of a test before and after its next read, and when it closes.
private final class HookedFile: StoredFile {
    private let base: any StoredFile
    private let hooks = Mutex<(before: (@Sendable () -> Void)?, after: (@Sendable () -> Void)?)>((nil, nil))

    private let onClose: @Sendable () -> Void

    init(_ base: any StoredFile, onClose: @escaping @Sendable () -> Void = {}) {
        self.base = base
        self.onClose = onClose
    }

    deinit { onClose() }

    func beforeNextRead(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.before = hook } }
    func afterNextRead(_ hook: @escaping @Sendable () -> Void) { hooks.withLock { $0.after = hook } }

    var fileDescriptor: Int32? { base.fileDescriptor }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        let (before, after) = hooks.withLock { hooks in
            defer { hooks = (nil, nil) }
            return hooks
        }
        before?()
        defer { after?() }
        return try base.read(into: buffer, at: offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        try base.write(bytes, at: offset)
    }

    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        base.readWithoutBlocking(into: buffer, at: offset)
    }

    func lock(_ mark: FileLock) throws(CacheError) -> Bool { try base.lock(mark) }
    func punchHole(_ range: Range<Int64>) throws(CacheError) { try base.punchHole(range) }
    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? { try base.nextData(from: offset) }
    func size() throws(CacheError) -> Int64 { try base.size() }
    func synchronize() throws(CacheError) { try base.synchronize() }
}
