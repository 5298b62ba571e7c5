import ByteRanges
import Crypto
import Foundation

#if os(Linux)
import CSystemFiles
#endif

/// The checksums of one version's blocks, which detect a torn, flipped, moved or forged block before a player receives
/// it.
///
/// A checksum is the tag of AES-256-GCM (NIST SP 800-38D) with a new random nonce. The key belongs to the version. It
/// is derived with HKDF-SHA256 (RFC 5869) from the cache's secret, the hash of the resource's key, and the version's
/// random identifier. The checksum therefore covers the resource, version, block, length and bytes, so no block can
/// pass for another.
///
/// In an unencrypted cache, the block's bytes are authenticated, but not encrypted. The message is a header with the
/// block index and the stored length, and its ciphertext is discarded. In an encrypted cache, the bytes are the
/// message, and the header is authenticated. There, the cipher may also be ChaCha20-Poly1305 (RFC 8439).
///
/// The sealer is pure except for the random nonce. Several threads may use it concurrently.
struct BlockSealer: Sendable {
    private let key: SymmetricKey
    /// The format of blocks in the file.
    let format: BlockFormat

    /// Creates a sealer, and derives the key of one version.
    ///
    /// - Parameters:
    ///   - secret: The cache's secret of 256 bits.
    ///   - resource: The hash of the resource's cache key.
    ///   - generation: The version's identifier.
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

    /// Creates the checksum for the stored part of a block whose bytes are unencrypted in the file.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the cipher fails, which never happens for a block of at most 64
    ///   KiB.
    func seal(_ bytes: UnsafeRawBufferPointer, index: Int64) throws(CacheError) -> BlockRecord {
        let nonce = AES.GCM.Nonce()
        guard let seal = makeSeal(bytes, index: index, nonce: nonce) else { throw Self.refusal(bytes, index) }
        return BlockRecord(index: index, length: Int32(bytes.count), seal: seal)
    }

    /// Creates the checksum of the stored part of a block, and calls `body` with the bytes to write to the file. These
    /// bytes are encrypted if the format requires it.
    ///
    /// - Throws: The errors from ``seal(_:index:)`` and `body`.
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
            .storage, "block \(index) of \(bytes.count.counted("byte")) could not be encrypted", underlying: underlying)
    }

    /// Returns whether `bytes` from the file match `record`: the same resource, version, block and length.
    func verifies(_ bytes: UnsafeRawBufferPointer, as record: BlockRecord) -> Bool {
        if format.isEncrypted { return open(bytes, as: record) != nil }
        guard bytes.count == Int(record.length) else { return false }
        let nonce = record.seal.withUnsafeBytes { try? AES.GCM.Nonce(data: $0[..<BlockSeal.nonceByteCount]) }
        guard let nonce, let seal = makeSeal(bytes, index: record.index, nonce: nonce) else { return false }
        return seal.isEqualInConstantTime(to: record.seal)
    }

    /// Returns the received bytes, decoded from the `bytes` in the file; `nil` if these do not match `record`.
    func open(_ bytes: UnsafeRawBufferPointer, as record: BlockRecord) -> Data? {
        guard bytes.count == Int(record.length) else { return nil }
        if !format.isEncrypted { return verifies(bytes, as: record) ? Data(bytes) : nil }
        let header = Self.header(record.index, bytes.count)
        return record.seal.withUnsafeBytes { seal in
            let (nonce, tag) = (seal[..<BlockSeal.nonceByteCount], seal[BlockSeal.nonceByteCount...])
            do {
                return try format.open(bytes, nonce: nonce, tag: tag, using: key, authenticating: header)
            } catch {
                // The bytes in the file are damaged, and the caller discards them.
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
    /// Returns whether both checksums are equal. All bytes are compared, even after a difference, so that the duration
    /// reveals nothing.
    fileprivate func isEqualInConstantTime(to other: BlockSeal) -> Bool {
        withUnsafeBytes { left in
            other.withUnsafeBytes { right in zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0 }
        }
    }
}

/// The checksum of a block: a 12-byte nonce and a 16-byte tag. ``BlockSealer`` creates and checks it.
struct BlockSeal: Hashable, Sendable {
    /// The number of bytes in a checksum: the nonce, then the tag.
    static let byteCount = 28
    static let nonceByteCount = 12

    // The 28 bytes, in the stored order. They do not need a heap allocation.
    private var bytes0, bytes8, bytes16: UInt64
    private var bytes24: UInt32

    /// Creates a checksum from its stored bytes; `nil` unless there are exactly 28 bytes.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        bytes0 = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
        bytes8 = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        bytes16 = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        bytes24 = bytes.loadUnaligned(fromByteOffset: 24, as: UInt32.self)
    }

    /// Creates a checksum from its stored bytes; `nil` unless there are exactly 28 bytes.
    init?(_ data: Data) {
        guard let seal = data.withUnsafeBytes({ BlockSeal($0) }) else { return nil }
        self = seal
    }

    /// The 28 bytes to store.
    var data: Data { withUnsafeBytes { Data($0) } }

    /// Calls `body` with the 28 bytes to store.
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try Swift.withUnsafeBytes(of: (bytes0, bytes8, bytes16, bytes24)) { all in
            try body(UnsafeRawBufferPointer(rebasing: all[..<Self.byteCount]))
        }
    }
}

