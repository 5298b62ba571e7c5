package import ByteRanges
package import Foundation

/// What the catalog knows of one resource.
package struct ResourceRecord: Hashable, Sendable {
    /// The cache key's hash: 64 lower-case hexadecimal digits.
    package var key: String
    /// Scheme, host and path of the URL: what people are shown. Never a query, a fragment or user information.
    package var url: String
    /// The media type that the origin named.
    package var contentType: String?
    /// Whether the resource is kept from eviction.
    package var isPinned: Bool
    /// When the resource was first stored; to the microsecond, as all dates here.
    package var createdAt: Date
    /// When it was last read or preloaded.
    package var lastUsedAt: Date
    /// The key of the resource that it is a part of; nil: of none.
    package var presentation: String?
    /// The version whose bytes are kept; nil if only the pin is.
    package var generation: GenerationRecord?
    /// Whether another program changed the record, so that none of its values is used. Either a date is out of range,
    /// or a value of an encrypted cache can't be decrypted.
    package var isUnreadable = false
}

/// What the catalog knows of one version of a resource's bytes.
package struct GenerationRecord: Hashable, Sendable, Identifiable {
    /// The catalog's number for it; never used again for another.
    package var id: Int64
    /// The name of its media file, and part of what its seals cover.
    package var identifier: GenerationIdentifier
    /// The whole resource's length in bytes, if it is known.
    package var length: Int64?
    /// Validator, length and type as the engine encoded them; the catalog does not look inside.
    package var version: String
    /// What else the engine keeps with the version, such as freshness; the catalog does not look inside.
    package var fields: String
    /// Bytes in recorded blocks.
    package var storedBytes: Int64
    /// Bytes that the row, its header fields and its file take beside the media.
    package var rowBytes: Int64 = 0
    /// Whether the file may hold bytes that no block claims, since a process ended uncleanly after it was last tidied.
    package var needsTidying: Bool
    /// How its blocks lie in the file: a ``BlockFormat``, or one of a later version.
    package var format: Int64
    /// The number of the secret with which they are sealed.
    package var secret: Int64 = 0
    /// Which bytes the recorded blocks hold; nil if that has to be worked out from them.
    package var landed: ByteRangeSet?
}

/// A resource that eviction may take, and what that would give back.
package struct EvictionCandidate: Hashable, Sendable {
    /// The resource's key.
    package var key: String
    /// Bytes in its recorded blocks.
    package var storedBytes: Int64
    /// When it was last used.
    package var lastUsedAt: Date
    /// Where it stands in the order of eviction; see ``Catalog/leastRecentlyUsed(limit:after:)``.
    package var position: EvictionPosition
}

/// A place in the order of eviction, to go on from.
package struct EvictionPosition: Hashable, Sendable {
    var lastUsedAt: Int64
    var resource: Int64
}

/// A resource that has been removed from the catalog.
package struct RemovedResource: Hashable, Sendable {
    /// Its key.
    package var key: String
    /// What people are shown.
    package var url: String
    /// Whether it was kept from eviction.
    package var isPinned: Bool
    /// Whose file has to go now; nil if only a pin was kept.
    package var generation: GenerationIdentifier?
    /// Bytes that its recorded blocks held.
    package var storedBytes: Int64
    /// Bytes that its row claimed.
    package var rowBytes: Int64 = 0
}
