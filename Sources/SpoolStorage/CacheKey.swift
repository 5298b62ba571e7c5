import Crypto
import Foundation

/// The stable name of a resource in the cache. Two URLs with one key share their bytes.
///
/// Only a SHA-256 hash of the name is stored. Names of any length, case or script therefore neither collide nor become
/// part of a path, and no signed query or token is stored. A key can be stored as text or by `Codable`, and created
/// again from that.
public struct CacheKey: Hashable, Sendable, Codable, RawRepresentable, CustomStringConvertible {
    /// The hash of the name, 64 lower-case hexadecimal digits.
    public let rawValue: String

    /// Creates the key of `name`. Names that differ in any byte have different keys.
    public init(_ name: String) {
        self.rawValue = SHA256.hash(data: Data(name.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// Creates the key with this ``rawValue``; `nil` if no key can have it.
    public init?(rawValue: String) {
        let isHash =
            rawValue.utf8.count == 64
            && rawValue.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        guard isHash else { return nil }
        self.rawValue = rawValue
    }

    /// The key with this hash, which the cache has recorded.
    package init(hash: String) { self.rawValue = hash }

    /// The hash.
    package var hash: String { rawValue }

    /// The hash.
    public var description: String { rawValue }
}
