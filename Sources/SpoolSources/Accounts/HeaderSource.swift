public import Foundation
public import HTTPTypes
public import Spool

/// Media sources of one account: all are asked for with the header fields that the account has now.
///
/// The fields are found once for all, and once more when they have expired or the origin refuses them (401, 403, 407,
/// 410), however many transfers meet that at once. What is kept is found again whatever the fields are: no key holds a
/// secret.
///
/// ```swift
/// let drive = HeaderSource.bearer(expiration: tokens.expiration) { try await tokens.refreshed() }
/// let song = drive.media(at: URL(string: "https://www.googleapis.com/drive/v3/files/\(id)?alt=media")!)
/// ```
///
/// The fields go to the address that is asked for, and to no other host after a redirect. May be used from any task.
public final class HeaderSource: Sendable {
    /// What an account sends, and until when it is accepted.
    public struct Fields: Sendable {
        /// The header fields, such as `Authorization`.
        public var headerFields: HTTPFields
        /// When they cease to be accepted; nil: when the origin refuses them.
        public var expiration: Date?

        /// Creates fields.
        public init(_ headerFields: HTTPFields, expiration: Date? = nil) {
            self.headerFields = headerFields
            self.expiration = expiration
        }
    }

    private let resolution: SharedResolution<Fields>
    private let resolver = UUID()

    /// An account whose fields `resolve` finds.
    ///
    /// - Parameters:
    ///   - now: The calendar by which they expire.
    ///   - resolve: Called when fields are first needed, have expired or were refused; never twice at once. What it throws
    ///     ends the play, unless it tells of a network that is not there: see `MediaSource`.
    public init(
        now: @escaping @Sendable () -> Date = { Date() },
        resolve: @escaping @Sendable (MediaSource.Reason) async throws -> Fields
    ) {
        resolution = SharedResolution(now: now, expiration: \.expiration, resolve: resolve)
    }

    /// A media file of the account.
    ///
    /// - Parameters:
    ///   - url: Its address.
    ///   - key: The name to keep it under; nil: the one that the cache's key policy makes of `url`.
    public func media(at url: URL, key: CacheKey? = nil) -> MediaSource {
        let share = resolution.share()
        return MediaSource(url: url, key: key, resolver: resolver) { reason in
            let fields = try await share.value(reason)
            return ResolvedRequest(url: url, headerFields: fields.headerFields, expiration: fields.expiration)
        }
    }

    /// A media file of the account whose address has to be asked for first, with the account's fields.
    ///
    /// - Parameters:
    ///   - url: What the player asks for; names the file.
    ///   - key: As in ``media(at:key:)``.
    ///   - address: Finds the address; called for each resolution, with the account's fields of then.
    public func media(
        named url: URL, key: CacheKey? = nil, address: @escaping @Sendable (Requester) async throws -> ResolvedRequest
    ) -> MediaSource {
        let requester = requester()
        return MediaSource(url: url, key: key) { _ in try await address(requester) }
    }

    /// Asks a service questions with the account's fields.
    public func requester() -> Requester { Requester(resolution.share()) }
}

extension HeaderSource {
    /// An account with a bearer token (RFC 6750), such as OAuth's.
    ///
    /// - Parameters:
    ///   - token: The token to begin with; nil: `refresh` is asked for the first.
    ///   - expiration: When `token` expires.
    ///   - now: The calendar by which tokens expire.
    ///   - refresh: Gives a fresh token and its expiry.
    public static func bearer(
        _ token: String? = nil, expiration: Date? = nil, now: @escaping @Sendable () -> Date = { Date() },
        refresh: @escaping @Sendable () async throws -> (token: String, expiration: Date?)
    ) -> HeaderSource {
        HeaderSource(now: now) { reason in
            if case .first = reason, let token, expiration.map({ $0 > now() }) ?? true {
                return Fields([.authorization: "Bearer \(token)"], expiration: expiration)
            }
            let fresh = try await refresh()
            return Fields([.authorization: "Bearer \(fresh.token)"], expiration: fresh.expiration)
        }
    }

    /// An account with a user's name and password (RFC 7617), in UTF-8.
    public static func basic(user: String, password: String) -> HeaderSource {
        let word = Data("\(user):\(password)".utf8).base64EncodedString()
        return HeaderSource { _ in Fields([.authorization: "Basic \(word)"]) }
    }
}
