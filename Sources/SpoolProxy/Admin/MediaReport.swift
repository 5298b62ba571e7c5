#if Proxy
package import Foundation
package import Spool

/// The stored part of one resource, as `spool ls --json` and the server's `/.spool/api/media` show it.
package struct MediaReport: Encodable, Sendable {
    /// Scheme, host and path.
    package var url: String
    /// The key's hash.
    package var key: String
    /// Null where it is not known: the length in bytes, the type, or what tells the version from others.
    @OrNull package var length: Int64?
    /// Null where it is not known: the length in bytes, the type, or what tells the version from others.
    @OrNull package var contentType: String?
    /// Null where it is not known: the length in bytes, the type, or what tells the version from others.
    @OrNull package var validator: String?
    /// Bytes that are stored.
    package var cachedBytes: Int64
    /// What is stored, as pairs of half-open bounds.
    package var ranges: [[Int64]]
    /// Whether all of it is stored.
    package var complete: Bool
    /// Whether it is kept from eviction.
    package var pinned: Bool
    /// When it was last played.
    package var lastUsed: Date
    /// The key of the playlist whose presentation it is a part of; null: of none.
    @OrNull package var presentation: String?

    /// Of what is stored of one resource.
    package init(_ media: StoredResource) {
        url = media.address
        key = media.key.hash
        _length = OrNull(wrappedValue: media.length)
        _contentType = OrNull(wrappedValue: media.mimeType)
        _validator = OrNull(wrappedValue: media.validator)
        cachedBytes = media.storedByteCount
        ranges = media.storedRanges.map { [$0.lowerBound, $0.upperBound] }
        complete = media.isComplete
        pinned = media.isPinned
        lastUsed = media.lastUsed
        _presentation = OrNull(wrappedValue: media.presentation?.hash)
    }
}
#endif
