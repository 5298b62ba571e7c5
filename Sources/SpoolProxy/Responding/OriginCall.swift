#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import SpoolStreams

/// The request to an origin that results from a client's request: its URL and its fields.
struct OriginCall: Sendable {
    let url: OriginURL
    let fields: HTTPFields
    /// The prefix of the client's own paths.
    let prefix: String
    let isReverse: Bool
    /// Whether a command of the operator sends the request.
    ///
    /// A command uses the server's addresses itself, so manifests are not rewritten. All its fields are for the origin.
    let isForOwner: Bool
    /// The source that ``SourceRegistry`` has for the address, or `nil` if the address has none.
    var presentation: PresentationSource?

    /// - Parameter own: The fields for the server's own origin, which replace those of the client.
    /// - Throws: `RequestFailure`: 403 for an origin that is not allowed, 508 for a request of this server.
    init(
        _ url: OriginURL, _ request: RequestHead, _ admitted: AccessRules.Admitted, _ client: ProxyClient,
        isReverse: Bool, isForOwner: Bool = false, adding own: HTTPFields = [:], origins: OriginRules
    ) throws(RequestFailure) {
        try origins.check(url, for: client, isOwn: isReverse)
        try origins.checkLoop(request.fields)
        self.url = url
        self.prefix = admitted.prefix
        self.isReverse = isReverse
        self.isForOwner = isForOwner
        let asked = request.fields.all
        var fields =
            isReverse || isForOwner
            ? OutgoingFields.reverse(asked, hiding: admitted.secret)
            : OutgoingFields.forward(asked, hiding: admitted.secret)
        if !isForOwner { fields = OutgoingFields.withoutUnkeyed(fields) }
        if isReverse {
            for name in Set(own.map(\.name)) { fields[name] = nil }
            for field in own { fields.append(field) }
        }
        origins.addTrace(to: &fields)
        self.fields = fields
    }

    /// The path with which a client requests a URL from this server.
    ///
    /// If the server has an origin of its own and the URL is not one of that origin, the result is the URL itself.
    func proxied(_ url: OriginURL) -> String {
        if !isReverse { return prefix + ForwardAddress.requestTarget(for: url) }
        return url.isSameOrigin(as: self.url) ? prefix + url.target : url.description
    }

    /// The source of the requested resource.
    ///
    /// - Throws: `RequestFailure` with status 400 for an address that `URL` does not accept.
    var source: MediaSource {
        get throws(RequestFailure) {
            try source(of: url)
        }
    }

    /// The source of a resource of the same stream.
    ///
    /// - Throws: `RequestFailure` with status 400 for an address that `URL` does not accept.
    func source(of url: OriginURL) throws(RequestFailure) -> MediaSource {
        guard let url = url.url else { throw RequestFailure(400, "the address can't be requested") }
        return presentation?.part(at: url, sending: fields) ?? MediaSource(url: url, headerFields: fields)
    }

    /// The URL of the requested resource.
    ///
    /// - Throws: `RequestFailure` with status 400 for an address that `URL` does not accept.
    var foundationURL: URL {
        get throws(RequestFailure) {
            guard let url = url.url else { throw RequestFailure(400, "the address can't be requested") }
            return url
        }
    }
}

/// The fields of a client's request that are forwarded to an origin.
enum OutgoingFields {
    /// The fields for an address that names its own origin: those that a player may need there, and ``trace``. Cookies,
    /// the page's origin and fields between the client and this server are removed.
    ///
    /// - Parameter secret: Fields that contain this secret are removed.
    static func forward(_ fields: HTTPFields, hiding secret: String?) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                let name = field.name.canonicalName
                return (forwarded.contains(name) || trace.contains(name)) && !holds(field, secret)
            })
    }

    /// The fields for the server's own origin: all end-to-end fields except those that the cache sets.
    ///
    /// - Parameter secret: Fields that contain this secret are removed. `Referer` contains it if it is in the client's paths.
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

    /// Adds the conditions and ranges of a request that bypasses the cache.
    ///
    /// - Parameter isHead: Whether ranges are left out. `HEAD` ignores them (RFC 9110 §14.2), but not every origin does.
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
