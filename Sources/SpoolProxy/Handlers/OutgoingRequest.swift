#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import SpoolStreams

/// The request to an origin that results from a client's request: its URL and its fields.
struct OutgoingRequest: Sendable {
    let url: OriginURL
    private(set) var fields: HTTPFields
    /// The prefix of the client's own paths.
    private(set) var prefix: String
    let isReverse: Bool
    /// Whether one of the operator's commands sent the request.
    ///
    /// A command uses the server's URLs itself, so manifests are not rewritten. All fields of its requests are for the
    /// origin.
    let isForOperator: Bool
    /// The server's secrets, which no field for an origin may contain.
    let secrets: [String]
    /// The source that ``SourceRegistry`` has for the URL, or `nil` if there is none.
    var presentation: PresentationSource?
    /// The cookies that origins have set in response to earlier requests for the same file. The value is `nil` if no
    /// cookies are used, or if ``presentation`` has its own.
    var cookies: CookieJar?

    /// - Parameter own: The fields for the server's own origin, which replace those of the client.
    /// - Throws: `RequestFailure` with status 403 for an origin that is not allowed, or 508 for a request from this
    ///   server.
    init(
        _ url: OriginURL, _ request: RequestHead, _ admitted: AccessRules.Admitted, _ client: ProxyClient,
        isReverse: Bool, isForOperator: Bool = false, adding own: HTTPFields = [:], origins: OriginRules
    ) throws(RequestFailure) {
        try origins.check(url, for: client, isOwn: isReverse)
        try origins.checkLoop(request.fields)
        self.url = url
        self.prefix = admitted.prefix
        self.secrets = admitted.secrets
        self.isReverse = isReverse
        self.isForOperator = isForOperator
        let asked = request.fields.all
        var fields =
            isReverse || isForOperator
            ? OutgoingFields.reverse(asked, hiding: admitted.secrets)
            : OutgoingFields.forward(asked, hiding: admitted.secrets)
        if !isReverse, !isForOperator {
            fields[.referer] = ReferrerRules.referrer(of: request, admitted, for: url)
        }
        if !isForOperator {
            let hasBody = request.body != .none && request.method != .get && request.method != .head
            fields = OutgoingFields.withoutUnkeyed(fields, hasBody: hasBody)
        }
        if isReverse {
            for name in Set(own.map(\.name)) { fields[name] = nil }
            for field in own { fields.append(field) }
        }
        origins.addTrace(to: &fields)
        self.fields = fields
    }

    /// Removes the client's credentials from the request.
    mutating func removeCredentials() { fields[.authorization] = nil }

    /// Whether the client sent the request to a URL other than the one that ``proxied(_:)`` returns.
    private(set) var isMoved = false

    /// Adds a prefix to the client's own paths, after the previous prefix.
    mutating func append(prefix: String) {
        self.prefix += prefix
        isMoved = true
    }

    /// Returns the path with which a client requests a URL from this server.
    ///
    /// If the server has its own origin and the URL belongs to another origin, the result is the URL itself.
    func proxied(_ url: OriginURL) -> String {
        if !isReverse { return prefix + ForwardAddress.requestTarget(for: url) }
        guard url.isSameOrigin(as: self.url) else { return url.description }
        let path = prefix + url.target
        // A path that starts with two slashes would name a host (RFC 3986 §4.2).
        return path.hasPrefix("//") ? "/." + path : path
    }

    /// Whether a steering server must not replace the host in the client's URLs. These URLs contain the server's token
    /// or the name of the origin, and their host is not the one that the steering server expects.
    var mustNotBeSteered: Bool { !isReverse || !prefix.isEmpty }

    /// The source of the requested resource.
    ///
    /// - Throws: `RequestFailure` with status 400 for a URL that Foundation does not accept.
    var source: MediaSource {
        get throws(RequestFailure) {
            try source(of: url)
        }
    }

    /// Returns the source of a resource in the same stream.
    ///
    /// - Throws: `RequestFailure` with status 400 for a URL that Foundation does not accept.
    func source(of url: OriginURL) throws(RequestFailure) -> MediaSource {
        guard let url = url.url else { throw RequestFailure(400, "the URL is invalid and can't be requested") }
        if let presentation { return presentation.part(at: url, sending: fields) }
        var source = MediaSource(url: url, headerFields: fields)
        if let cookies { source.cookies = cookies }
        return source
    }

    /// The URL of the requested resource.
    ///
    /// - Throws: `RequestFailure` with status 400 for a URL that Foundation does not accept.
    var foundationURL: URL {
        get throws(RequestFailure) {
            guard let url = url.url else { throw RequestFailure(400, "the URL is invalid and can't be requested") }
            return url
        }
    }
}

