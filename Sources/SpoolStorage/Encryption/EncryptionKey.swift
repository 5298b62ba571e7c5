public import Foundation
import Synchronization

/// What a cache's files and catalog are enciphered with.
///
/// Keep it where others can't read it: on Apple's platforms in the Keychain, on a server in a file of its own. Who loses it
/// loses what is stored, and nothing else: media is fetched again.
public struct EncryptionKey: Sendable {
    /// Bytes in a key.
    public static let byteCount = 32

    private let derivation: Derivation

    /// A key of 256 random bits, such as those of CryptoKit's `SymmetricKey(size: .bits256)`.
    ///
    /// - Parameter bytes: ``byteCount`` bytes; another number makes opening fail with `.invalidArgument`.
    public init(bytes: Data) { self.init { _ in bytes } }

    /// A key that is worked out from something else, such as a passphrase.
    ///
    /// - Parameter derive: Gives ``byteCount`` bytes for a cache's salt: 16 random bytes, the same as long as the cache has
    ///   the key. Asked once for each salt, on a thread that may block. What it throws, opening throws.
    public init(deriving derive: @escaping @Sendable (_ salt: Data) throws -> Data) {
        derivation = Derivation(derive: derive)
    }

    /// - Throws: ``CacheError`` with code `invalidArgument` where it has another length; what the closure throws.
    func bytes(salt: Data) throws -> Data {
        let bytes = try derivation.bytes(salt: salt)
        guard bytes.count == Self.byteCount else {
            throw CacheError(
                .invalidArgument,
                "an encryption key has \(Self.byteCount) bytes (256 bits); this one has \(bytes.count)")
        }
        return bytes
    }

    /// Remembers what came out last: it may take long on purpose.
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
