import Crypto
import Foundation

/// The 256 random bits from which a cache derives all keys of its checksums and ciphers, and the format of its blocks.
///
/// In an unencrypted cache, the catalog contains it, and it only distinguishes damaged bytes from received ones. In an
/// encrypted cache, it is itself encrypted with the cache's key. A cache that is given another key gets another secret.
struct CacheSecret: Sendable {
    /// The format of blocks.
    let format: BlockFormat
    let key: SymmetricKey

    /// Creates a secret, by default a random one.
    init(format: BlockFormat, key: SymmetricKey = SymmetricKey(size: .bits256)) {
        self.format = format
        self.key = key
    }

    /// A key for one purpose.
    func derive(_ purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Data(purpose.utf8), outputByteCount: 32)
    }

    /// The sealer of one version's blocks.
    func sealer(of generation: GenerationIdentifier, key: CacheKey) -> BlockSealer {
        BlockSealer(secret: self.key, format: format, resource: key.hash, generation: generation)
    }

    // MARK: - The envelope

    /// The secret, encrypted with `key`. The first bytes identify the format.
    func sealed(with key: SymmetricKey) throws -> Data {
        let head = Data([Self.version, UInt8(truncatingIfNeeded: format.rawValue)])
        let bytes = self.key.withUnsafeBytes { Data($0) }
        guard let box = try AES.GCM.seal(bytes, using: key, authenticating: head).combined else {
            throw CacheError(.storage, "the cache's secret could not be encrypted")
        }
        return head + box
    }

    /// Decrypts the result of ``sealed(with:)``; `nil` if it was made with another key, or is something else.
    init?(opening data: Data, with key: SymmetricKey) {
        let head = data.prefix(Self.headByteCount)
        guard head.count == Self.headByteCount, head.first == Self.version,
            let format = BlockFormat(rawValue: Int64(head[head.startIndex + 1])),
            let box = try? AES.GCM.SealedBox(combined: data.dropFirst(Self.headByteCount)),
            let bytes = try? AES.GCM.open(box, using: key, authenticating: head), bytes.count == 32
        else { return nil }
        self.init(format: format, key: SymmetricKey(data: bytes))
    }

    private static let version: UInt8 = 1
    private static let headByteCount = 2
}
