package import Foundation

/// An `http` or `https` URL that the proxy can request: scheme, host, port, path and query.
///
/// The path and the query are copied byte for byte from the source. The scheme and the host are in lower case (RFC 3986
/// §6.2.2.1). A fragment is removed, because it is never sent to a server. This type does not resolve names. Access to
/// a host is checked when the proxy connects to it.
package struct OriginURL: Hashable, Sendable, CustomStringConvertible {
    /// The protocol of the origin.
    package enum Scheme: String, Hashable, Sendable {
        case http, https

        /// The port for a URL that does not specify one.
        package var defaultPort: Int { self == .http ? 80 : 443 }

        /// Parses a scheme in upper or lower case.
        package init?(_ text: some StringProtocol) { self.init(rawValue: text.lowercased()) }
    }

    /// The protocol of the origin.
    package let scheme: Scheme
    /// A name or an IP address in lower case, with brackets for IPv6.
    package let host: String
    /// The port, or `nil` if the URL does not specify one. A specified default port is not removed.
    package let port: Int?
    /// The path and the query, as in the first line of a request, starting with `/`.
    package let target: String

    /// Creates a URL from its parts.
    ///
    /// - Parameters:
    ///   - authority: The host and the port. An empty port counts as missing (RFC 3986 §3.2.3).
    ///   - target: The path and the query. An empty path becomes `/`.
    /// - Throws: ``AddressError`` with code `host`, `port`, `userInformation` or `characters`.
    package init(scheme: Scheme, authority: Substring, target: Substring) throws(AddressError) {
        let parts = try HostAndPort(authority)
        let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
        let hidden = { "\(scheme.rawValue)://\(parts.text)\(Substring(path))" }
        for byte in target.utf8 where byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "#") {
            throw AddressError(
                .characters,
                "the path or query of \(hidden().escapedForMessage) contains a space, a control character or a "
                    + "number sign"
            )
        }
        self.scheme = scheme
        host = parts.host
        port = parts.port
        self.target = path.first == UInt8(ascii: "/") ? String(target) : "/" + target
    }

    /// Parses an absolute URL as a client does before a request. Dot segments are resolved, and white space and control
    /// characters are percent-encoded.
    ///
    /// - Throws: ``AddressError`` if the scheme is not supported, the URL has user information, or its host or port is
    ///   invalid.
    package init(_ text: some StringProtocol) throws(AddressError) { try self.init(URIReference(Substring(text))) }

    /// Parses an absolute reference as a client does before a request.
    ///
    /// - Throws: ``AddressError``, in the same cases as for a string.
    package init(_ reference: URIReference) throws(AddressError) {
        try self.init(resolved: reference.resolved(against: URIReference("")))
    }

    /// Creates a URL from an absolute reference whose dot segments are already removed.
    init(resolved reference: URIReference) throws(AddressError) {
        guard let scheme = reference.scheme.flatMap({ Scheme($0) }), let authority = reference.authority else {
            let named =
                reference.scheme.map {
                    Scheme($0) == nil ? "the scheme \(String($0).escapedForMessage)" : "a URL without a host"
                } ?? "a URL without a scheme"
            throw AddressError(
                .scheme, "\(named) is not supported: the proxy requires an http or https URL with a host")
        }
        let query = reference.query.map { "?" + $0 } ?? ""
        let target = (reference.path + query).encodingWhiteSpace
        try self.init(scheme: scheme, authority: authority, target: target)
    }

    /// Parses a Foundation URL in the same way as a string.
    package init(_ url: URL) throws(AddressError) { try self.init(url.absoluteString) }

    /// The host and the port, as in the URL.
    package var authority: String { port.map { "\(host):\($0)" } ?? host }

    /// The port to connect to.
    package var effectivePort: Int { port ?? scheme.defaultPort }

    /// Returns whether both URLs have the same scheme, host and port. A missing port is equivalent to the default port
    /// (RFC 9110 §4.3.1).
    package func isSameOrigin(as other: OriginURL) -> Bool {
        scheme == other.scheme && host == other.host && effectivePort == other.effectivePort
    }

    /// Returns the target of a reference in a response for this URL, or `nil` if it is invalid or has a different
    /// origin.
    package func sameOriginURL(_ reference: String) -> OriginURL? {
        let parts = URIReference(reference).resolved(against: self.reference)
        let other = try? OriginURL(parts)  // This fails only if the URL is invalid.
        return other?.isSameOrigin(as: self) == true ? other : nil
    }

    /// The URL as a string.
    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }

    /// The URL as a Foundation URL, or `nil` if Foundation rejects it. As in clients, bytes that a URI cannot contain
    /// are percent-encoded (RFC 3986 §2.1). Percent-encoded bytes stay as they are.
    package var url: URL? {
        URL(string: "\(scheme.rawValue)://\(authority)\(target.encodingInvalidBytes)")
    }

    /// The URL as a reference, for resolving other references against it.
    package var reference: URIReference { URIReference(description) }

    /// The path without the query.
    package var path: Substring { target.prefix { $0 != "?" } }

    /// The URL without its query, for error messages.
    package var nameForMessages: String {
        "\(scheme.rawValue)://\(authority)\(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }))"
            .escapedForMessage
    }
}

extension StringProtocol {
    /// The text, with percent-encoding for all bytes that a path, query or fragment cannot contain (RFC 3986 §3.3 to
    /// §3.5). Percent-encoded bytes stay as they are.
    package var encodingInvalidBytes: String {
        let text = Array(utf8)
        var bytes: [UInt8] = []
        for (index, byte) in text.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && text.count - index > 2 && text[index + 1].isHexDigit
                && text[index + 2].isHexDigit
            let mayStand = byte.isASCIILetter || byte.isASCIIDigit || "-._~!$&'()*+,;=:@/?".utf8.contains(byte)
            if isEscape || mayStand { bytes.append(byte) } else { bytes.appendPercentEncoded(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
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
    /// The text for an error message, with at most 200 characters and without control characters.
    package var escapedForMessage: String {
        var text = ""
        for scalar in unicodeScalars.prefix(200) {
            let isHidden = [.control, .format].contains(scalar.properties.generalCategory)
            text += isHidden ? "\\u{\(String(scalar.value, radix: 16, uppercase: true))}" : String(scalar)
        }
        return text
    }
}

/// An error that states why a URL cannot be requested through the proxy.
package struct AddressError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error. The proxy server responds to all kinds with status 400.
    package enum Code: Hashable, Sendable {
        /// The proxy path starts with neither `/http/` nor `/https/`, or the URL has a different scheme.
        case scheme
        /// The host is missing, or is neither a name nor an IP address.
        case host
        /// The port is not between 1 and 65535.
        case port
        /// The URL contains a user name or a password, which the proxy does not support.
        case userInformation
        /// The path or query contains white space, a control character or a number sign.
        case characters
    }

    /// The kind of error.
    package let code: Code
    /// A sentence that names the URL, without its query, and the problem.
    package let description: String

    /// Creates an error.
    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
