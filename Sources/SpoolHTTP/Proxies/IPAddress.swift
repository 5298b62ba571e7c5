#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// An address in numbers: 4 bytes or 16, as `inet_pton` reads them (RFC 4291 §2.2).
struct IPAddress: Hashable {
    let bytes: [UInt8]

    /// Nil if `text` is a name.
    init?(_ text: Substring) {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, String(text), &bytes) == 1 {
                self.bytes = bytes
                return
            }
        }
        return nil
    }
}
