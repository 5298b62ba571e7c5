#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// An address in numbers: 4 bytes or 16, as `inet_pton` reads them (RFC 4291 §2.2).
package struct IPAddress: Hashable, Sendable {
    /// Most significant first; an IPv4 address within IPv6 (`::ffff:a.b.c.d`) has 4.
    package let bytes: [UInt8]

    /// Nil if `text` is a name.
    package init?(_ text: Substring) {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, String(text), &bytes) == 1 {
                self.bytes = Self.unmapped(bytes)
                return
            }
        }
        return nil
    }

    /// Without the prefix of an IPv4 address within IPv6 (RFC 4291 §2.5.5.2), so that both forms of one are equal.
    private static func unmapped(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count == 16, bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else {
            return bytes
        }
        return Array(bytes.suffix(4))
    }
}
