import ByteRanges
import Crypto
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

@Suite("MediaFile with encryption", .timeLimit(.minutes(10)))
struct MediaFileEncryptionTests {
    private static let formats: [BlockFormat] = [.aesGCM, .chaChaPoly]

    @Test(
        "Bytes stored in an encrypted file are readable immediately, and the file contains no unencrypted bytes",
        arguments: formats)
    func landAndRead(format: BlockFormat) throws {
        let fixture = try MediaFixture(format: format)
        let length = 3 * Block.size + 777
        let media = try fixture.open(length: length)
        // The pieces are not aligned to blocks.
        var offset: Int64 = 0
        while offset < length {
            let end = min(length, offset + 10_007)
            try fixture.store(offset..<end, in: media)
            #expect(try fixture.read(0..<end, from: media) == fixture.bytes(0..<end))
            #expect(try fixture.read(offset..<end, from: media) == fixture.bytes(offset..<end))
            offset = end
        }
        #expect(media.isWhole && media.storedRanges == [0..<length])
        let stored = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        #expect(stored.count == Int(length))
        #expect(ForbiddenContent(plain: [Data(fixture.bytes(0..<length))]).violations(in: stored, "the file").isEmpty)
        #expect(media.readWithoutBlocking(5, into: UnsafeMutableRawBufferPointer(start: nil, count: 0)) == nil)
        var buffer = [UInt8](repeating: 0, count: Int(length))
        let count = buffer.withUnsafeMutableBytes { media.readWithoutBlocking(Block.size - 5, into: $0) }
        #expect(
            count.map { Array(buffer[..<$0]) == fixture.bytes(Block.size - 5..<Block.size - 5 + Int64($0)) } ?? true)
    }

    @Test("An incomplete block stays in memory until its transfer ends, is then written, and can be continued later")
    func tail() throws {
        let fixture = try MediaFixture(format: .aesGCM)
        let media = try fixture.open(length: 2 * Block.size)
        try fixture.store(0..<30_000, in: media)
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path)).isEmpty && media.hasChanges)
        #expect(media.takeSeals(partial: true).isEmpty)
        #expect(media.evict(0..<Block.size).ranges.isEmpty)
        #expect(media.endWriting(at: 30_000) == nil)
        let first = media.takeSeals(partial: false)
        #expect(first.map(\.range) == [0..<30_000] && !media.hasChanges)
        // Another process continues the block.
        let later = try fixture.open(first, length: 2 * Block.size)
        #expect(try fixture.read(100..<200, from: later) == fixture.bytes(100..<200))
        try fixture.store(30_000..<40_000, in: later)
        #expect(try fixture.read(29_990..<30_010, from: later) == fixture.bytes(29_990..<30_010))
        try fixture.store(40_000..<Block.size + 5, in: later)
        later.endAllWriting()
        let second = later.takeSeals(partial: false)
        #expect(Set(second.map(\.range)) == [0..<Block.size, Block.size..<Block.size + 5])
        let third = try fixture.open(second, length: 2 * Block.size)
        #expect(try fixture.read(0..<Block.size + 5, from: third) == fixture.bytes(0..<Block.size + 5))
        // The bytes of the previous record no longer exist.
        let stale = try fixture.open(first, length: 2 * Block.size)
        #expect(throws: MissingBytes.self) { try fixture.read(0..<10, from: stale) }
        #expect(stale.storedRanges.isEmpty)
    }

    @Test("If the length of an encrypted file is set after its last bytes are received, no bytes are lost")
    func lateLength() throws {
        let fixture = try MediaFixture(format: .aesGCM)
        let media = try fixture.open()
        try fixture.store(0..<5000, in: media)
        #expect(media.setLength(5000) && media.isWhole)
        #expect(media.endWriting(at: 5000) == nil)
        #expect(try fixture.read(0..<5000, from: media) == fixture.bytes(0..<5000))
        #expect(
            try fixture.read(0..<5000, from: fixture.open(media.takeSeals(partial: false))) == fixture.bytes(0..<5000))
    }

    @Test("A changed, truncated or moved block, or one from another version, counts as missing and is not decrypted")
    func forged() throws {
        for damage in [
            { try $0.overwrite(70_000..<70_001) { $0[0] ^= 1 } }, { try $0.truncate(to: 100_000) },
            { fixture in
                let other = try fixture.stored(0..<Block.size)
                try fixture.overwrite(Block.size..<2 * Block.size) { $0 = other }
            },
        ] as [(MediaFixture) throws -> Void] {
            let fixture = try MediaFixture(format: .aesGCM)
            let media = try fixture.open(length: 3 * Block.size)
            try fixture.store(0..<3 * Block.size, in: media)
            let seals = media.takeSeals(partial: true)
            try damage(fixture)
            // This also applies in the process that wrote the block, because each read decrypts the block again.
            for media in [media, try fixture.open(seals, length: 3 * Block.size)] {
                #expect(try fixture.read(0..<Block.size, from: media) == fixture.bytes(0..<Block.size))
                let missing = #expect(throws: MissingBytes.self) {
                    try fixture.read(Block.size..<2 * Block.size, from: media)
                }
                #expect(missing?.indices == [1])
                #expect(!media.contains(Block.size..<Block.size + 1))
            }
        }
        let fixture = try MediaFixture(format: .aesGCM)
        let media = try fixture.open(length: Block.size)
        try fixture.store(0..<Block.size, in: media)
        let seals = media.takeSeals(partial: true)
        for sealer in [
            BlockSealer(
                secret: MediaFixture.secret, format: .aesGCM, resource: String(repeating: "0", count: 64),
                generation: GenerationIdentifier()),
            BlockSealer(
                secret: MediaFixture.secret, format: .aesGCM, resource: String(repeating: "1", count: 64),
                generation: MediaFixture.identifier),
            BlockSealer(
                secret: SymmetricKey(size: .bits256), format: .aesGCM, resource: String(repeating: "0", count: 64),
                generation: MediaFixture.identifier),
        ] {
            let other = MediaFile(
                file: try fixture.files.openFile(fixture.path, .create), sealer: sealer, blocks: seals,
                length: Block.size)
            #expect(throws: MissingBytes.self) { try fixture.read(0..<10, from: other) }
        }
    }

    @Test("On a full disk, a block in memory is readable until its transfer ends, and is then reported as lost")
    func fullDisk() throws {
        let fixture = try MediaFixture(format: .aesGCM)
        let media = try fixture.open(length: 2 * Block.size)
        try fixture.store(0..<30_000, in: media)
        fixture.files.fail([.write], with: .error(.ENOSPC))
        #expect(throws: CacheError.self) { try fixture.store(30_000..<Block.size, in: media) }
        #expect(try fixture.read(0..<30_000, from: media) == fixture.bytes(0..<30_000))
        let lost = media.endWriting(at: 30_000)
        #expect(lost?.indices == [0] && lost?.cause?.posixCode == .ENOSPC)
        #expect(media.storedRanges.isEmpty)
        fixture.files.clearFaults()
        try fixture.store(0..<2 * Block.size, in: media)
        #expect(try fixture.read(0..<2 * Block.size, from: media) == fixture.bytes(0..<2 * Block.size))
    }

    @Test("While an encrypted file is being received, concurrent reads return all received bytes correctly")
    func race() async throws {
        let fixture = try MediaFixture(format: .aesGCM)
        let length = 12 * Block.size
        let media = try fixture.open(length: length)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<3 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(worker)
                    while !media.isWhole {
                        await Task.yield()
                        guard let end = media.prefix(at: 0)?.upperBound else { continue }
                        let start = Int64.random(in: 0..<end, using: &random)
                        let range = start..<Int64.random(in: start...min(end, start + 100_000), using: &random)
                        let bytes = try fixture.read(range, from: media)
                        #expect(bytes == fixture.bytes(range))
                    }
                }
            }
            group.addTask {
                var random = SeededGenerator(99)
                var offset: Int64 = 0
                while offset < length {
                    let end = min(length, offset + Int64.random(in: 1...20_000, using: &random))
                    try fixture.store(offset..<end, in: media)
                    offset = end
                    // Sometimes, a transfer ends in the middle of a block, and another transfer continues the block.
                    if Int.random(in: 0..<4, using: &random) == 0 { #expect(media.endWriting(at: end) == nil) }
                    if Int.random(in: 0..<4, using: &random) == 0 { _ = media.takeSeals(partial: true) }
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        let records = media.takeSeals(partial: false)
                        #expect(media.verify(records, repairing: true).bad.isEmpty)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try fixture.read(0..<length, from: media) == fixture.bytes(0..<length))
    }
}
