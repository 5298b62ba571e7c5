import Foundation
import HTTPRanges
import HTTPTypes

/// The cacheability of a response: whether it may be stored, how long it is fresh, and for which requests.
struct ResponseCacheability: Sendable {
    var mayStore: Bool
    var freshness: StoredFreshness
    /// Whether the response is not stored because its header fields are too long.
    let hasLongFields: Bool
    private let hasCacheControl: Bool
    private let hasExpires: Bool
    private let hasVary: Bool
    private let request: HTTPFields

    /// Determines the cacheability of a response under a policy.
    ///
    /// - Parameter hasOwnCookies: Whether the request may have contained cookies from the source's ``CookieJar``, which
    ///   are not among its fields. The response then can't be selected by `Cookie`. The default is `false`.
    init(
        policy: FreshnessPolicy, request: HTTPFields, response: HTTPResponse, from url: URL? = nil,
        of redactedURL: String? = nil, requestDate: Date, responseDate: Date, isOfSite: Bool = false,
        hasOwnCookies: Bool = false
    ) {
        let fields = response.headerFields
        let control = CacheControl.governing(fields).control
        let vary = Vary(fields: fields, request: request)
        let responseTime = Int64(responseDate.timeIntervalSince1970)
        // Only whole seconds of delay count toward the age. If the clock merely advances to the next second during the
        // request, that second does not count.
        let delay = Int64(responseDate.timeIntervalSince(requestDate))
        let freshness = Freshness(
            fields: fields, requestTime: responseTime - delay, responseTime: responseTime, shared: true,
            status: response.status.code)
        self.hasLongFields = StoredHead.exceedsLimit(fields)
        self.mayStore =
            !hasLongFields
            && (policy != .http
                || (!vary.isAny && !(hasOwnCookies && vary.names.contains("cookie"))
                    && control.allowsStoring(
                        shared: true, hasAuthorization: request[.authorization] != nil, status: response.status.code)))
        self.freshness = StoredFreshness(
            // A response that may not be stored is delivered only to the waiting readers, even if it stays fresh for a
            // long time.
            freshUntil: mayStore ? freshness.freshUntil(noCache: control.noCache) : 0,
            // `s-maxage` has the same effect for a shared cache (RFC 9111 §5.2.2.10).
            mustRevalidate: control.mustRevalidate || control.proxyRevalidate || control.noCache
                || control.sharedMaxAge != nil,
            vary: hasLongFields ? [] : vary.names, selected: StoredFreshness.digest(of: vary, in: request),
            // With `no-cache`, the response is always revalidated, even after a 304 response without that directive.
            lifetime: control.noCache ? 0 : freshness.lifetime,
            isLifetimeControlled: control.noCache || control.sharedMaxAge != nil || control.maxAge != nil,
            receivedAt: responseTime, initialAge: freshness.initialAge,
            head: StoredHead(response, from: url, of: redactedURL, isOfSite: isOfSite),
            staleWhileRevalidate: control.staleWhileRevalidate, staleIfError: control.staleIfError)
        self.hasCacheControl = fields.contains(.cacheControl)
        self.hasExpires = fields.contains(.expires)
        self.hasVary = fields.contains(.vary)
        self.request = request
    }

    /// Returns the freshness of this response, with the stored headers updated by its fields. All of these fields
    /// determine which requests the response is for.
    func combined(with stored: StoredFreshness) -> StoredFreshness {
        var result = freshness.updating(stored)
        var vary = Vary(fields: result.head?.fields ?? [:], request: request)
        if stored.head == nil { vary.names = hasVary ? result.vary : stored.vary }
        // The stored fields may name an origin other than that of this request.
        if stored.vary.contains("origin") { vary.names = Set(vary.names + ["origin"]).sorted() }
        let isSame = !hasVary && vary.names == stored.vary
        result.vary = vary.names
        result.selected = isSame ? stored.selected : StoredFreshness.digest(of: vary, in: request)
        return result
    }

    /// Returns the freshness after a 304 response, whose fields replace the stored fields with the same names (RFC 9111
    /// §3.2).
    ///
    /// The age of the 304 response counts from the time at which the response was received, even if it is evaluated
    /// later.
    func freshness(updating stored: StoredFreshness?) -> StoredFreshness {
        guard let stored else { return freshness }
        var result = combined(with: stored)
        if let head = result.head, stored.head != nil {
            result.renew(from: head)
            return result
        }
        guard !hasCacheControl else { return result }
        result.mustRevalidate = stored.mustRevalidate
        result.isLifetimeControlled = stored.isLifetimeControlled
        // A new `Expires` counts if the stored `Cache-Control`, which stays in force, allows it.
        if !hasExpires || stored.isLifetimeControlled == true {
            result.lifetime = stored.lifetime
            result.renew(for: stored.lifetime ?? 0)
        }
        return result
    }
}

extension StoredFreshness {
    /// Returns this freshness, with the stored headers updated by the fields of this response.
    func updating(_ stored: StoredFreshness?) -> StoredFreshness {
        guard let head, let previous = stored?.head else { return self }
        var result = self
        result.head = previous.updated(by: head)
        return result
    }

    /// Sets the values that are derived from all fields of a revalidated response.
    fileprivate mutating func renew(from head: StoredHead) {
        let control = CacheControl.governing(head.fields).control
        let time = receivedAt ?? 0
        let freshness = Freshness(
            fields: head.fields, requestTime: time, responseTime: time, shared: true, status: head.status)
        lifetime = control.noCache ? 0 : freshness.lifetime
        mustRevalidate =
            control.mustRevalidate || control.proxyRevalidate || control.noCache || control.sharedMaxAge != nil
        staleWhileRevalidate = control.staleWhileRevalidate
        staleIfError = control.staleIfError
        isLifetimeControlled = control.noCache || control.sharedMaxAge != nil || control.maxAge != nil
        let isUsable = !control.noCache && control.allowsStoring(shared: true, hasAuthorization: false)
        if isUsable { renew(for: lifetime ?? 0) } else { freshUntil = 0 }
    }

    /// Makes the response fresh for this number of seconds, counted from its creation at the origin.
    fileprivate mutating func renew(for lifetime: Int64) {
        freshUntil = Self.end(of: lifetime - (initialAge ?? 0), from: receivedAt ?? 0)
    }
}

/// The rules for using stored bytes without a request to the origin.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum FreshnessPolicy: Sendable, Hashable {
    /// Media never changes under its key: stored bytes are used, and missing ranges are fetched from the same version.
    case immutable
    /// The rules of a shared HTTP cache: RFC 9111 freshness, `no-store`, `private`, `Vary`, `Authorization`.
    case http
    /// Stored bytes are revalidated each time a resource is opened.
    case revalidate
}
