import Foundation

/// The authority of a URL: host and port, without user information (RFC 3986 §3.2).
///
/// This type is stricter than the RFC, but allows every host to which a client can connect. Names consist of letters,
/// digits, `-`, `_` and dots. An IPv6 address is in brackets and has no zone. Numbers that some resolvers read as an IP
/// address (`127.1`) count as names.
package struct HostAndPort: Hashable, Sendable {
    /// A name or an IP address in lower case, with brackets for IPv6.
    package let host: String
    /// The port, from 1 to 65535, or `nil` if it is missing or empty.
    package let port: Int?

    /// The host and the port, as in a URL.
    package var text: String { port.map { "\(host):\($0)" } ?? host }

    /// Parses an authority.
    ///
    /// - Throws: ``AddressError`` with code `host`, `port` or `userInformation`.
    package init(_ authority: Substring) throws(AddressError) {
        // The message does not contain the authority, because it may contain a password.
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw AddressError(
                .userInformation, "a URL with a user name or a password can't be requested through the proxy")
        }
        let name = String(authority.prefix(300)).escapedForMessage
        let bytes = authority.utf8
        let hostEnd: String.Index
        if bytes.first == UInt8(ascii: "[") {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else {
                throw AddressError(.host, "the host of \(name) starts with a bracket that is not closed")
            }
            hostEnd = bytes.index(after: bracket)
            let address = String(authority[..<hostEnd].dropFirst().dropLast())
            guard Self.isIPv6(address) else {
                throw AddressError(.host, "the host of \(name) is in brackets, but is not an IPv6 address")
            }
        } else {
            hostEnd = bytes.lastIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            guard Self.isName(bytes[..<hostEnd]) else {
                let reason = authority[..<hostEnd].isEmpty ? "is empty" : "is neither a name nor an IP address"
                throw AddressError(.host, "the host of \(name.isEmpty ? "a URL" : name) \(reason)")
            }
        }
        host = authority[..<hostEnd].lowercased()
        port = try Self.port(authority[hostEnd...], of: name)
    }

    /// Parses `:port` or an empty string.
    private static func port(_ text: Substring, of name: String) throws(AddressError) -> Int? {
        guard let colon = text.utf8.first else { return nil }
        let digits = text.utf8.dropFirst()
        guard colon == UInt8(ascii: ":"), digits.allSatisfy(\.isASCIIDigit) else {
            throw AddressError(.port, "the port of \(name) is not a number")
        }
        if digits.isEmpty { return nil }
        let significant = digits.drop { $0 == UInt8(ascii: "0") }
        guard significant.count <= 5, let port = Int(Substring(significant)), port <= 65535 else {
            throw AddressError(.port, "the port of \(name) is not between 1 and 65535")
        }
        return port
    }

    /// Returns whether the bytes are a host name: labels of 1 to 63 letters, digits, `-` and `_`, separated by dots. A
    /// name has at most 253 bytes, and may end with a dot (RFC 1035 §2.3.4).
    private static func isName(_ bytes: Substring.UTF8View) -> Bool {
        let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes
        guard name.count <= 253 else { return false }
        return name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
            !label.isEmpty && label.count <= 63
                && label.allSatisfy {
                    $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                }
        }
    }

    private static func isIPv6(_ text: String) -> Bool {
        guard text.utf8.allSatisfy({ $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }) else {
            return false
        }
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }
}
