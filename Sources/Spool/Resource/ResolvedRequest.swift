public import Foundation
public import HTTPTypes

/// What to send to the origin for a ``MediaSource``: where it is, and with which credentials.
public struct ResolvedRequest: Sendable {
    /// The address to ask; `http` or `https`, unless the cache's upstream knows others.
    public var url: URL
    /// Header fields to send along, such as `Authorization`.
    public var headerFields: HTTPFields
    /// When it ceases to be accepted, such as the expiry of a signed URL; nil: when the origin refuses it.
    ///
    /// From then on it is resolved anew before anything more is sent. Responses that have begun go on.
    public var expiration: Date?

    /// Creates a request; user and password in `url` (`http://user:password@host`) become a Basic `Authorization`,
    /// unless `headerFields` has one.
    public init(url: URL, headerFields: HTTPFields = [:], expiration: Date? = nil) {
        let (url, authorization) = url.separatingCredentials
        self.url = url
        self.headerFields = headerFields
        self.expiration = expiration
        if let authorization, headerFields[.authorization] == nil { self.headerFields[.authorization] = authorization }
    }
}
