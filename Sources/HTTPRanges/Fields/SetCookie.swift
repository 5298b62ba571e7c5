/// A cookie that an origin sets with one `Set-Cookie` field (RFC 6265 §5.2).
///
/// This type contains the attributes as they were sent, and does not decide whether the origin may set the cookie.
package struct SetCookie: Sendable, Hashable {
    /// The time at which a cookie expires.
    package enum Lifetime: Sendable, Hashable {
        /// The cookie does not expire while the process is running.
        case session
        /// The cookie expires after a number of seconds. If the number is not positive, the cookie has expired.
        case seconds(Int64)
        /// The cookie expires at a date.
        case until(HTTPDate)
    }

    /// The name, which is never empty.
    package let name: String
    /// The value, including its quotes if it has any.
    package let value: String
    /// The domain in lower case and without a leading dot, or `nil` if only the host that set the cookie receives it.
    package let domain: String?
    /// The path, or `nil` for the default path, which depends on the request (RFC 6265 §5.1.4).
    package let path: String?
    /// Whether the cookie may be sent only over secure connections.
    package let isSecure: Bool
    /// The time at which the cookie expires. `Max-Age` takes precedence over `Expires`.
    package let lifetime: Lifetime

    /// The maximum size of the name and the value together, in bytes.
    package static let maximumLength = 4096

    /// Parses the value of a `Set-Cookie` field.
    ///
    /// If an attribute occurs several times, the last valid one counts. Unknown and malformed attributes are ignored,
    /// except a `Path` that does not start with `/`. Such a `Path` selects the default path (RFC 6265 §5.2.4).
    ///
    /// - Returns: `nil` if the name is missing, the cookie is too long, or it contains control characters.
    package init?(parsing text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let pair = parts.first, let equals = pair.utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let name = FieldText.trimmed(pair[..<equals])
        let value = FieldText.trimmed(pair[pair.utf8.index(after: equals)...])
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumLength,
            !pair.utf8.contains(where: { $0 < 0x20 && $0 != UInt8(ascii: "\t") || $0 == 0x7F })
        else { return nil }
        var (domain, path, isSecure): (String?, String?, Bool) = (nil, nil, false)
        var (age, date): (Int64?, HTTPDate?) = (nil, nil)
        for part in parts.dropFirst() {
            let equals = part.utf8.firstIndex(of: UInt8(ascii: "="))
            let value = FieldText.trimmed(equals.map { part[part.utf8.index(after: $0)...] } ?? "")
            switch FieldText.lowercased(FieldText.trimmed(part[..<(equals ?? part.endIndex)])) {
            case "domain":
                let host = value.hasPrefix(".") ? value.dropFirst() : value
                domain = host.isEmpty ? domain : FieldText.lowercased(host)
            case "path": path = value.hasPrefix("/") ? String(value) : nil
            case "secure": isSecure = true
            case "max-age": age = Self.age(value) ?? age
            case "expires": date = Self.date(value) ?? date
            default: break
            }
        }
        self.name = String(name)
        self.value = String(value)
        self.domain = domain
        self.path = path
        self.isSecure = isSecure
        lifetime = age.map { .seconds($0) } ?? date.map { .until($0) } ?? .session
    }

    private static func age(_ text: Substring) -> Int64? {
        guard text.hasPrefix("-") else { return FieldText.seconds(text.utf8) }
        return FieldText.seconds(text.utf8.dropFirst()).map { -$0 }
    }

    /// Parses an HTTP date. Hyphens between the day, the month and the year are accepted, because many servers send
    /// them.
    private static func date(_ text: Substring) -> HTTPDate? {
        let text = String(text)
        return HTTPDate(parsing: text) ?? HTTPDate(parsing: text.replacing("-", with: " "))
    }
}
