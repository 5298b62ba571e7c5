#if Proxy
import SpoolHTTP

/// The special ranges of IP addresses, which do not belong to the public internet.
extension IPAddress {
    /// Parses `127.0.0.1`, `::1` or `[::1]`, and ignores a zone after `%`. The result is `nil` for other text,
    /// including `127.1`.
    init?(host text: String) {
        let text = text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...]
        self.init(text.prefix { $0 != "%" })
    }

    /// Whether the address is a loopback address of this machine.
    var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// Whether the address denotes any address of this machine.
    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// Whether the address is outside the public internet (RFC 6890).
    ///
    /// Special addresses are loopback, private, shared, documentation, multicast and reserved addresses, and link-local
    /// addresses, at which cloud platforms provide credentials to virtual machines.
    var isSpecial: Bool {
        if bytes.count == 4 { return Self.isSpecial4(bytes) }
        // Addresses with the prefix 64:ff9b::/96 represent IPv4 addresses (RFC 6052).
        if bytes.starts(with: [0, 0x64, 0xFF, 0x9B]), bytes[4..<12].allSatisfy({ $0 == 0 }) {
            return Self.isSpecial4(Array(bytes[12...]))
        }
        return Self.isSpecial6(bytes)
    }

    private static func isSpecial4(_ bytes: [UInt8]) -> Bool {
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): true
        case (100, 64...127, _), (169, 254, _), (172, 16...31, _), (192, 168, _), (198, 18...19, _): true
        // The address at which Azure provides services to its virtual machines.
        case (168, 63, 129): bytes[3] == 16
        case (192, 0, 0), (192, 0, 2), (192, 88, 99), (198, 51, 100), (203, 0, 113): true
        default: false
        }
    }

    private static func isSpecial6(_ bytes: [UInt8]) -> Bool {
        // Apart from 64:ff9b::/96, all public addresses are in 2000::/3.
        if bytes[0] & 0xE0 != 0x20 { return true }
        // These ranges in 2000::/3 are special: 2001::/23 (with Teredo), 2001:db8::/32, 2002::/16 (6to4, which embeds
        // any IPv4 address) and 3fff::/20.
        if bytes[0] == 0x20, bytes[1] == 0x01, bytes[2] < 2 { return true }
        if bytes.starts(with: [0x20, 0x01, 0x0D, 0xB8]) || bytes.starts(with: [0x20, 0x02]) { return true }
        return bytes[0] == 0x3F && bytes[1] == 0xFF && bytes[2] < 0x10
    }
}
#endif
