import Crypto
import Foundation
import Testing

@testable import SpoolStorage

@Suite("Block checksums")
struct BlockSealerTests {
    private let secret = SymmetricKey(size: .bits256)
    private let generation = GenerationIdentifier()
    private let resource = String(repeating: "a", count: 64)
    private let bytes = (0..<65536).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private var sealer: BlockSealer { BlockSealer(secret: secret, resource: resource, generation: generation) }

    private func verifies(_ bytes: some Collection<UInt8>, as record: BlockRecord, by sealer: BlockSealer) -> Bool {
        Array(bytes).withUnsafeBytes { sealer.verifies($0, as: record) }
    }

    @Test(
        "A checksum that is stored and read back still verifies its block",
        arguments: [1, 2, 15, 16, 17, 4096, 65535, 65536])
    func opens(count: Int) throws {
        let record = try bytes[..<count].withUnsafeBytes { try sealer.seal($0, index: 7) }
        #expect(record.length == count && record.index == 7)
        #expect(verifies(bytes[..<count], as: record, by: sealer))
        let stored = try #require(BlockSeal(record.seal.data))
        #expect(stored == record.seal && record.seal.data.count == 28)
        let read = BlockRecord(index: 7, length: Int32(count), seal: stored)
        #expect(verifies(bytes[..<count], as: read, by: sealer))
    }

    @Test("C39: a checksum is valid only for the position, length, version, resource and cache of its block")
    func elsewhere() throws {
        let record = try bytes.withUnsafeBytes { try sealer.seal($0, index: 7) }
        var other = record
        other.index = 8
        #expect(!verifies(bytes, as: other, by: sealer))
        other = record
        other.length = 65535
        #expect(!verifies(bytes, as: other, by: sealer))
        #expect(!verifies(bytes.dropLast(), as: other, by: sealer))
        let elsewhere = [
            BlockSealer(secret: secret, resource: resource, generation: GenerationIdentifier()),
            BlockSealer(secret: secret, resource: String(repeating: "b", count: 64), generation: generation),
            BlockSealer(secret: SymmetricKey(size: .bits256), resource: resource, generation: generation),
        ]
        for sealer in elsewhere { #expect(!verifies(bytes, as: record, by: sealer)) }
    }

    @Test("C34: a single flipped bit anywhere in a block is detected", arguments: [0, 1, 15, 16, 4095, 32768, 65535])
    func flips(position: Int) throws {
        let record = try bytes.withUnsafeBytes { try sealer.seal($0, index: 0) }
        for bit in 0..<8 {
            var flipped = bytes
            flipped[position] ^= 1 << bit
            #expect(!verifies(flipped, as: record, by: sealer))
        }
    }

    @Test("A flipped bit in the nonce or the tag of a stored checksum is detected")
    func flippedSeal() throws {
        let record = try bytes.withUnsafeBytes { try sealer.seal($0, index: 0) }
        for position in 0..<28 {
            var data = record.seal.data
            data[position] ^= 0x10
            let seal = try #require(BlockSeal(data))
            #expect(!verifies(bytes, as: BlockRecord(index: 0, length: 65536, seal: seal), by: sealer))
        }
    }

    @Test("Each checksum of the same block has a new nonce")
    func nonces() throws {
        let records = try (0..<100).map { _ in try bytes[..<10].withUnsafeBytes { try sealer.seal($0, index: 0) } }
        #expect(Set(records).count == 100)
    }

    @Test("A checksum must consist of 28 bytes, and an identifier of 32 lowercase hexadecimal digits")
    func shapes() {
        #expect(BlockSeal(Data(count: 27)) == nil)
        #expect(BlockSeal(Data(count: 29)) == nil)
        let identifier = GenerationIdentifier()
        #expect(GenerationIdentifier(hex: identifier.hex) == identifier)
        #expect(GenerationIdentifier(identifier.data) == identifier)
        #expect(identifier.hex.count == 32)
        #expect(GenerationIdentifier(hex: identifier.hex.uppercased() + "0") == nil)
        #expect(GenerationIdentifier(hex: String(repeating: "A", count: 32)) == nil)
        #expect(GenerationIdentifier(hex: "../../../../../../etc/passwd0000") == nil)
        #expect(GenerationIdentifier(Data(count: 15)) == nil)
        #expect(GenerationIdentifier(hex: "000102030405060708090a0b0c0d0e0f")?.data == Data(0..<16))
    }
}
