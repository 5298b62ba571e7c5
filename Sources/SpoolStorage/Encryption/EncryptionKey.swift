import Crypto
public import Foundation
import Synchronization

/// The key with which a cache's files and catalog are encrypted.
///
/// Store it where other users can't read it: in the Keychain on Apple platforms, or in a separate file on a server. If
/// the key is lost, only the stored media is lost, and is fetched again.
public struct EncryptionKey: Sendable {
    /// The number of bytes in a key.
    public static let byteCount = 32

    private let derivation: Derivation
    /// The bytes of a key that is not derived.
    private var fixed: Data?

    /// Creates a key from 256 random bits, such as those of CryptoKit's `SymmetricKey(size: .bits256)`.
    ///
    /// - Parameter bytes: The bytes of the key. Opening the cache fails with `.invalidArgument` if their number is not
    ///   ``byteCount``.
    public init(bytes: Data) {
        self.init { _ in bytes }
        fixed = bytes
    }

    /// Creates a key that is derived from something else, such as a passphrase.
    ///
    /// - Parameter derive: A closure that returns ``byteCount`` bytes for a cache's salt. A salt consists of 16 random
    ///   bytes, and does not change as long as the cache has the same key. The result for the last salt is cached. The
    ///   closure is called on a thread that may block. Its errors are rethrown when the cache is opened.
    public init(deriving derive: @escaping @Sendable (_ salt: Data) throws -> Data) {
        derivation = Derivation(derive: derive)
    }

    /// Returns whether both keys are the same. A derived key equals only its copies.
    package func isEqual(to other: EncryptionKey) -> Bool {
        fixed.map { $0 == other.fixed } ?? (derivation === other.derivation)
    }

    /// Returns the bytes of the key for a salt.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` if the number of bytes is wrong. Also throws errors from
    ///   the closure.
    func bytes(salt: Data) throws -> Data {
        let bytes = try derivation.bytes(salt: salt)
        guard bytes.count == Self.byteCount else {
            throw CacheError(
                .invalidArgument,
                "an encryption key has \(Self.byteCount) bytes (256 bits), but this key has \(bytes.count)")
        }
        return bytes
    }

    /// The closure with its last result, which is cached because the closure may be intentionally slow.
    private final class Derivation: Sendable {
        let derive: @Sendable (Data) throws -> Data
        let last = Mutex<(salt: Data, bytes: Data)?>(nil)

        init(derive: @escaping @Sendable (Data) throws -> Data) { self.derive = derive }

        func bytes(salt: Data) throws -> Data {
            if let last = last.withLock({ $0 }), last.salt == salt { return last.bytes }
            let bytes = try derive(salt)
            last.withLock { $0 = (salt, bytes) }
            return bytes
        }
    }
}

/// The 256 random bits from which a cache derives all keys for its checksums and ciphers, and the format of its blocks.
///
/// In an unencrypted cache, the catalog contains the secret, which only distinguishes damaged bytes from received ones.
/// In an encrypted cache, the secret is itself encrypted with the cache's key. If the cache's key is changed, the
/// secret is changed as well.
struct CacheSecret: Sendable {
    /// The format of blocks.
    let format: BlockFormat
    let key: SymmetricKey

    /// Creates a secret, by default a random one.
    init(format: BlockFormat, key: SymmetricKey = SymmetricKey(size: .bits256)) {
        self.format = format
        self.key = key
    }

    /// Returns a key for one purpose.
    func derive(_ purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Data(purpose.utf8), outputByteCount: 32)
    }

    /// Returns the sealer of one version's blocks.
    func sealer(of generation: GenerationIdentifier, key: CacheKey) -> BlockSealer {
        BlockSealer(secret: self.key, format: format, resource: key.hash, generation: generation)
    }

    // MARK: - Encrypting the secret

    /// Returns the secret, encrypted with `key`. The first bytes identify the format.
    func sealed(with key: SymmetricKey) throws -> Data {
        let head = Data([Self.version, UInt8(truncatingIfNeeded: format.rawValue)])
        let bytes = self.key.withUnsafeBytes { Data($0) }
        guard let box = try AES.GCM.seal(bytes, using: key, authenticating: head).combined else {
            throw CacheError(.storage, "the cache's secret could not be encrypted")
        }
        return head + box
    }

    /// Creates a secret by decrypting the result of ``sealed(with:)``; `nil` if the data was encrypted with a different
    /// key, or has a different format.
    init?(opening data: Data, with key: SymmetricKey) {
        let head = data.prefix(Self.headByteCount)
        guard head.count == Self.headByteCount, head.first == Self.version,
            let format = BlockFormat(rawValue: Int64(head[head.startIndex + 1])),
            let box = try? AES.GCM.SealedBox(combined: data.dropFirst(Self.headByteCount)),  // Fails if it is invalid.
            let bytes = try? AES.GCM.open(box, using: key, authenticating: head),  // Fails if the key is different.
            bytes.count == 32
        else { return nil }
        self.init(format: format, key: SymmetricKey(data: bytes))
    }

    private static let version: UInt8 = 1
    private static let headByteCount = 2
}

/// The encryption record of a catalog: a salt, and the cache's secret, which is encrypted with the user's key.
struct EncryptionMark {
    private static let saltByteCount = 16

    let data: Data

    /// Creates a record from its stored bytes.
    init(_ data: Data) { self.data = data }

    /// Creates a record that contains a secret, encrypted with a key.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` for an invalid key. Also throws errors from the key
    ///   derivation.
    init(_ secret: CacheSecret, for key: EncryptionKey) throws {
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Data($0) }
        data = try salt + secret.sealed(with: Self.envelopeKey(key, salt: salt))
    }

    /// Returns the decrypted secret.
    ///
    /// - Throws: ``CacheError`` with code `wrongEncryptionKey` if `key` is not the cache's key. Also throws the errors
    ///   from the key derivation.
    func secret(_ key: EncryptionKey, path: String) throws -> CacheSecret {
        let salt = data.prefix(Self.saltByteCount)
        let envelopeKey = try Self.envelopeKey(key, salt: Data(salt))
        guard let secret = CacheSecret(opening: Data(data.dropFirst(Self.saltByteCount)), with: envelopeKey) else {
            throw CacheError(
                .wrongEncryptionKey, "“\(path)” is encrypted with a different key than the one that was given")
        }
        return secret
    }

    private static func envelopeKey(_ key: EncryptionKey, salt: Data) throws -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: try key.bytes(salt: salt)), salt: salt,
            info: Data("spool.envelope".utf8), outputByteCount: 32)
    }
}
