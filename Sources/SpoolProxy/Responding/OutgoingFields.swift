#if Proxy
import HTTPRanges
import HTTPTypes

/// Which fields of a client's request are sent on to an origin.
enum OutgoingFields {
    /// The fields for an address that names its own origin: those that a player may need there, and ``trace``. Cookies,
    /// the page's origin and fields between the client and this server are removed.
    ///
    /// - Parameter secret: Fields that hold it are not sent.
    static func forward(_ fields: HTTPFields, hiding secret: String?) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                let name = field.name.canonicalName
                return (forwarded.contains(name) || trace.contains(name)) && !holds(field, secret)
            })
    }

    /// For the server's own origin: all that is meant for it, but what the cache asks for by itself.
    ///
    /// - Parameter secret: Fields that hold it are not sent: `Referer` may, where it stands in the client's paths.
    static func reverse(_ fields: HTTPFields, hiding secret: String?) -> HTTPFields {
        HTTPFields(
            EndToEndFields.of(fields).filter { !ownFields.contains($0.name.canonicalName) && !holds($0, secret) })
    }

    /// Removes the fields that change the responses of many origins although no cache key contains them.
    ///
    /// Otherwise one client's response could be stored for all clients (web cache poisoning). Load balancers and
    /// gateways set these fields, and clients need not.
    ///
    /// Names with an underscore are removed as well. CGI and its successors can't distinguish `X_Forwarded_Host` or
    /// `Transfer_Encoding` from the names with hyphens.
    static func withoutUnkeyed(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                let name = field.name.canonicalName
                return !unkeyed.contains(name) && !unkeyedPrefixes.contains { name.hasPrefix($0) }
                    && !name.hasSuffix("-override") && !name.contains("_")
            })
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
    /// The fields that list the nodes of a request. Each node appends itself to them (RFC 9110 §7.6.3, RFC 8586 §3).
    private static let trace: Set<String> = ["via", "cdn-loop"]
    private static let unkeyedPrefixes = [
        "x-forward", "forwarded", "x-original", "x-rewrite", "x-envoy-", "x-accel-", "x-sendfile-", "x-middleware-",
        "x-invoke-", "x-proxy-", "x-http-method", "x-http-host", "x-http-path", "x-http-dest",
    ]
    private static let unkeyed: Set<String> = [
        // The client's address.
        "x-real-ip", "x-client-ip", "x-cluster-client-ip", "client-ip", "true-client-ip", "x-true-client-ip",
        "x-originating-ip", "x-remote-ip", "x-remote-addr", "x-proxyuser-ip", "cf-connecting-ip", "cf-connecting-ipv6",
        "cf-ipcountry", "fastly-client-ip", "x-azure-clientip", "x-appengine-user-ip", "x-country-code",
        // The scheme, host, port and path.
        "x-host", "x-backend-host", "x-server-name", "proxy-host", "x-scheme", "x-url-scheme", "x-protocol",
        "front-end-https", "x-https", "cf-visitor", "cloudfront-forwarded-proto", "x-port", "x-url", "x-uri",
        "x-request-uri", "request-uri", "base-url", "x-base-url", "x-path", "x-script-name", "x-wap-profile",
        // The method.
        "x-method",
        // Titles inside the audio.
        "icy-metadata",
    ]
    private static let conditions: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    ]
    private static let ownFields: Set<String> = conditions.union([
        "host", "content-length", "accept-encoding", "expect", "cache-control", "pragma",
    ])
}
#endif
