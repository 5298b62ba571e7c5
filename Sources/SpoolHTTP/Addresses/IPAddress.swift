import Foundation

/// An IP address: 4 or 16 bytes, in the text form that `inet_pton` parses (RFC 4291 §2.2).
package struct IPAddress: Hashable, Sendable {
    /// The bytes, most significant first. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) has 4 bytes.
    package let bytes: [UInt8]

    /// Parses an address; `nil` if `text` is a name.
    package init?(_ text: Substring) {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, String(text), &bytes) == 1 {
                self.init(bytes: bytes)
                return
            }
        }
        return nil
    }

    /// Creates an address from its bytes, most significant first; `nil` unless there are 4 or 16.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = Self.unmapped(bytes)
    }

    /// Returns the bytes without the prefix of an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), so that both forms are
    /// equal.
    private static func unmapped(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count == 16, bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else {
            return bytes
        }
        return Array(bytes.suffix(4))
    }
}

/// A block of addresses with the same first bits, such as `10.0.0.0/8` or `[2001:db8::]/32`, or a single address.
package struct AddressBlock: Hashable, Sendable {
    private let address: IPAddress
    /// The number of bits that the addresses have in common.
    private let bits: Int

    /// Parses an address, optionally with `/` and a prefix length in bits; `nil` if `text` is not a block.
    package init?(_ text: Substring) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first else { return nil }
        let name = first.hasPrefix("[") && first.hasSuffix("]") ? first.dropFirst().dropLast() : first
        guard let address = IPAddress(name) else { return nil }
        let length = address.bytes.count * 8
        // The prefix length of a block of IPv4-mapped addresses counts all 128 bits.
        let prefix = length == 32 && name.contains(":") ? 96 : 0
        var bits = length
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = Int(parts[1]),
                (prefix...prefix + length).contains(number)
            else { return nil }
            bits = number - prefix
        }
        (self.address, self.bits) = (address, bits)
    }

    /// Returns whether the block contains an address.
    package func contains(_ other: IPAddress) -> Bool {
        guard other.bytes.count == address.bytes.count else { return false }
        let whole = bits / 8
        guard address.bytes[..<whole] == other.bytes[..<whole] else { return false }
        let rest = bits % 8
        return rest == 0 || address.bytes[whole] >> (8 - rest) == other.bytes[whole] >> (8 - rest)
    }
}
