public import Foundation
public import HTTPTypes
public import SpoolStorage

/// Where a media file comes from and what it is named by: a URL, or one whose address and credentials are found when
/// needed.
///
/// ``url`` is what the player asked for. What is sent to the origin may be another address with other header fields,
/// found by `resolve`: a signed link of a cloud drive, a bearer token, the file behind a scheme of the app's own
/// (`myapp://42`). When the origin refuses it (401, 403, 407, 410), or it has expired, `resolve` is called once more for
/// a fresh one and the play goes on.
///
/// What is kept is found again by the cache's key policy, which makes a name of ``url``; or by ``key``, for an app that
/// has a name of its own for the media file, such as a number in its database, whatever its URL is today.
///
/// ```swift
/// MediaSource(url: signedURL, key: CacheKey("track 42"))
/// MediaSource(url: url) { _ in ResolvedRequest(url: url, headerFields: [.authorization: try await bearer()]) }
/// ```
public struct MediaSource: Sendable {
    /// Why a request is being resolved.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Reason: Sendable, Hashable {
        /// Nothing has been asked yet.
        case first
        /// The origin refused the former address or credentials with this HTTP status.
        case refused(status: Int)
        /// The former one's ``ResolvedRequest/expiration`` has passed.
        case expired
    }

    /// The resource, as a player sees it.
    public let url: URL
    /// The name under which the app wants it kept; nil: the one that the cache's key policy makes of ``url``.
    public package(set) var key: CacheKey?
    /// Whether it is not played again once it was heard to its end, as an episode of a podcast is by most: then it goes
    /// first when room is needed, under ``/SpoolStorage/EvictionPolicy/standard``. For a cache that one person uses.
    public var isPlayedOnce = false
    /// What the app calls it, such as `podcasts`, for an ``/SpoolStorage/EvictionQuota``; nil: what it was called before.
    public var tag: String?
    /// What is sent along from the first request on, where that is known beforehand.
    let headerFields: HTTPFields
    let resolve: @Sendable (Reason) async throws -> ResolvedRequest
    /// How long its origin may hold a response back on purpose, until what is asked for exists, as for a blocking reload of
    /// HLS (RFC 8216bis §6.2.5.2); nil: it never does. A held response tells nothing of the line, and its connection counts
    /// for none while it waits.
    package var responseHold: Duration?
    /// The key of the playlist or manifest that names it: they are used, pinned and removed together, as far as both are
    /// stored.
    package var presentation: CacheKey?
    /// The upstream that sends its bytes in the place of the cache's; nothing here looks inside.
    var standIn: (any Sendable)?
    /// Tells sources with resolvers of their own apart, since what they resolve to is not known beforehand.
    let resolver: UUID?

    /// Whether requests are found by a resolver, which may find another when one is refused.
    package var isResolved: Bool { resolver != nil }

    /// A media file at `url`, asked for with `headerFields`.
    ///
    /// User and password in `url` are sent as a Basic `Authorization`, unless `headerFields` has one, and are not part of
    /// ``url``.
    ///
    /// - Parameters:
    ///   - url: Where it is.
    ///   - key: The name to keep it under, in place of the one that the cache's key policy makes of `url`. Two sources with
    ///     one key share their bytes, so they must be the same file.
    ///   - headerFields: What is sent along.
    public init(url: URL, key: CacheKey? = nil, headerFields: HTTPFields = [:]) {
        let request = ResolvedRequest(url: url, headerFields: headerFields)
        self.url = request.url
        self.key = key
        self.headerFields = request.headerFields
        self.resolve = { _ in request }
        self.resolver = nil
    }

    /// A media file named by `url`, whose address and header fields `resolve` finds.
    ///
    /// - Parameters:
    ///   - url: Any URL: the origin is asked for what `resolve` returns.
    ///   - key: The name to keep it under, in place of the one that the cache's key policy makes of `url`.
    ///   - resolve: Called before the first request, once more each time the origin refuses what it gave, and when that
    ///     has expired; from any task. Where it throws a `URLError` or an ``UpstreamError`` that tells of a network that
    ///     is not there or fails, it is tried again as the network is (``RetryPolicy``); what else it throws ends the
    ///     play with that error.
    public init(
        url: URL, key: CacheKey? = nil, resolve: @escaping @Sendable (Reason) async throws -> ResolvedRequest
    ) {
        self.url = url.separatingCredentials.url
        self.key = key
        self.headerFields = [:]
        self.resolve = resolve
        self.resolver = UUID()
    }

    /// As ``init(url:key:resolve:)``, with a resolver that another source has, too.
    package init(
        url: URL, key: CacheKey?, resolver: UUID, resolve: @escaping @Sendable (Reason) async throws -> ResolvedRequest
    ) {
        self.url = url.separatingCredentials.url
        self.key = key
        self.headerFields = [:]
        self.resolve = resolve
        self.resolver = resolver
    }

    /// Whether requests for it need nothing but its URL, and it has no name of its own.
    package var isPlain: Bool { resolver == nil && headerFields.isEmpty && key == nil }

    /// What a request for it is sent with, past the cache.
    package func resolved(_ reason: Reason = .first) async throws -> ResolvedRequest { try await resolve(reason) }

    /// Whether both send the same for the same URL, under the same name.
    package func isSame(as other: MediaSource) -> Bool {
        url == other.url && key == other.key && resolver == other.resolver && headerFields == other.headerFields
    }

    /// The name that it is kept under, whoever asks for it.
    func key(by policy: CacheKeyPolicy) -> CacheKey { key ?? policy.key(for: url) }

    /// Scheme, host and path of the resource: what may be shown, logged and stored.
    public var displayAddress: String { Self.displayAddress(of: url) }

    /// Scheme, host, port and path of `url`, without user, password, query and fragment.
    package static func displayAddress(of url: URL) -> String {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "(unreadable address)" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? "(unreadable address)"
    }
}
