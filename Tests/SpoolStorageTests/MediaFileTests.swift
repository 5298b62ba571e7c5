import ByteRanges
import Crypto
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// A media file in a real or faulty file system, and the pattern that it should contain.
struct MediaFixture {
    static let secret = SymmetricKey(size: .bits256)
    static let identifier = GenerationIdentifier()

    let scratch: ScratchDirectory
    let files = FaultyFileSystem()
    let pattern = PatternBytes(seed: 7, length: 1 << 20)
    let sealer: BlockSealer

    init(format: BlockFormat = .plain) throws {
        scratch = try ScratchDirectory()
        sealer = BlockSealer(
            secret: Self.secret, format: format, resource: String(repeating: "0", count: 64),
            generation: Self.identifier)
    }

    var path: String { scratch.file("a.media") }

    func open(_ blocks: [BlockRecord] = [], length: Int64? = nil) throws -> MediaFile {
        MediaFile(file: try files.openFile(path, .create), sealer: sealer, blocks: blocks, length: length)
    }

    func bytes(_ range: Range<Int64>) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        bytes.withUnsafeMutableBytes { pattern.fill($0, at: range.lowerBound) }
        return bytes
    }

    func store(_ range: Range<Int64>, in media: MediaFile) throws {
        try bytes(range).withUnsafeBytes { try media.store($0, at: range.lowerBound) }
    }

    func read(_ range: Range<Int64>, from media: MediaFile) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: range.count)
        try bytes.withUnsafeMutableBytes { try media.read(range, into: $0) }
        return bytes
    }

    /// Returns the bytes of a range in the file on disk.
    func stored(_ range: Range<Int64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        _ = try bytes.withUnsafeMutableBytes {
            try SystemFileSystem().openFile(path, .read).read(into: $0, at: range.lowerBound)
        }
        return bytes
    }

    /// Changes the bytes on disk without using the media file.
    func overwrite(_ range: Range<Int64>, _ change: (inout [UInt8]) -> Void) throws {
        let file = try SystemFileSystem().openFile(path, .readWrite)
        var bytes = [UInt8](repeating: 0, count: range.count)
        _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
        change(&bytes)
        try bytes.withUnsafeBytes { try file.write($0, at: range.lowerBound) }
    }

    func truncate(to size: Int64) throws {
        try SystemFileSystem().openFile(path, .readWrite).punchHole(size..<Int64.max)
    }
}

@Suite("MediaFile", .timeLimit(.minutes(10)))
struct MediaFileTests {
    @Test("When counting ends for a file, its claimed bytes are returned once, and later changes are not counted")
    func endOfCounting() throws {
        let given = Mutex<Int64>(0)
        let media = MediaFile(
            file: PooledFile(MemoryFile()), sealer: nil, releaseClaim: { bytes in given.withLock { $0 += bytes } })
        let bytes = [UInt8](repeating: 7, count: Int(2 * Block.size))
        var space = 4 * Block.size
        #expect(try bytes.withUnsafeBytes { try media.store($0, at: 0, space: &space) })
        #expect(space == 2 * Block.size)
        media.endAllWriting()
        #expect(media.evict(0..<Block.size).ranges == [0..<Block.size])
        #expect(given.withLock { $0 } == Block.size)
        #expect(media.endCounting() == Block.size)
        #expect(media.evict(Block.size..<2 * Block.size).ranges.count == 1)
        #expect(try bytes.withUnsafeBytes { try media.store($0, at: 4 * Block.size, space: &space) })
        #expect(given.withLock { $0 } == Block.size && space == 2 * Block.size)
        #expect(media.endCounting() == 0)
    }