/// The format of a block's bytes in a media file. The numbers are recorded, so no number may ever be changed or reused.
enum BlockFormat: Int64, Hashable, Sendable, CaseIterable {
    /// The received bytes.
    case plain = 1
    /// The bytes, encrypted with AES-256-GCM.
    case aesGCM = 2
    /// The bytes, encrypted with ChaCha20-Poly1305, which is faster on a processor without instructions for AES.
    case chaChaPoly = 3

    /// Whether the key is needed to read the bytes.
    var isEncrypted: Bool { self != .plain }

    /// The format that this machine uses to encrypt a cache.
    static let encrypted: BlockFormat = hasAES ? .aesGCM : .chaChaPoly

    private static var hasAES: Bool {
        #if os(Linux)
        c_system_files_has_aes() != 0
        #else
        // All Apple processors that this package supports have AES instructions.
        true
        #endif
    }
}

/// The cipher of an encrypted cache, for its blocks and the values of its catalog.
extension BlockFormat {
    /// Encrypted bytes, with their nonce and authentication tag.
    struct Sealed {
        var nonce: Data
        /// The ciphertext, which is as long as the bytes.
        var ciphertext: Data
        var tag: Data
    }

    /// Encrypts bytes.
    ///
    /// - Parameters:
    ///   - nonce: A nonce of 12 bytes that is unique with this key; `nil` for a random one.
    ///   - header: Other bytes to authenticate.
    /// - Throws: Errors from the cipher.
    func seal(
        _ bytes: some DataProtocol, using key: SymmetricKey, nonce: Data? = nil, authenticating header: Data
    ) throws -> Sealed {
        if self == .chaChaPoly {
            let nonce = try nonce.map { try ChaChaPoly.Nonce(data: $0) } ?? ChaChaPoly.Nonce()
            let box = try ChaChaPoly.seal(bytes, using: key, nonce: nonce, authenticating: header)
            return Sealed(nonce: Data(box.nonce), ciphertext: box.ciphertext, tag: box.tag)
        }
        let nonce = try nonce.map { try AES.GCM.Nonce(data: $0) } ?? AES.GCM.Nonce()
        let box = try AES.GCM.seal(bytes, using: key, nonce: nonce, authenticating: header)
        return Sealed(nonce: Data(box.nonce), ciphertext: box.ciphertext, tag: box.tag)
    }

    /// Decrypts the result of ``seal(_:using:nonce:authenticating:)``.
    ///
    /// - Throws: Errors from the cipher, if any part, the header or the key differs, or a length is invalid.
    func open(
        _ ciphertext: some DataProtocol, nonce: some DataProtocol, tag: some DataProtocol, using key: SymmetricKey,
        authenticating header: Data
    ) throws -> Data {
        if self == .chaChaPoly {
            let nonce = try ChaChaPoly.Nonce(data: nonce)
            let box = try ChaChaPoly.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag)
            return try ChaChaPoly.open(box, using: key, authenticating: header)
        }
        let nonce = try AES.GCM.Nonce(data: nonce)
        let box = try AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag)
        return try AES.GCM.open(box, using: key, authenticating: header)
    }
}
