import Crypto
import Foundation

/// The random 256 bits from which everything that one cache seals or enciphers has its keys, and how its blocks lie.
///
/// In a plain cache it stands in the catalog and tells damage from what was received. In an encrypted one it is itself
/// enciphered with the person's key. A cache that is given another key gets another secret, too, and keeps the former one
/// beside it until all that was made with that is made anew.
struct CacheSecret: Sendable {
    /// Counts the secrets that a cache has had.
    var number: Int64
    /// How the blocks lie that are sealed with it.
    var format: BlockFormat
    var key: SymmetricKey

    /// Thought up.
    init(number: Int64, format: BlockFormat) {
        self.init(number: number, format: format, key: SymmetricKey(size: .bits256))
    }

    init(number: Int64, format: BlockFormat, key: SymmetricKey) {
        self.number = number
        self.format = format
        self.key = key
    }

    /// A key for one purpose.
    func derive(_ purpose: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Data(purpose.utf8), outputByteCount: 32)
    }

    // MARK: - As it is written down

    /// The secret in an envelope that only `key` opens. Whoever may open it again says so by its first bytes.
    func sealed(with key: SymmetricKey) throws -> Data {
        let head = self.head
        let bytes = self.key.withUnsafeBytes { Data($0) }
        guard let box = try AES.GCM.seal(bytes, using: key, authenticating: head).combined else {
            throw CacheError(.storage, "the cache's secret could not be enciphered")
        }
        return head + box
    }

    /// Opens what ``sealed(with:)`` made; nil if the key does not, or it is something else.
    init?(opening data: Data, with key: SymmetricKey) {
        let head = data.prefix(Self.headByteCount)
        guard head.count == Self.headByteCount, head.first == Self.version,
            let format = BlockFormat(rawValue: Int64(head[head.startIndex + 1])),
            let box = try? AES.GCM.SealedBox(combined: data.dropFirst(Self.headByteCount)),
            let bytes = try? AES.GCM.open(box, using: key, authenticating: head), bytes.count == 32
        else { return nil }
        let number = head.dropFirst(2).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(number: Int64(truncatingIfNeeded: number), format: format, key: SymmetricKey(data: bytes))
    }

    private static let version: UInt8 = 1
    private static let headByteCount = 10

    private var head: Data {
        var head = Data([Self.version, UInt8(truncatingIfNeeded: format.rawValue)])
        withUnsafeBytes(of: number.bigEndian) { head.append(contentsOf: $0) }
        return head
    }
}
