public import Foundation
public import HTTPTypes
import SpoolScheduling
public import SpoolStorage

/// The source of a resource: a fixed URL, or a URL and credentials that are resolved when needed.
///
/// ``url`` is the player's URL. Requests to the origin may have a different URL and different header fields, which
/// `resolve` returns. Examples are a signed link to a cloud drive, a bearer token, and the file behind an app's scheme
/// (`myapp://42`). If the origin rejects the request (401, 403, 407, 410), or the request has expired, `resolve` is
/// called again and playback continues.
///
/// The cache key is derived from ``url`` by the cache's key policy. If your app has its own identifier for the media,
/// such as a number in its database, use it as ``key``.
///
/// ```swift
/// MediaSource(url: signedURL, key: CacheKey("track 42"))
/// MediaSource(url: url) { _ in ResolvedRequest(url: url, headerFields: [.authorization: try await bearer()]) }
/// ```
public struct MediaSource: Sendable {
    /// The reason why a request is resolved.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum ResolutionReason: Sendable, Hashable {
        /// No request has been sent yet.
        case initial
        /// The origin rejected the previous URL or credentials with this HTTP status.
        case refused(status: Int)
        /// The ``ResolvedRequest/expiration`` of the previous request has passed.
        case expired
    }

    /// The URL of the resource for the player.
    public let url: URL
    /// The cache key that the app assigns to the media. If it is `nil`, the cache's key policy derives the key from
    /// ``url``.
    public package(set) var key: CacheKey?
    /// Whether the media is unlikely to be played again after it has finished, like most podcast episodes.
    ///
    /// Such media is evicted first under ``/SpoolStorage/EvictionPolicy/standard``. Use this property for a cache with
    /// a single user.
    public var evictsAfterPlayback = false
    /// The category that the app assigns to the media, such as `podcasts`, for an ``/SpoolStorage/EvictionQuota``. If
    /// it is `nil`, the previous tag stays in effect.
    public var tag: String?
    /// The header fields that are known before the first request.
    let headerFields: HTTPFields
    let resolve: @Sendable (ResolutionReason) async throws -> ResolvedRequest
    /// The time for which the source's origin may delay a response until the resource exists, as for a blocking HLS
    /// reload (RFC 8216bis §6.2.5.2).
    ///
    /// The value is `nil` if the origin never delays responses. A delayed response is not used to estimate the speed of
    /// the connection, and does not count as a connection while it is delayed.
    package var responseHold: Duration?
    /// The key of the playlist or manifest that contains the media. The media and the playlist are used, pinned and
    /// removed together, if both are stored.
    package var presentation: CacheKey?
    /// Whether the media is fetched for playback without a network, so that requests for it are not preloads.
    package var isDownload = false
    /// The cookies set by the source's origins. Copies of the source, and all parts of its stream, share them.
    package var cookies = CookieJar()
    /// The transport for this source; `nil` for the transport of the cache.
    var upstreamOverride: (any Upstream)?
    /// An identifier that distinguishes sources with different resolvers, whose results are not known in advance.
    let resolver: UUID?

    /// Whether a resolver supplies the source's requests, and may supply a new request after a rejection.
    package var isResolved: Bool { resolver != nil }

    /// Returns whether the requests of a different source have the same header fields, so that both sources may receive
    /// the same personal response.
    func requestsAlike(_ other: MediaSource) -> Bool {
        headerFields == other.headerFields && resolver == other.resolver
            && (cookies === other.cookies || cookies.isEmpty && other.cookies.isEmpty)
    }

    /// Creates a source for the media at `url`, requested with `headerFields`.
    ///
    /// User and password in `url` are sent as a Basic `Authorization`, unless `headerFields` contains one, and are not
    /// part of ``url``.
    ///
    /// - Parameters:
    ///   - url: The URL of the media.
    ///   - key: The cache key. If it is `nil`, the cache's key policy derives the key from `url`. Two sources with the
    ///     same key share their bytes, so they must refer to the same media.
    ///   - headerFields: The header fields of all requests for the media.
    public init(url: URL, key: CacheKey? = nil, headerFields: HTTPFields = [:]) {
        let request = ResolvedRequest(url: url, headerFields: headerFields)
        self.url = request.url
        self.key = key
        self.headerFields = request.headerFields
        self.resolve = { _ in request }
        self.resolver = nil
    }

    /// Creates a source whose URL and header fields are resolved when needed.
    ///
    /// - Parameters:
    ///   - url: Any URL that identifies the media. Requests are sent to the URL that `resolve` returns.
    ///   - key: The cache key. If it is `nil`, the cache's key policy derives the key from `url`.
    ///   - resolve: A function that is called before the first request, after a rejection, and after the expiration,
    ///     from any task. If it throws a `URLError` or an ``UpstreamError`` about the network, it is called again as
    ///     `RetryPolicy` specifies. Any other error ends playback.
    public init(
        url: URL, key: CacheKey? = nil, resolve: @escaping @Sendable (ResolutionReason) async throws -> ResolvedRequest
    ) {
        self.url = url.separatingCredentials.url
        self.key = key
        self.headerFields = [:]
        self.resolve = resolve
        self.resolver = UUID()
    }

    /// Creates a source with the resolver of another source; see ``init(url:key:resolve:)``.
    package init(
        url: URL, key: CacheKey?, resolver: UUID,
        resolve: @escaping @Sendable (ResolutionReason) async throws -> ResolvedRequest
    ) {
        self.url = url.separatingCredentials.url
        self.key = key
        self.headerFields = [:]
        self.resolve = resolve
        self.resolver = resolver
    }

    /// Whether requests from the source consist only of its URL, and the source does not have a custom key.
    package var isPlain: Bool { resolver == nil && headerFields.isEmpty && key == nil }

    /// Returns a request for the media that bypasses the cache.
    package func resolved(_ reason: ResolutionReason = .initial) async throws -> ResolvedRequest {
        try await resolve(reason)
    }

    /// Returns whether both sources send the same requests for the same URL, under the same key.
    package func isSame(as other: MediaSource) -> Bool {
        url == other.url && key == other.key && resolver == other.resolver && headerFields == other.headerFields
    }

    /// Returns the cache key of the source, without regard to the credentials of a reader.
    func key(by policy: CacheKeyPolicy) -> CacheKey { key ?? policy.key(for: url) }

    /// The URL without its user, password, query and fragment, so that it can be shown, logged and stored.
    public var redactedURL: String { Self.redactedURL(of: url) }

    /// Returns the scheme, host, port and path of `url`, without the user, password, query and fragment.
    package static func redactedURL(of url: URL) -> String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "(invalid URL)" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? "(invalid URL)"
    }
}

/// A request to the origin of a ``MediaSource``: its URL and credentials.
public struct ResolvedRequest: Sendable {
    /// The URL to request: `http` or `https`, unless the cache's transport supports others.
    public var url: URL
    /// Additional header fields, such as `Authorization`.
    public var headerFields: HTTPFields
    /// The time at which the request expires, such as the expiration of a signed URL. It is `nil` if the request is
    /// valid until the origin rejects it.
    ///
    /// After that time, the source is resolved again before the next request is sent. Responses that have already
    /// started continue.
    public var expiration: Date?

    /// Creates a request. User and password in `url` (`http://user:password@host`) become a Basic `Authorization`,
    /// unless `headerFields` contains one.
    public init(url: URL, headerFields: HTTPFields = [:], expiration: Date? = nil) {
        let (url, authorization) = url.separatingCredentials
        self.url = url
        self.headerFields = headerFields
        self.expiration = expiration
        if let authorization, headerFields[.authorization] == nil { self.headerFields[.authorization] = authorization }
    }
}
