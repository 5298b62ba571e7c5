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
    /// Must be validated with the origin before each use. Also set where only certain fields are named.
    package var noCache = false
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
    /// A number of seconds that is malformed counts as 0, one too large as `Int64.max`; of several, the smallest counts
    /// (RFC 9111 §1.2.2, §4.2.1).
    package init(fields: HTTPFields) {
        for element in fields[values: .cacheControl].flatMap({ FieldText.elements($0) }) {
            let parts = element.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(decoding: FieldText.trimmed(parts[0]).utf8.map(FieldText.lowercased), as: UTF8.self)
            apply(name, value: parts.count > 1 ? FieldText.trimmed(parts[1]) : nil)
        }
    }

    private mutating func apply(_ name: String, value: Substring?) {
        func seconds(_ former: Int64?) -> Int64 {
            var text = value ?? ""
            if text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") { text = text.dropFirst().dropLast() }
            return min(FieldText.digits(text.utf8) ?? 0, former ?? .max)
        }
        switch name {
        case "no-store": noStore = true
        case "private": isPrivate = true
        case "public": isPublic = true
        case "no-cache": noCache = true
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
    package func allowsStoring(shared: Bool, hasAuthorization: Bool) -> Bool {
        if noStore { return false }
        guard shared else { return true }
        if isPrivate { return false }
        return !hasAuthorization || isPublic || mustRevalidate || sharedMaxAge != nil
    }
}
