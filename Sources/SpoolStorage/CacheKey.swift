import Crypto
import Foundation

/// The stable name of a resource in the cache. Two URLs with the same key share their bytes.
///
/// Only a SHA-256 hash of the name is stored. Names of any length, case or script therefore neither collide nor become
/// part of a path, and no signed query or token is stored. A key can be stored as text or with `Codable`, and restored
/// from either.
public struct CacheKey: Hashable, Sendable, Codable, RawRepresentable, CustomStringConvertible {
    /// The hash of the name, as 64 lower-case hexadecimal digits.
    public let rawValue: String

    /// Creates a key from `name`. Names that differ in any byte have different keys.
    public init(_ name: String) {
        self.rawValue = SHA256.hash(data: Data(name.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    /// Creates a key from its ``rawValue``; `nil` if the value is not a valid hash.
    public init?(rawValue: String) {
        let isHash =
            rawValue.utf8.count == 64
            && rawValue.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        guard isHash else { return nil }
        self.rawValue = rawValue
    }

    /// Creates a key from a hash that the cache has recorded.
    package init(hash: String) { self.rawValue = hash }

    /// The hash.
    package var hash: String { rawValue }

    /// The hash.
    public var description: String { rawValue }
}
