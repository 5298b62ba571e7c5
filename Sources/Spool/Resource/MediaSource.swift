public import Foundation
public import HTTPTypes

/// Where a media file comes from: a plain URL, or one whose address and credentials are resolved when needed.
///
/// ``url`` is what the player asked for and what the cache key is made of. What is sent to the origin may be another
/// address with other header fields, found by `resolve`: a signed link of a cloud drive, a bearer token. When the
/// origin refuses it (401, 403, 407, 410), `resolve` is called once more for a fresh one and the play goes on.
public struct MediaSource: Sendable {
    /// What to send to the origin.
    public struct Address: Sendable {
        /// The address to ask; `http` or `https`.
        public var url: URL
        /// Header fields to send along, such as `Authorization`.
        public var fields: HTTPFields

        /// Creates an address; user and password in it (`http://user:password@host`) become a Basic `Authorization`,
        /// unless `fields` has one.
        public init(url: URL, fields: HTTPFields = [:]) {
            let (url, authorization) = url.separatingCredentials
            self.url = url
            self.fields = fields
            if let authorization, fields[.authorization] == nil { self.fields[.authorization] = authorization }
        }
    }

    /// Why an address is being resolved.
    public enum Reason: Sendable, Hashable {
        /// Nothing has been asked yet.
        case first
        /// The origin refused the former address or credentials with this HTTP status.
        case refused(status: Int)
    }

    /// The resource, as a player sees it.
    public let url: URL
    /// What is sent along from the first request on, where that is known beforehand.
    let fields: HTTPFields
    let resolve: @Sendable (Reason) async throws -> Address
    let canRefresh: Bool
    /// Tells sources with resolvers of their own apart, since what they resolve to is not known beforehand.
    let resolver: UUID?

    /// A media file at `url`, asked for with `fields`.
    ///
    /// User and password in `url` are sent as a Basic `Authorization`, unless `fields` has one, and are not part of
    /// ``url``.
    public init(url: URL, fields: HTTPFields = [:]) {
        let address = Address(url: url, fields: fields)
        self.url = address.url
        self.fields = address.fields
        self.resolve = { _ in address }
        self.canRefresh = false
        self.resolver = nil
    }

    /// A media file named by `url`, whose address and header fields `resolve` finds.
    ///
    /// - Parameter resolve: Called before the first request, and once more each time the origin refuses what it gave;
    ///   from any task. What it throws ends the play with that error.
    public init(url: URL, resolve: @escaping @Sendable (Reason) async throws -> Address) {
        self.url = url.separatingCredentials.url
        self.fields = [:]
        self.resolve = resolve
        self.canRefresh = true
        self.resolver = UUID()
    }

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
