public import Foundation
public import HTTPTypes
public import Spool

/// An account that creates media sources whose requests contain the account's current header fields.
///
/// The fields are resolved once for all sources. They are resolved again after they expire or the origin rejects them
/// (401, 403, 407, 410), but only once for all concurrent transfers. Cached media is found whatever the fields are,
/// because cache keys do not contain secrets.
///
/// ```swift
/// let drive = HeaderProvider.bearer(expiration: tokens.expiration) { try await tokens.refreshed() }
/// let song = drive.media(at: URL(string: "https://www.googleapis.com/drive/v3/files/\(id)?alt=media")!)
/// ```
///
/// The fields are sent to the requested host, but not to another host after a redirect. The type may be used from any
/// task.
public final class HeaderProvider: Sendable {
    /// The header fields of an account, and their expiration.
    public struct Fields: Sendable {
        /// The header fields, such as `Authorization`.
        public var headerFields: HTTPFields
        /// The time at which the fields expire, or `nil` if they are valid until the origin rejects them.
        public var expiration: Date?

        /// Creates the fields of an account.
        public init(_ headerFields: HTTPFields, expiration: Date? = nil) {
            self.headerFields = headerFields
            self.expiration = expiration
        }
    }

    private let resolution: SharedResolution<Fields>
    private let resolver = UUID()

    /// Creates a provider of the header fields that `resolve` returns.
    ///
    /// - Parameters:
    ///   - now: A function that returns the current date, to check the expiration.
    ///   - resolve: A function that returns the fields. It is called when fields are first needed, have expired or have
    ///     been rejected, but never concurrently. An error ends playback, unless the network connection was lost (see
    ///     `MediaSource`).
    public init(
        now: @escaping @Sendable () -> Date = { Date() },
        resolve: @escaping @Sendable (MediaSource.ResolutionReason) async throws -> Fields
    ) {
        resolution = SharedResolution(now: now, expiration: \.expiration, resolve: resolve)
    }

    /// Returns a source for media of the account.
    ///
    /// - Parameters:
    ///   - url: The URL of the media.
    ///   - key: The cache key. If `nil`, the cache's key policy is applied to `url`.
    public func media(at url: URL, key: CacheKey? = nil) -> MediaSource {
        let share = resolution.makeShare()
        return MediaSource(url: url, key: key, resolver: resolver) { reason in
            let fields = try await share.value(reason)
            return ResolvedRequest(url: url, headerFields: fields.headerFields, expiration: fields.expiration)
        }
    }

    /// Returns a source for media whose URL must first be requested with the account's fields.
    ///
    /// - Parameters:
    ///   - url: The URL that the player uses, which identifies the media.
    ///   - key: See ``media(at:key:)``.
    ///   - resolve: A function that returns the URL of the media. It is called for each resolution, with the current
    ///     fields of the account.
    public func media(
        named url: URL, key: CacheKey? = nil,
        resolve: @escaping @Sendable (AuthenticatedClient) async throws -> ResolvedRequest
    ) -> MediaSource {
        let client = client()
        return MediaSource(url: url, key: key) { _ in try await resolve(client) }
    }

    /// Returns a client that sends requests with the account's header fields.
    public func client() -> AuthenticatedClient { AuthenticatedClient(resolution.makeShare()) }
}

extension HeaderProvider {
    /// Creates an account with a bearer token (RFC 6750), such as an OAuth token.
    ///
    /// - Parameters:
    ///   - token: The first token, or `nil` to get it from `refresh`.
    ///   - expiration: The time at which `token` expires.
    ///   - now: A function that returns the current date, to check the expiration.
    ///   - refresh: A function that returns a new token and its expiration.
    public static func bearer(
        _ token: String? = nil, expiration: Date? = nil, now: @escaping @Sendable () -> Date = { Date() },
        refresh: @escaping @Sendable () async throws -> (token: String, expiration: Date?)
    ) -> HeaderProvider {
        HeaderProvider(now: now) { reason in
            if case .initial = reason, let token, expiration.map({ $0 > now() }) ?? true {
                return Fields([.authorization: "Bearer \(token)"], expiration: expiration)
            }
            let fresh = try await refresh()
            return Fields([.authorization: "Bearer \(fresh.token)"], expiration: fresh.expiration)
        }
    }

    /// Creates an account with a user name and a password (RFC 7617), in UTF-8.
    public static func basic(user: String, password: String) -> HeaderProvider {
        let word = Data("\(user):\(password)".utf8).base64EncodedString()
        return HeaderProvider { _ in Fields([.authorization: "Basic \(word)"]) }
    }
}
