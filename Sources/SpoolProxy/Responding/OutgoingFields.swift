#if Proxy
import HTTPRanges
import HTTPTypes

/// Which fields of a client's request are sent on to an origin.
enum OutgoingFields {
    /// For an address that names its own origin: only what a player may need there. Nothing that belongs between the client
    /// and this server, no cookie, no page's origin.
    ///
    /// - Parameter secret: Fields that hold it are not sent.
    static func forward(_ fields: HTTPFields, hiding secret: String?) -> HTTPFields {
        HTTPFields(fields.filter { forwarded.contains($0.name.canonicalName) && !holds($0, secret) })
    }

    /// For the server's own origin: all that is meant for it, but what the cache asks for by itself.
    ///
    /// - Parameter secret: Fields that hold it are not sent: `Referer` may, where it stands in the client's paths.
    static func reverse(_ fields: HTTPFields, hiding secret: String?) -> HTTPFields {
        HTTPFields(
            EndToEndFields.of(fields).filter { !ownFields.contains($0.name.canonicalName) && !holds($0, secret) })
    }

    private static func holds(_ field: HTTPField, _ secret: String?) -> Bool {
        secret.map { field.value.contains($0) } ?? false
    }

    /// Adds the conditions and ranges that a response from the origin itself needs, for requests that pass by the cache.
    ///
    /// - Parameter isHead: A range means nothing to `HEAD` (RFC 9110 §14.2), but not every origin knows.
    static func addConditions(of fields: HTTPFields, to sent: inout HTTPFields, isHead: Bool) {
        for field in fields where conditions.contains(field.name.canonicalName) {
            if isHead, field.name == .range || field.name == .ifRange { continue }
            sent.append(field)
        }
    }

    private static let forwarded: Set<String> = ["accept", "accept-language", "authorization", "user-agent"]
    private static let conditions: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    ]
    private static let ownFields: Set<String> = conditions.union([
        "host", "content-length", "accept-encoding", "expect", "via", "cdn-loop", "cache-control", "pragma",
    ])
}
#endif
