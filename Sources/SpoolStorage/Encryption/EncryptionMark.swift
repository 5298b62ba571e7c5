import Crypto
import Foundation

/// What says in a catalog that it is encrypted: a salt, and the cache's secret in an envelope that the person's key opens.
struct EncryptionMark {
    private static let saltByteCount = 16

    let data: Data

    /// Reads what is recorded.
    init(_ data: Data) { self.data = data }

    /// Puts a secret into an envelope for a key.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` for a key that is none; what deriving it throws.
    init(_ secret: CacheSecret, for key: EncryptionKey) throws {
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Data($0) }
        data = try salt + secret.sealed(with: Self.envelopeKey(key, salt: salt))
    }

    /// The secret.
    ///
    /// - Throws: ``CacheError`` with code `keyRefused` if the key is not the one; what deriving it throws.
    func secret(_ key: EncryptionKey, path: String) throws -> CacheSecret {
        let salt = data.prefix(Self.saltByteCount)
        let envelopeKey = try Self.envelopeKey(key, salt: Data(salt))
        guard let secret = CacheSecret(opening: Data(data.dropFirst(Self.saltByteCount)), with: envelopeKey) else {
            throw CacheError(.keyRefused, "“\(path)” is encrypted with another key than the one that was given")
        }
        return secret
    }

    private static func envelopeKey(_ key: EncryptionKey, salt: Data) throws -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: try key.bytes(salt: salt)), salt: salt,
            info: Data("spool.envelope".utf8), outputByteCount: 32)
    }
}
