package import HTTPTypes

/// The `Cache-Control` directives of a request or a response (RFC 9111 §5.2).
///
/// This type only parses the field; ``Freshness`` and the cache's policy evaluate it. Unknown directives are ignored,
/// and names are case-insensitive.
package struct CacheControl: Sendable, Hashable {
    /// Whether the response must not be written to disk.
    package var noStore = false
    /// Whether the response must not be stored by a shared cache.
    package var isPrivate = false
    /// Whether a shared cache may store the response, even for a request with `Authorization`.
    package var isPublic = false
    /// Whether the response must be validated with the origin before each use.
    package var noCache = false
    /// The names of the fields that `private` or `no-cache` lists, in lower case.
    ///
    /// Other users must not receive these fields, or may receive them only after validation. Therefore, they are not
    /// stored (§5.2.2.4, §5.2.2.7).
    package var namedFields: Set<String> = []
    /// Whether the response may be stored despite ``noStore``, but only by a cache that understands the requirements of
    /// its status (§5.2.2.3).
    package var mustUnderstand = false
    /// Whether the response must be validated once it is stale.
    package var mustRevalidate = false
    /// Whether shared caches must validate the response once it is stale.
    package var proxyRevalidate = false
    /// Whether the response will not change while it is fresh (RFC 8246).
    package var immutable = false
    /// Whether intermediate caches must not change the content, for example its encoding.
    package var noTransform = false
    /// The number of seconds for which the response is fresh.
    package var maxAge: Int64?
    /// The number of seconds for which the response is fresh in a shared cache, instead of ``maxAge``.
    package var sharedMaxAge: Int64?
    /// The number of seconds for which the stale response may be used during validation (RFC 5861).
    package var staleWhileRevalidate: Int64?
    /// The number of seconds for which the stale response may be used if the origin fails (RFC 5861).
    package var staleIfError: Int64?

    /// Creates a field without directives.
    package init() {}

    /// Parses all `Cache-Control` fields of a request or a response.
    ///
    /// A directive with a space before or after its `=` is ignored. A malformed number of seconds counts as 0, and a
    /// number larger than 10,000 years counts as 10,000 years. If a directive occurs several times, the first
    /// occurrence counts (RFC 9111 §1.2.2, §4.2.1).
    package init(fields: HTTPFields) {
        for element in fields[values: .cacheControl].flatMap({ FieldText.elements($0) }) {
            let parts = element.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            apply(FieldText.lowercased(parts[0]), value: parts.count > 1 ? parts[1] : nil)
        }
    }

    mutating func apply(_ name: String, value: Substring?) {
        func seconds(_ first: Int64?) -> Int64 {
            first ?? FieldText.seconds(FieldText.unquoted(value ?? "").utf8) ?? 0
        }
        /// Adds the fields that a directive lists, and returns whether it lists none. A directive without a list, or
        /// with a malformed one, applies to the whole response.
        func isUnqualified(_ value: Substring?) -> Bool {
            let names = FieldText.elements(String(FieldText.unquoted(value ?? ""))).map(FieldText.lowercased)
            namedFields.formUnion(names)
            return names.isEmpty || !names.allSatisfy { HTTPField.Name($0) != nil }
        }
        switch name {
        case "no-store": noStore = true
        case "private": isPrivate = isUnqualified(value) || isPrivate
        case "public": isPublic = true
        case "no-cache": noCache = isUnqualified(value) || noCache
        case "must-understand": mustUnderstand = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "immutable": immutable = true
        case "no-transform": noTransform = true
        case "max-age": maxAge = seconds(maxAge)
        case "s-maxage": sharedMaxAge = seconds(sharedMaxAge)
        case "stale-while-revalidate": staleWhileRevalidate = seconds(staleWhileRevalidate)
        case "stale-if-error": staleIfError = seconds(staleIfError)
        default: break
        }
    }

    /// Returns whether a response may be stored at all (RFC 9111 §3).
    ///
    /// - Parameters:
    ///   - shared: Whether several users share the cache.
    ///   - hasAuthorization: Whether the request contained `Authorization`. If so, a shared cache may store the
    ///     response only if it contains `public`, `s-maxage` or `must-revalidate` (§3.5).
    ///   - status: The status of the response.
    package func allowsStoring(shared: Bool, hasAuthorization: Bool, status: Int = 200) -> Bool {
        if mustUnderstand ? !StatusRules.isUnderstood(status) : noStore { return false }
        guard shared else { return true }
        if isPrivate { return false }
        return !hasAuthorization || isPublic || mustRevalidate || sharedMaxAge != nil
    }
}

