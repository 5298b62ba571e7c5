import ByteRanges
package import Crypto
import Foundation

/// Makes and checks the seals of one version of a media file, so that a torn, flipped, moved or forged block on disk
/// is found before a player gets it.
///
/// A seal is the tag of AES-256-GCM (NIST SP 800-38D) with a fresh random nonce, under a key of this generation's own,
/// derived with HKDF-SHA256 (RFC 5869) from the cache's secret, the resource's key hash and the generation's random
/// identifier. The block's bytes are authenticated, not encrypted; the message, whose ciphertext is thrown away, is a
/// header of block index and landed length. So a seal covers resource, generation, block, length and bytes, and none
/// opens in another's place. With encryption the bytes become the message: the same call, the same 28 bytes.
///
/// Pure but for the nonce's randomness; may be used from several threads at once.
package struct BlockSealer: Sendable {
    private let key: SymmetricKey

    /// Derives the key of one generation.
    ///
    /// - Parameters:
    ///   - secret: The cache's 256-bit seal key.
    ///   - resource: The resource's cache key, as its hash.
    ///   - generation: The generation's identifier.
    package init(secret: SymmetricKey, resource: String, generation: GenerationIdentifier) {
        self.key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: secret,
            info: Data("spool.seal".utf8) + Data(resource.utf8) + generation.data,
            outputByteCount: 32)
    }

    /// Seals what has landed of a block: `bytes`, from its start.
    ///
    /// - Throws: ``CacheError`` with code `storage` should the cipher refuse, which it does for no block up to 64 KiB.
    package func seal(_ bytes: UnsafeRawBufferPointer, index: Int64) throws(CacheError) -> BlockRecord {
        let nonce = AES.GCM.Nonce()
        guard let seal = makeSeal(bytes, index: index, nonce: nonce) else {
            throw CacheError(.storage, "block \(index) of \(bytes.count.counted("byte")) could not be sealed")
        }
        return BlockRecord(index: index, length: Int32(bytes.count), seal: seal)
    }

    /// Whether `bytes` are what `record` was made from, as this resource, generation, block and length.
    package func verifies(_ bytes: UnsafeRawBufferPointer, as record: BlockRecord) -> Bool {
        guard bytes.count == Int(record.length) else { return false }
        let nonce = record.seal.withUnsafeBytes { try? AES.GCM.Nonce(data: $0[..<BlockSeal.nonceByteCount]) }
        guard let nonce, let seal = makeSeal(bytes, index: record.index, nonce: nonce) else { return false }
        return seal.isEqualInConstantTime(to: record.seal)
    }

    private func makeSeal(_ bytes: UnsafeRawBufferPointer, index: Int64, nonce: AES.GCM.Nonce) -> BlockSeal? {
        var header = (index.bigEndian, Int64(bytes.count).bigEndian)
        return withUnsafeBytes(of: &header) { header in
            guard let box = try? AES.GCM.seal(header, using: key, nonce: nonce, authenticating: bytes) else {
                return nil
            }
            return withUnsafeTemporaryAllocation(byteCount: BlockSeal.byteCount, alignment: 8) { joined in
                nonce.withUnsafeBytes { joined.copyBytes(from: $0) }
                box.tag.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: joined[BlockSeal.nonceByteCount...]).copyBytes(from: $0)
                }
                return BlockSeal(UnsafeRawBufferPointer(joined))
            }
        }
    }
}

extension BlockSeal {
    /// Compares all bytes whatever the first difference, so that timing tells a forger nothing.
    fileprivate func isEqualInConstantTime(to other: BlockSeal) -> Bool {
        withUnsafeBytes { left in
            other.withUnsafeBytes { right in zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0 }
        }
    }
}
