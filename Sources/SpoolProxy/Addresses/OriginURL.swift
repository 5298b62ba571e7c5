#if Proxy
package import Foundation

/// An `http` or `https` URL that the proxy can ask an origin for: a scheme, a host that may exist, a port, path and query.
///
/// Path and query are kept byte for byte; scheme and host are in lower case (RFC 3986 §6.2.2.1). A fragment is dropped: no
/// server gets one. Does not resolve names: whether a host may be asked is decided where it is connected to.
package struct OriginURL: Hashable, Sendable, CustomStringConvertible {
    /// What the origin speaks.
    package enum Scheme: String, Hashable, Sendable {
        case http, https

        /// The port where a URL has none.
        package var defaultPort: Int { self == .http ? 80 : 443 }

        init?(_ text: some StringProtocol) { self.init(rawValue: text.lowercased()) }
    }

    /// What the origin speaks.
    package let scheme: Scheme
    /// A name or an IP address, in lower case; IPv6 in brackets.
    package let host: String
    /// The port if the URL has one, be it the default one.
    package let port: Int?
    /// Path and query: begins with `/`, as in a request's first line.
    package let target: String

    /// - Parameters:
    ///   - authority: Host and port; a port that is empty is none (RFC 3986 §3.2.3).
    ///   - target: An empty path becomes `/`.
    /// - Throws: ``AddressError`` with code `host`, `port`, `userInformation` or `characters`.
    init(scheme: Scheme, authority: Substring, target: Substring) throws(AddressError) {
        let parts = try HostAndPort(authority)
        let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
        let hidden = { "\(scheme.rawValue)://\(parts.text)\(Substring(path))" }
        for byte in target.utf8 where byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "#") {
            throw AddressError(
                .characters,
                "\(hidden().escapedForMessage) has white space, a control character or a number sign in path or query")
        }
        self.scheme = scheme
        host = parts.host
        port = parts.port
        self.target = path.first == UInt8(ascii: "/") ? String(target) : "/" + target
    }

    /// Reads an absolute URL as a client does before it asks: dot segments are resolved, white space and control characters
    /// percent-encoded.
    ///
    /// - Throws: ``AddressError`` for another scheme, a user, or a host or port that cannot be.
    package init(_ text: some StringProtocol) throws(AddressError) { try self.init(URIReference(Substring(text))) }

    /// An absolute reference, read as a client does.
    init(_ reference: URIReference) throws(AddressError) {
        try self.init(resolved: reference.resolved(against: URIReference("")))
    }

    /// An absolute reference without dot segments.
    init(resolved reference: URIReference) throws(AddressError) {
        guard let scheme = reference.scheme.flatMap({ Scheme($0) }), let authority = reference.authority else {
            let named =
                reference.scheme.map { "the scheme \(String($0).escapedForMessage)" } ?? "an address without scheme"
            throw AddressError(.scheme, "\(named) is not for the proxy: it asks http and https URLs with a host")
        }
        let query = reference.query.map { "?" + $0 } ?? ""
        let target = (reference.path + query).encodingWhiteSpace
        try self.init(scheme: scheme, authority: authority, target: target)
    }

    /// As ``init(_:)-(StringProtocol)``.
    package init(_ url: URL) throws(AddressError) { try self.init(url.absoluteString) }

    /// Host and port as the URL has them.
    package var authority: String { port.map { "\(host):\($0)" } ?? host }

    /// The port to connect to.
    package var effectivePort: Int { port ?? scheme.defaultPort }

    /// Whether both have the same scheme, host and port, the default port spelt out or not (RFC 9110 §4.3.1).
    package func isSameOrigin(as other: OriginURL) -> Bool {
        scheme == other.scheme && host == other.host && effectivePort == other.effectivePort
    }

    /// The URL, byte for byte.
    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }

    /// The URL, with what a URI may not have percent-encoded, as a client would before it asks (RFC 3986 §2.1); what is
    /// encoded already stays as it is.
    package var url: URL? {
        var bytes = Array("\(scheme.rawValue)://\(authority)".utf8)
        let target = Array(target.utf8)
        for (index, byte) in target.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && target.count - index > 2 && target[index + 1].isHexDigit
                && target[index + 2].isHexDigit
            if isEscape || byte != UInt8(ascii: "%") && Self.mayStand(byte) {
                bytes.append(byte)
            } else {
                bytes.appendPercentEncoded(byte)
            }
        }
        return URL(string: String(decoding: bytes, as: UTF8.self))
    }

    /// `pchar`, `/` and `?` (RFC 3986 §3.3, §3.4).
    private static func mayStand(_ byte: UInt8) -> Bool {
        byte.isASCIILetter || byte.isASCIIDigit || "-._~!$&'()*+,;=:@/?".utf8.contains(byte)
    }

    /// The URL as a reference that others are resolved against.
    var reference: URIReference { URIReference(description) }
}

extension Substring {
    /// The text with white space and control characters percent-encoded.
    var encodingWhiteSpace: Substring {
        let isForbidden = { (byte: UInt8) in byte <= 0x20 || byte == 0x7F }
        guard utf8.contains(where: isForbidden) else { return self }
        var bytes: [UInt8] = []
        for byte in utf8 {
            if isForbidden(byte) { bytes.appendPercentEncoded(byte) } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)[...]
    }
}

extension [UInt8] {
    fileprivate mutating func appendPercentEncoded(_ byte: UInt8) {
        append(UInt8(ascii: "%"))
        append(contentsOf: [byte >> 4, byte & 15].map { $0 < 10 ? $0 + 0x30 : $0 + 0x37 })
    }
}

extension String {
    /// The text for an error's sentence: at most 200 characters, none of them a control character.
    var escapedForMessage: String {
        var text = ""
        for scalar in unicodeScalars.prefix(200) {
            text += scalar.value < 0x20 ? "\\u{\(scalar.value)}" : String(scalar)
        }
        return text
    }
}
#endif