/// The fields of a client's request that are forwarded to an origin.
enum OutgoingFields {
    /// Returns the fields for a URL that includes its own origin: the fields that a player may need at that origin, and
    /// ``trace``. Cookies, the page's origin and fields between the client and this server are removed.
    /// ``ReferrerRules`` determines whether `Referer` is forwarded.
    ///
    /// - Parameter secrets: The server's secrets. Fields that contain one of them are removed.
    static func forward(_ fields: HTTPFields, hiding secrets: [String]) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                let name = field.name.canonicalName
                return (forwarded.contains(name) || trace.contains(name)) && !holds(field, secrets)
            })
    }

    /// Returns the fields for the server's own origin: all end-to-end fields except those that the cache sets.
    ///
    /// ``trace`` is preserved even if `Connection` lists it. Otherwise, a client could hide a loop.
    ///
    /// - Parameter secrets: The server's secrets. Fields that contain one of them are removed. `Referer` contains the
    ///   secret if the client's paths do.
    static func reverse(_ fields: HTTPFields, hiding secrets: [String]) -> HTTPFields {
        func isTrace(_ field: HTTPField) -> Bool { trace.contains(field.name.canonicalName) }
        let kept = EndToEndFields.of(fields).filter { !isTrace($0) } + fields.filter(isTrace)
        return HTTPFields(kept.filter { !ownFields.contains($0.name.canonicalName) && !holds($0, secrets) })
    }

    /// Returns the fields, except those that change the responses of many origins even though cache keys do not contain
    /// them.
    ///
    /// Otherwise, one client's response could be stored for all clients (web cache poisoning). Load balancers and
    /// gateways set these fields, and clients do not need them.
    ///
    /// Names with an underscore are removed as well. CGI and its successors can't distinguish `X_Forwarded_Host` or
    /// `Transfer_Encoding` from the names with hyphens.
    ///
    /// - Parameter hasBody: Whether the origin receives a body. Otherwise, fields that describe a body are removed.
    static func withoutUnkeyed(_ fields: HTTPFields, hasBody: Bool) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                let name = field.name.canonicalName
                return !unkeyed.contains(name) && !unkeyedPrefixes.contains { name.hasPrefix($0) }
                    && !name.hasSuffix("-override") && !name.contains("_")
                    && (hasBody || !ofBody.contains(name))
            })
    }

    /// Returns whether a field contains one of the secrets.
    static func holds(_ field: HTTPField, _ secrets: [String]) -> Bool {
        secrets.contains { field.value.contains($0) }
    }

    /// Adds the conditions and ranges of a request that bypasses the cache.
    ///
    /// - Parameter isHead: Whether to omit ranges. They do not apply to `HEAD` (RFC 9110 §14.2), but not every origin
    ///   ignores them.
    static func addConditions(of fields: HTTPFields, to sent: inout HTTPFields, isHead: Bool) {
        for field in fields where conditions.contains(field.name.canonicalName) {
            if isHead, field.name == .range || field.name == .ifRange { continue }
            sent.append(field)
        }
    }

    private static let forwarded: Set<String> = ["accept", "accept-language", "authorization", "user-agent"]
    /// The fields that list the nodes through which a request has passed. Each node adds itself to the end of the list
    /// (RFC 9110 §7.6.3, RFC 8586 §3).
    private static let trace: Set<String> = ["via", "cdn-loop"]
    /// The prefixes of names that are removed like those in ``unkeyed``, in alphabetical order.
    private static let unkeyedPrefixes = [
        "cloudfront-", "forwarded", "ssl-client-", "x-accel-", "x-appengine-", "x-envoy-", "x-forward", "x-http-dest",
        "x-http-host", "x-http-method", "x-http-path", "x-invoke-", "x-middleware-", "x-orig-", "x-original",
        "x-originating-", "x-override-", "x-proxy-", "x-rewrite", "x-sendfile-", "x-ssl-client-", "x-vercel-",
    ]
    /// The names of removed fields, by their meaning.
    private static let unkeyed: Set<String> = [
        // The client's address.
        "cf-connecting-ip", "cf-connecting-ipv6", "cf-ipcountry", "client-ip", "cluster-client-ip", "fastly-client-ip",
        "true-client-ip", "wl-proxy-client-ip", "x-azure-clientip", "x-azure-socketip", "x-client-ip",
        "x-cluster-client-ip",
        "x-country-code", "x-proxyuser-ip", "x-real-ip", "x-remote-addr", "x-remote-ip", "x-true-client-ip",
        // The client's identity.
        "remote-user", "x-authenticated-user", "x-client-cert", "x-remote-user",
        // The scheme and the port.
        "cf-visitor", "front-end-https", "x-arr-ssl", "x-https", "x-port", "x-protocol", "x-real-port", "x-scheme",
        "x-url-scheme",
        // The host.
        "http-host", "proxy", "proxy-host", "x-backend-host", "x-client-host", "x-host", "x-real-host", "x-server-name",
        "x-target-host", "x-virtual-host",
        // The path.
        "base-url", "path-info", "request-uri", "script-name", "uri", "url", "x-base-url", "x-ingress-path",
        "x-ms-original-url", "x-path", "x-replaced-path", "x-request-uri", "x-request-url", "x-script-name", "x-uri",
        "x-url", "x-url-path",
        // The method.
        "x-method",
        // Client capabilities that change the format of the response, such as titles within the audio.
        "icy-metadata", "surrogate-capability", "x-wap-profile",
    ]
    private static let ofBody: Set<String> = ["content-encoding", "content-range"]
    private static let conditions: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    ]
    private static let ownFields: Set<String> = conditions.union([
        "host", "content-length", "accept-encoding", "expect", "cache-control", "pragma",
    ])
}
#endif
