package import Foundation
package import HTTPRanges
package import HTTPTypes
import SpoolStorage

/// The headers that an origin sent with a version. They are stored with the version and sent to clients.
package struct StoredResponse: Sendable, Hashable {
    /// The status of the whole resource: 200 if only parts were received.
    package var status: Int
    /// The end-to-end fields, as updated by later responses for the version. They do not contain framing
    /// (`Content-Length`, `Content-Range`), `Age` or credentials. Cookies are among them only if all clients may
    /// receive them; see ``EndToEndFields/storable(_:isOfSite:)``.
    package var fields: HTTPFields
    /// The length of the whole resource in bytes, if it is known.
    package var length: Int64?
    /// The URL after redirects, without user, query and fragment. The value is `nil` unless the URL is that of the
    /// resource or of a playlist.
    package var url: URL?
    /// The validator, which distinguishes the version from other versions.
    package var validator: Validator
    /// Whether the origin sends parts of the resource, as far as is known.
    package var supportsRanges: Bool
    /// Whether the bytes are compressed. If they are not, the fields may still contain a wrong `Content-Encoding`.
    package var isCompressed: Bool
    /// Whether the bytes of the response are stored on disk, and not only forwarded.
    package var isStored: Bool
    /// Whether the origin sent cookies that are not among the fields. A client that needs them must send its own
    /// request.
    package var dropsCookies: Bool { freshness?.head?.dropsCookies ?? false }
    private var freshness: StoredFreshness?

    /// Returns whether a request from a source without a resolver would also select this response (RFC 9111 §4.1).
    func isSelected(by source: MediaSource) -> Bool { freshness?.matches(source.headerFields) ?? true }

    /// Returns a string that identifies the variant that a request with these fields selects.
    func selection(by request: HTTPFields) -> String { freshness?.selection(by: request) ?? "" }

    /// Returns the age of the response in seconds, which is the value of `Age` (RFC 9111 §4.2.3). `now` is in seconds
    /// since 1970.
    package func age(at now: Int64) -> Int64 { freshness?.age(at: now) ?? 0 }

    /// Returns the number of seconds for which the response may still be used without revalidation. `now` is in seconds
    /// since 1970. The result is negative if the response is stale, and `nil` if its freshness is unknown.
    package func lifetimeLeft(at now: Int64) -> Int64? {
        guard let freshness else { return nil }
        let (left, overflow) = freshness.freshUntil.subtractingReportingOverflow(now)
        return overflow ? .min : left
    }

    /// Returns how the response may be used for a request with these directives. `now` is in seconds since 1970.
    func use(at now: Int64, for directives: RequestDirectives) -> StoredFreshness.Use {
        freshness?.use(at: now, for: directives) ?? .validate
    }

    /// Returns whether the response may be used for a request other than the one that caused it.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    package func mayBeShared(with source: MediaSource, _ directives: RequestDirectives, at now: Int64) -> Bool {
        isSelected(by: source) && use(at: now, for: directives) != .validate
    }

    /// Returns whether the response may be used without revalidation (RFC 9111 §4.2). `now` is in seconds since 1970.
    package func isFresh(at now: Int64) -> Bool { freshness?.isFresh(at: now) ?? false }
}

extension StoredResponse {
    /// Creates the headers from the description of a version. If an earlier build did not store headers, the most
    /// important fields are created from the other values.
    init(_ description: GenerationDescription, isStored: Bool) {
        var version = ResourceVersion(encoded: description.version) ?? ResourceVersion()
        version.contentType = version.contentType ?? description.contentType
        let freshness = StoredFreshness(encoded: description.fields)
        self.init(version, freshness, length: description.length ?? version.length, isStored: isStored)
    }

    /// Creates the headers of a resource of which at most the length is known.
    init(length: Int64?) { self.init(ResourceVersion(), nil, length: length, isStored: false) }

    private init(_ version: ResourceVersion, _ freshness: StoredFreshness?, length: Int64?, isStored: Bool) {
        status = freshness?.head?.status ?? 200
        fields = freshness?.head?.fields ?? HTTPFields(version)
        self.length = length
        url = freshness?.head?.url.flatMap { URL(string: $0) }
        validator = version.validator
        supportsRanges = version.acceptsRanges == true
        isCompressed = version.contentEncoding != nil
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
