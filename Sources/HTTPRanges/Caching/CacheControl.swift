package import HTTPTypes

/// The directives of an origin, or a player, about keeping and reusing a response (`Cache-Control`, RFC 9111 §5.2).
///
/// Only reads the field; what follows from it is decided by ``Freshness`` and by the cache's policy. Unknown
/// directives are ignored, names are read in any case.
package struct CacheControl: Sendable, Hashable {
    /// Nothing of the response may be written to disk.
    package var noStore = false
    /// Not for a cache that several people share.
    package var isPrivate = false
    /// May be kept by a shared cache, even in response to a request with `Authorization`.
    package var isPublic = false
    /// Must be validated with the origin before each use.
    package var noCache = false
    /// The fields, in lower case, that `private` or `no-cache` names: they alone are not for others, or not without
    /// validation, so they are not kept (§5.2.2.4, §5.2.2.7).
    package var namedFields: Set<String> = []
    /// Is kept, whatever ``noStore`` says, by who knows what its status asks of a cache, and by nobody else (§5.2.2.3).
    package var mustUnderstand = false
    /// Must be validated once stale.
    package var mustRevalidate = false
    /// Must be validated once stale, by shared caches.
    package var proxyRevalidate = false
    /// Will not change while fresh (RFC 8246).
    package var immutable = false
    /// No cache on the way may change the content, for example its encoding.
    package var noTransform = false
    /// Seconds for which it is fresh.
    package var maxAge: Int64?
    /// Seconds for which it is fresh in a shared cache, in place of ``maxAge``.
    package var sharedMaxAge: Int64?
    /// Seconds for which it may be used stale while it is validated (RFC 5861).
    package var staleWhileRevalidate: Int64?
    /// Seconds for which it may be used stale if the origin fails (RFC 5861).
    package var staleIfError: Int64?

    /// A field without directives.
    package init() {}

    /// Reads all `Cache-Control` fields of a request or a response.
    ///
    /// A directive with a space before or after its `=` is ignored. A malformed number of seconds counts as 0, and a
    /// number larger than 10,000 years counts as 10,000 years. If a directive occurs several times, the first occurrence
    /// counts (RFC 9111 §1.2.2, §4.2.1).
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
        /// The fields that are named; whether none is, so that the whole response is meant.
        func isUnqualified(_ value: Substring?) -> Bool {
            let names = FieldText.elements(String(FieldText.unquoted(value ?? ""))).map(FieldText.lowercased)
            namedFields.formUnion(names)
            return names.isEmpty
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

    /// Whether a response may be kept at all (RFC 9111 §3).
    ///
    /// - Parameters:
    ///   - shared: whether several people use the cache.
    ///   - hasAuthorization: whether the request carried `Authorization`: a shared cache then needs the origin's word
    ///     (`public`, `s-maxage` or `must-revalidate`, §3.5).
    ///   - status: the response's.
    package func allowsStoring(shared: Bool, hasAuthorization: Bool, status: Int = 200) -> Bool {
        if mustUnderstand ? !StatusRules.isUnderstood(status) : noStore { return false }
        guard shared else { return true }
        if isPrivate { return false }
        return !hasAuthorization || isPublic || mustRevalidate || sharedMaxAge != nil
    }
}
