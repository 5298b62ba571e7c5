import ByteRanges
import Crypto
import Foundation

/// Makes and checks the seals of one version of a media file, so that a torn, flipped, moved or forged block on disk
/// is found before a player gets it.
///
/// A seal is the tag of AES-256-GCM (NIST SP 800-38D) with a fresh random nonce, under a key of this generation's own,
/// derived with HKDF-SHA256 (RFC 5869) from the cache's secret, the resource's key hash and the generation's random
/// identifier. So it covers resource, generation, block, length and bytes, and none opens in another's place.
///
/// In a plain cache the block's bytes are authenticated, not encrypted; the message, whose ciphertext is thrown away, is a
/// header of block index and landed length. In an encrypted one the bytes are the message, and the header is
/// authenticated; there the cipher may be ChaCha20-Poly1305 (RFC 8439) as well.
///
/// Pure but for the nonce's randomness; may be used from several threads at once.
struct BlockSealer: Sendable {
    private let key: SymmetricKey
    /// How the block lies in the file.
    let format: BlockFormat

    /// Derives the key of one generation.
    ///
    /// - Parameters:
    ///   - secret: The cache's 256 bits.
    ///   - resource: The resource's cache key, as its hash.
    ///   - generation: The generation's identifier.
    init(
        secret: SymmetricKey, format: BlockFormat = .plain, resource: String, generation: GenerationIdentifier
    ) {
        self.format = format
        self.key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: secret,
            info: Data((format.isEncrypted ? "spool.block" : "spool.seal").utf8) + Data(resource.utf8)
                + generation.data,
            outputByteCount: 32)
    }

    /// Seals what has landed of a block, which lies in the file as it is: `bytes`, from its start.
    ///
    /// - Throws: ``CacheError`` with code `storage` should the cipher refuse, which it does for no block up to 64 KiB.
    func seal(_ bytes: UnsafeRawBufferPointer, index: Int64) throws(CacheError) -> BlockRecord {
        let nonce = AES.GCM.Nonce()
        guard let seal = makeSeal(bytes, index: index, nonce: nonce) else { throw Self.refusal(bytes, index) }
        return BlockRecord(index: index, length: Int32(bytes.count), seal: seal)
    }

    /// Enciphers what has landed of a block, and calls `body` with what is to lie in the file in place of it.
    ///
    /// - Throws: As ``seal(_:index:)``; what `body` throws.
    func encrypt(
        _ bytes: UnsafeRawBufferPointer, index: Int64, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> BlockRecord {
        guard format.isEncrypted else {
            try body(bytes)
            return try seal(bytes, index: index)
        }
        let sealed: BlockFormat.Sealed
        do {
            sealed = try format.seal(bytes, using: key, authenticating: Self.header(index, bytes.count))
        } catch {
            throw Self.refusal(bytes, index, underlying: error)
        }
        guard let seal = BlockSeal(sealed.nonce + sealed.tag) else { throw Self.refusal(bytes, index) }
        try sealed.ciphertext.withUnsafeBytes { try body($0) }
        return BlockRecord(index: index, length: Int32(bytes.count), seal: seal)
    }

    private static func refusal(
        _ bytes: UnsafeRawBufferPointer, _ index: Int64, underlying: (any Error)? = nil
    ) -> CacheError {
        CacheError(
            .storage, "block \(index) of \(bytes.count.counted("byte")) could not be sealed", underlying: underlying)
    }

    /// Whether `bytes` are what lies in the file for `record`, as this resource, generation, block and length.
    func verifies(_ bytes: UnsafeRawBufferPointer, as record: BlockRecord) -> Bool {
        if format.isEncrypted { return open(bytes, as: record) != nil }
        guard bytes.count == Int(record.length) else { return false }
        let nonce = record.seal.withUnsafeBytes { try? AES.GCM.Nonce(data: $0[..<BlockSeal.nonceByteCount]) }
        guard let nonce, let seal = makeSeal(bytes, index: record.index, nonce: nonce) else { return false }
        return seal.isEqualInConstantTime(to: record.seal)
    }

    /// The bytes that were received, of what lies in the file for `record`; nil if that is something else.
    func open(_ bytes: UnsafeRawBufferPointer, as record: BlockRecord) -> Data? {
        guard bytes.count == Int(record.length) else { return nil }
        if !format.isEncrypted { return verifies(bytes, as: record) ? Data(bytes) : nil }
        let header = Self.header(record.index, bytes.count)
        return record.seal.withUnsafeBytes { seal in
            let (nonce, tag) = (seal[..<BlockSeal.nonceByteCount], seal[BlockSeal.nonceByteCount...])
            do {
                return try format.open(bytes, nonce: nonce, tag: tag, using: key, authenticating: header)
            } catch {
                // What does not open is not what was received: the caller gives it up.
                return nil
            }
        }
    }

    private static func header(_ index: Int64, _ count: Int) -> Data {
        withUnsafeBytes(of: (index.bigEndian, Int64(count).bigEndian)) { Data($0) }
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
