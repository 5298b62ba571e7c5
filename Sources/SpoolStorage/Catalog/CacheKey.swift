import Crypto
import Foundation

/// The stable name of a media file in the cache: two addresses with one key share their bytes.
///
/// Only a SHA-256 hash of the name is kept, so names of any length, case or script neither collide nor escape into
/// a path, and no signed query or token is written anywhere.
public struct CacheKey: Hashable, Sendable, CustomStringConvertible {
    /// The hash of the name, 64 hexadecimal digits.
    public let hash: String

    /// Makes the key of `name`; names that differ in any byte give different keys.
    public init(name: String) {
        self.hash = SHA256.hash(data: Data(name.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// The key with this hash, which the cache has recorded.
    package init(hash: String) { self.hash = hash }

    /// The hash.
    public var description: String { hash }
}