    @Test("Received bytes can be read immediately and unchanged, even across block boundaries")
    func landAndRead() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(65536..<65536 + 100, in: media)
        try fixture.store(65636..<200_000, in: media)
        #expect(media.storedRanges == [65536..<200_000])
        #expect(try fixture.read(65536..<200_000, from: media) == fixture.bytes(65536..<200_000))
        #expect(try fixture.read(70_000..<70_001, from: media) == fixture.bytes(70_000..<70_001))
        #expect(try fixture.read(70_000..<70_000, from: media).isEmpty)
    }

    @Test("A read of a range that is not fully stored reports the first missing range")
    func holes() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<100, in: media)
        try fixture.store(131072..<131200, in: media)
        #expect(throws: MissingBytes(range: 100..<131072)) { try fixture.read(50..<131100, from: media) }
        #expect(throws: CacheError.self) { try fixture.read(-5..<3, from: media) }
        #expect(throws: CacheError.self) {
            try media.read(0..<100, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
        }
    }

    @Test("Bytes that are already stored are not written again")
    func noRewrite() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<70_000, in: media)
        let writes = fixture.files.counts[.write] ?? 0
        try fixture.store(0..<70_000, in: media)
        try fixture.store(65_000..<70_000, in: media)
        #expect(fixture.files.counts[.write] == writes)
        try fixture.store(131072..<140_000, in: media)
        try fixture.store(60_000..<150_000, in: media)
        #expect(media.storedRanges == [0..<150_000])
        #expect(try fixture.read(0..<150_000, from: media) == fixture.bytes(0..<150_000))
        #expect(media.takeSeals(partial: true).map(\.index) == [0, 1, 2])
    }

    @Test("Bytes that follow a missing part of their block, exceed the length or have an invalid offset are rejected")
    func wrongPlaces() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open(length: 100_000)
        #expect(throws: MissingBytes(range: 65536..<65540)) { try fixture.store(65540..<65550, in: media) }
        #expect(throws: CacheError.self) { try fixture.store(65536..<100_001, in: media) }
        for offset in [-1, Int64.max, Int64.max - 5] {
            #expect(throws: CacheError.self) { try [1, 2, 3].withUnsafeBytes { try media.store($0, at: offset) } }
        }
        #expect(media.storedRanges.isEmpty)
        #expect(media.storingOffset(for: 99_000) == 65536)
        try fixture.store(65536..<65540, in: media)
        #expect(media.storingOffset(for: 99_000) == 65540)
    }

    @Test("Each block record is returned once; the record of a block in progress is returned only on request")
    func takingSeals() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<65536 + 10, in: media)
        #expect(media.takeSeals(partial: false).map(\.length) == [65536])
        #expect(media.takeSeals(partial: false).isEmpty)
        #expect(media.takeSeals(partial: true).map(\.length) == [10])
        #expect(media.takeSeals(partial: true).isEmpty)
        try fixture.store(65546..<65550, in: media)
        #expect(media.takeSeals(partial: true).map(\.length) == [14])
        try fixture.store(65550..<65560, in: media)
        media.endWriting(at: 65560)
        #expect(media.takeSeals(partial: false).map(\.length) == [24])
        #expect(media.takeSeals(partial: true).isEmpty)
        // The block is continued in the same process after its buffer was released.
        try fixture.store(65560..<131072, in: media)
        #expect(media.takeSeals(partial: false).map(\.length) == [65536])
    }

    @Test("If a damaged block is received again, its new checksum covers only the new bytes")
    func begunAnew() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<65536 + 10, in: media)
        // A reader has found that both blocks are damaged. Their bytes are received again, in one piece that ends in
        // the second block.
        _ = media.blocks.invalidate(0..<65536 + 10)
        try fixture.store(0..<65536 + 20, in: media)
        media.endWriting(at: 65536 + 20)
        #expect(media.takeSeals(partial: false).map(\.range) == [0..<65536, 65536..<65536 + 20])
    }

    @Test("A short last block is complete once it reaches the length of the resource")
    func shortLastBlock() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<70_000, in: media)
        #expect(media.setLength(70_001))
        #expect(!media.setLength(70_002))
        #expect(media.takeSeals(partial: false).map(\.length) == [65536])
        try fixture.store(70_000..<70_001, in: media)
        #expect(media.takeSeals(partial: false).map(\.length) == [70_001 - 65536])
        #expect(!(try fixture.open(media.takeSeals(partial: true)).setLength(-1)))
        let short = try fixture.open()
        try fixture.store(0..<10, in: short)
        #expect(!short.setLength(9))
        #expect(short.length == nil)
    }

    @Test("C33: after a media file is reopened, every recorded byte is readable, and all other bytes are missing")
    func reopen() throws {
        let fixture = try MediaFixture()
        var media = try fixture.open()
        try fixture.store(0..<100_000, in: media)
        try fixture.store(262_144..<270_000, in: media)
        let records = media.takeSeals(partial: true)
        try fixture.store(100_000..<131_072, in: media)
        media = try fixture.open(records.sorted { $0.index < $1.index })
        #expect(media.storedRanges == [0..<100_000, 262_144..<270_000])
        #expect(try fixture.read(0..<100_000, from: media) == fixture.bytes(0..<100_000))
        // Writing continues at the end of the record, over the bytes of the previous process.
        try fixture.store(100_000..<150_000, in: media)
        #expect(try fixture.read(65_000..<150_000, from: media) == fixture.bytes(65_000..<150_000))
        #expect(media.takeSeals(partial: false).map(\.length) == [65536])
    }

    enum Damage: CaseIterable { case flipped, zeroed, shortened, swapped, gone }

    @Test(
        "C34: a changed, zeroed, truncated, swapped or missing block is found by the first read and discarded",
        arguments: Damage.allCases)
    func damage(_ damage: Damage) throws {
        let fixture = try MediaFixture()
        let first = try fixture.open()
        try fixture.store(0..<5 * 65536, in: first)
        let records = first.takeSeals(partial: true)
        let bad: [Int64]
        switch damage {
        case .flipped:
            try fixture.overwrite(2 * 65536 + 4711..<2 * 65536 + 4712) { $0[0] ^= 0x40 }
            bad = [2]
        case .zeroed:
            try fixture.overwrite(Block.range(of: 3)) { $0 = [UInt8](repeating: 0, count: $0.count) }
            bad = [3]
        case .shortened:
            try fixture.truncate(to: 3 * 65536 + 1)
            bad = [3, 4]
        case .swapped:
            try fixture.overwrite(0..<2 * 65536) { $0 = Array($0[65536...] + $0[..<65536]) }
            bad = [0, 1]
        case .gone:
            try fixture.truncate(to: 0)
            bad = [0, 1, 2, 3, 4]
        }
        let media = try fixture.open(records)
        let all: Range<Int64> = 1000..<5 * 65536 - 1000
        #expect(throws: MissingBytes(indices: bad, range: all)) { try fixture.read(all, from: media) }
        for index in bad { #expect(media.firstMissingRange(in: Block.range(of: index)) == Block.range(of: index)) }
        for index in bad { try fixture.store(Block.range(of: index), in: media) }
        #expect(try fixture.read(all, from: media) == fixture.bytes(all))
    }

    @Test("C34: damage in a started block is found before bytes are appended to it")
    func badTail() throws {
        let fixture = try MediaFixture()
        let first = try fixture.open()
        try fixture.store(0..<1000, in: first)
        let records = first.takeSeals(partial: true)
        try fixture.overwrite(500..<501) { $0[0] ^= 1 }
        let media = try fixture.open(records)
        #expect(throws: MissingBytes(indices: [0], range: 0..<1000)) { try fixture.store(1000..<2000, in: media) }
        #expect(media.storedRanges.isEmpty)
        #expect(throws: MissingBytes(range: 0..<1000)) { try fixture.store(1000..<2000, in: media) }
        try fixture.store(0..<2000, in: media)
        #expect(try fixture.read(0..<2000, from: media) == fixture.bytes(0..<2000))
    }

    @Test("Blocks are verified at the first read; after that, several blocks are read with a single call")
    func checkedOnce() throws {
        let fixture = try MediaFixture()
        let first = try fixture.open()
        try fixture.store(0..<4 * 65536, in: first)
        let media = try fixture.open(first.takeSeals(partial: true))
        // Partly read blocks at both ends are verified with separate reads.
        _ = try fixture.read(10..<3 * 65536 + 10, from: media)
        let reads = fixture.files.counts[.read] ?? 0
        #expect(reads == 3)
        _ = try fixture.read(0..<4 * 65536, from: media)
        #expect(fixture.files.counts[.read] == reads + 1)
    }

    @Test("A check finds and discards damaged blocks, even if they were verified before")
    func verify() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<3 * 65536 + 5, in: media)
        let records = media.takeSeals(partial: true)
        #expect(media.repair(records) == [])
        try fixture.overwrite(65536 + 9..<65536 + 10) { $0[0] ^= 1 }
        try fixture.truncate(to: 3 * 65536 + 4)
        #expect(media.repair(records) == [1, 3])
        #expect(media.repair(records) == [])
        #expect(media.storedRanges == [0..<65536, 131072..<196_608])
    }

    @Test("An eviction removes whole blocks and their records, except blocks that are being received or sent")
    func drop() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<6 * 65536 + 100, in: media)
        let hold = media.hold(65536..<65537)
        try media.prove(65536..<65537)
        var dropped = media.evict(100..<5 * 65536 + 7)
        #expect(dropped.indices == [2, 3, 4] && dropped.byteCount == 3 * 65536 && dropped.failure == nil)
        #expect(media.takeSeals(partial: false).map(\.index) == [0, 1, 5])
        media.endHold(hold)
        dropped = media.evict(0..<Int64.max)
        #expect(dropped.indices == [0, 1, 5])
        let left: Range<Int64> = 393_216..<393_316
        #expect(media.storedRanges == [left])
        media.endWriting(at: 6 * 65536 + 100)
        #expect(media.evict(0..<Int64.max).indices == [6])
        #expect(media.storedRanges.isEmpty && media.takeSeals(partial: true).isEmpty)
        #expect(try SystemFileSystem().openFile(fixture.path, .read).size() == 6 * 65536)
    }

    @Test("E105: a block whose space can't be freed counts as missing and stays claimed, and no other block is evicted")
    func dropFails() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<2 * 65536, in: media)
        fixture.files.fail([.punchHole], with: .error(.EIO))
        let dropped = media.evict(0..<65536)
        #expect(dropped.ranges.isEmpty && dropped.failure?.posixCode == .EIO)
        #expect(media.storedRanges == [65536..<131072] && media.claimedByteCount == 131_072)
        #expect(media.evict(0..<131_072).failure?.posixCode == .EIO)
        #expect(media.storedRanges == [65536..<131072] && media.claimedByteCount == 131_072)
        fixture.files.clearFaults()
        // The space of the first block is freed together with that of the second.
        #expect(media.evict(0..<131_072).ranges == [65536..<131072])
        #expect(media.storedRanges.isEmpty && media.claimedByteCount == 0 && media.endCounting() == 0)
    }

    @Test("E334: after a failed write whose space can't be freed, the next successful write corrects the claim")
    func refusedBytes() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<65536, in: media)
        fixture.files.fail([.write], with: .shortWrite(1000, .ENOSPC))
        fixture.files.fail([.mark], with: .error(.EROFS))
        #expect(throws: CacheError.self) { try fixture.store(65536..<131_072, in: media) }
        #expect(media.claimedByteCount == 131_072)
        fixture.files.clearFaults()
        try fixture.store(65536..<131_072, in: media)
        #expect(media.claimedByteCount == 131_072 && media.storedRanges == [0..<131_072])
        #expect(try fixture.read(0..<131_072, from: media) == fixture.bytes(0..<131_072))
    }

    @Test("After an unclean shutdown, only the space of unclaimed bytes is freed")
    func freeUnclaimed() throws {
        let fixture = try MediaFixture()
        var media = try fixture.open()
        try fixture.store(0..<4 * 65536 + 10, in: media)
        let records = media.takeSeals(partial: true).filter { $0.index == 1 || $0.index == 2 }
        media = try fixture.open(records)
        try media.freeUnclaimed()
        #expect(try SystemFileSystem().openFile(fixture.path, .read).size() == 3 * 65536)
        try fixture.overwrite(0..<65536) { #expect($0.allSatisfy { $0 == 0 }) }
        #expect(try fixture.read(65536..<3 * 65536, from: media) == fixture.bytes(65536..<3 * 65536))
    }

    @Test("Recorded blocks that occupy no disk space are discarded, except blocks that a transfer is filling")
    func invalidateHoles() throws {
        let fixture = try MediaFixture()
        var media = try fixture.open()
        try fixture.store(0..<4 * 65536 + 10, in: media)
        media = try fixture.open(media.takeSeals(partial: true))
        try SystemFileSystem().openFile(fixture.path, .readWrite).punchHole(65536..<2 * 65536)
        #expect(try media.invalidateHoles() == [65536..<131072])
        #expect(media.storedRanges == [0..<65536, 131072..<262154])
        try fixture.store(65536..<65536 + 5, in: media)
        #expect(try media.invalidateHoles().isEmpty)
        fixture.files.fail([.nextData], with: .error(.EIO))
        #expect(throws: CacheError.self) { try media.invalidateHoles() }
        #expect(media.storedRanges == [0..<65541, 131072..<262154])
    }

    @Test(
        "C35: a failed write stores no bytes and reports the path and the cause, and a later write can succeed",
        arguments: [POSIXErrorCode.ENOSPC, .EIO, .EROFS])
    func failedWrite(_ code: POSIXErrorCode) throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<1000, in: media)
        fixture.files.fail([.write], with: .error(code), times: 1)
        fixture.files.fail([.write], with: .shortWrite(5000, code), times: 1)
        for _ in 0..<2 {
            let error = try #require(throws: CacheError.self) { try fixture.store(1000..<200_000, in: media) }
            #expect(error.code == .storage && error.posixCode == code && error.message.contains(fixture.path))
            #expect(media.storedRanges == [0..<1000])
        }
        try fixture.store(1000..<200_000, in: media)
        #expect(try fixture.read(0..<200_000, from: media) == fixture.bytes(0..<200_000))
        #expect(media.repair(media.takeSeals(partial: true)) == [])
    }

    @Test("C35: the blocks of a read that fails or ends early count as missing, and the cause of a failure is reported")
    func failedRead() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<3 * 65536, in: media)
        fixture.files.fail([.read], with: .error(.EIO), times: 1)
        fixture.files.fail([.read], with: .endOfFile, times: 1)
        let missing = #expect(throws: MissingBytes.self) { try fixture.read(0..<100, from: media) }
        #expect(missing?.indices == [0] && missing?.cause?.posixCode == .EIO)
        #expect(media.storedRanges == [65536..<196_608])
        #expect(throws: MissingBytes(indices: [1], range: 65536..<65546)) {
            try fixture.read(65536..<65546, from: media)
        }
        #expect(media.storedRanges == [131072..<196_608])
    }

    @Test("If a block is damaged during its transfer, its next checksum does not cover the damaged bytes")
    func badWhileFilling() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<1000, in: media)
        try fixture.truncate(to: 0)
        #expect(throws: MissingBytes(indices: [0], range: 0..<10)) { try fixture.read(0..<10, from: media) }
        #expect(media.takeSeals(partial: true).isEmpty)
        #expect(throws: MissingBytes(range: 0..<1000)) { try fixture.store(1000..<2000, in: media) }
        try fixture.store(0..<500, in: media)
        #expect(media.repair(media.takeSeals(partial: true)) == [])
        #expect(try fixture.read(0..<500, from: media) == fixture.bytes(0..<500))
    }

    @Test("A file in memory stores, reads and evicts bytes like a file on disk, but without checksums")
    func memory() throws {
        let fixture = try MediaFixture()
        let media = MediaFile(file: MemoryFile(), sealer: nil)
        #expect(media.isInMemory)
        try fixture.store(65536..<200_000, in: media)
        #expect(try fixture.read(65536..<200_000, from: media) == fixture.bytes(65536..<200_000))
        #expect(media.takeSeals(partial: true).isEmpty)
        #expect(media.evict(0..<131072).indices == [1])
        #expect(throws: MissingBytes(range: 65536..<131072)) { try fixture.read(65536..<200_000, from: media) }
        try fixture.store(65536..<70_000, in: media)
        try fixture.store(70_000..<131072, in: media)
        #expect(try fixture.read(65536..<200_000, from: media) == fixture.bytes(65536..<200_000))
    }

    @Test("Invalid block records are ignored and do not cause a crash")
    func implausibleRecords() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        try fixture.store(0..<10, in: media)
        let good = try #require(media.takeSeals(partial: true).first)
        var records = [good, good]
        for (index, length) in [(-1, 5), (Int64.max, 65536), (3, 0), (4, -7), (5, 65537), (Int64.max / 65536, 1)] {
            records.append(BlockRecord(index: index, length: Int32(length), seal: good.seal))
        }
        let reopened = try fixture.open(records.reversed(), length: 5)
        #expect(reopened.storedRanges == [0..<10])
        #expect(try fixture.read(0..<10, from: reopened) == fixture.bytes(0..<10))
    }
}
