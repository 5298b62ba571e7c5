package import Foundation
package import HTTPRanges
package import HTTPTypes
import SpoolStorage

/// The head under which an origin sent a version, as it is kept with the version and sent on to others.
package struct StoredResponse: Sendable, Hashable {
    /// The status of the whole: 200 where only parts have come.
    package var status: Int
    /// The end-to-end fields, as later responses of the version have updated them. Framing (`Content-Length`,
    /// `Content-Range`), `Age` and what is one user's (`Set-Cookie`) is not among them.
    package var fields: HTTPFields
    /// The length of the whole in bytes, if it is known.
    package var length: Int64?
    /// The address after redirects, without user, query and fragment. `nil` if it is not stored: if it is neither the
    /// resource's own address nor that of a playlist.
    package var url: URL?
    /// Tells the version from others.
    package var validator: Validator
    /// Whether its bytes are kept on disk, rather than only passed on.
    package var isStored: Bool
    /// Whether the origin sent cookies with it that are not among the fields: who needs them has to ask himself.
    package var dropsCookies: Bool { freshness?.head?.dropsCookies ?? false }
    private var freshness: StoredFreshness?

    /// Whether a source, which needs no resolver, would have been sent it, too (RFC 9111 §4.1).
    func isSelected(by source: MediaSource) -> Bool { freshness?.matches(source.headerFields) ?? true }

    /// What stands for the variant of the same resource that a request with these fields would be sent.
    func selection(by request: HTTPFields) -> String { freshness?.selection(by: request) ?? "" }

    /// How old it is at a moment in seconds since 1970: what `Age` says of it (RFC 9111 §4.2.3).
    package func age(at now: Int64) -> Int64 { freshness?.age(at: now) ?? 0 }

    /// For how many seconds more, at a moment in seconds since 1970, it may be used without asking; less than none
    /// where it is stale, nil where that is not known.
    package func lifetimeLeft(at now: Int64) -> Int64? {
        guard let freshness else { return nil }
        let (left, overflow) = freshness.freshUntil.subtractingReportingOverflow(now)
        return overflow ? .min : left
    }

    /// How the response may be used at a time, in seconds since 1970, for a request with these directives.
    func use(at now: Int64, for demand: RequestDirectives) -> StoredFreshness.Use {
        freshness?.use(at: now, for: demand) ?? .ask
    }

    /// Whether the response may be sent to a request although another request caused it.
    ///
    /// - Parameter now: The time in seconds since 1970.
    package func mayBeShared(with source: MediaSource, _ demand: RequestDirectives, at now: Int64) -> Bool {
        isSelected(by: source) && use(at: now, for: demand) != .ask
    }

    /// Whether it may be used at a moment in seconds since 1970 without asking, by HTTP's rules (RFC 9111 §4.2).
    package func isFresh(at now: Int64) -> Bool { freshness?.isFresh(at: now) ?? false }
}

extension StoredResponse {
    /// Of what is kept of a version; where an earlier build noted no head, its most needed fields are made from the
    /// rest.
    init(_ description: GenerationDescription, isStored: Bool) {
        var version = ResourceVersion(encoded: description.version) ?? ResourceVersion()
        version.contentType = version.contentType ?? description.contentType
        let freshness = StoredFreshness(encoded: description.fields)
        self.init(version, freshness, length: description.length ?? version.length, isStored: isStored)
    }

    /// Of a resource of which only the length has been told, or not even that.
    init(length: Int64?) { self.init(ResourceVersion(), nil, length: length, isStored: false) }

    private init(_ version: ResourceVersion, _ freshness: StoredFreshness?, length: Int64?, isStored: Bool) {
        status = freshness?.head?.status ?? 200
        fields = freshness?.head?.fields ?? HTTPFields(version)
        self.length = length
        url = freshness?.head?.url.flatMap { URL(string: $0) }
        validator = version.validator
        self.isStored = isStored
        self.freshness = freshness
    }
}

extension HTTPFields {
    fileprivate init(_ version: ResourceVersion) {
        self.init()
        if let type = version.contentType { self[.contentType] = type }
        if let tag = version.validator.entityTag { self[.eTag] = tag.text }
        if let date = version.validator.lastModified { self[.lastModified] = date }
    }
}