extension CacheControl {
    /// Returns the directives for a shared cache (RFC 9213 §2).
    ///
    /// A valid `CDN-Cache-Control` replaces `Cache-Control` and `Expires`. Otherwise, the directives in `Cache-Control`
    /// apply.
    ///
    /// - Returns: The directives, and whether they are from `CDN-Cache-Control`.
    package static func governing(_ fields: HTTPFields) -> (control: CacheControl, isTargeted: Bool) {
        if let name = cdnCacheControl, fields.contains(name),
            let control = CacheControl(targeted: fields[values: name].joined(separator: ","))
        {
            return (control, true)
        }
        return (CacheControl(fields: fields), false)
    }

    private static let cdnCacheControl = HTTPField.Name("CDN-Cache-Control")

    /// Parses a targeted field: a Dictionary Structured Field (RFC 9651 §4.2.2) with case-insensitive keys.
    ///
    /// The result is `nil` if the field is empty or any part is invalid. An invalid number of seconds is ignored.
    init?(targeted text: String) {
        self.init()
        let members = FieldText.elements(text)
        // A Dictionary has no empty members. Text with quotes is not checked, because a quoted string may contain
        // commas.
        let isQuoted = text.utf8.contains(UInt8(ascii: "\""))
        let pieces = text.split(separator: ",", omittingEmptySubsequences: false)
        guard !members.isEmpty, isQuoted || pieces.allSatisfy({ !FieldText.trimmed($0).isEmpty }) else { return nil }
        for member in members {
            guard let (key, value) = Self.member(member) else { return nil }
            switch value {
            case .isTrue: if !Self.isNumeric(key) { apply(key, value: nil) }
            case .integer(let number):
                // If a key is repeated, the last one counts.
                guard Self.isNumeric(key) else { continue }
                clear(key)
                apply(key, value: number)
            case .other: continue
            }
        }
    }

    private enum Value { case isTrue, integer(Substring), other }

    private static func isNumeric(_ key: String) -> Bool {
        ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"].contains(key)
    }

    private mutating func clear(_ key: String) {
        switch key {
        case "max-age": maxAge = nil
        case "s-maxage": sharedMaxAge = nil
        case "stale-while-revalidate": staleWhileRevalidate = nil
        case "stale-if-error": staleIfError = nil
        default: break
        }
    }

    private static func member(_ text: Substring) -> (key: String, value: Value)? {
        let key = FieldText.lowercased(text.prefix { $0 != "=" && $0 != ";" })
        guard let first = key.utf8.first, isLetter(first) || first == UInt8(ascii: "*"),
            key.utf8.allSatisfy({ isLetter($0) || isDigit($0) || "_-.*".utf8.contains($0) })
        else { return nil }
        let rest = text.dropFirst(key.count)
        guard rest.first == "=" else { return (key, .isTrue) }
        let item = rest.dropFirst()
        let bare = item.prefix { $0 != ";" }
        guard let start = bare.utf8.first else { return nil }
        switch start {
        case UInt8(ascii: "?"):
            if bare == "?1" { return (key, .isTrue) }
            return bare == "?0" ? (key, .other) : nil
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            if bare.utf8.allSatisfy(isDigit) { return bare.utf8.count <= 15 ? (key, .integer(bare)) : nil }
            return Double(bare) == nil ? nil : (key, .other)
        case UInt8(ascii: "-"): return Double(bare) == nil ? nil : (key, .other)
        case UInt8(ascii: "\""): return item.utf8.dropFirst().contains(start) ? (key, .other) : nil
        case UInt8(ascii: ":"), UInt8(ascii: "("), UInt8(ascii: "@"), UInt8(ascii: "*"): return (key, .other)
        default: return isLetter(start | 0x20) ? (key, .other) : nil
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") }
    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
