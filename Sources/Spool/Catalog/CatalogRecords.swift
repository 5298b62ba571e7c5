package import Foundation

/// What the catalog knows of one resource.
package struct ResourceRecord: Hashable, Sendable {
    /// The cache key's hash: 64 lower-case hexadecimal digits.
    package var key: String
    /// Scheme, host and path of the address: what people are shown. Never a query, a fragment or user information.
    package var url: String
    /// The media type that the origin named.
    package var contentType: String?
    /// Whether the resource is kept from eviction.
    package var isPinned: Bool
    /// When the resource was first stored; to the microsecond, as all dates here.
    package var createdAt: Date
    /// When it was last read or preloaded.
    package var lastUsedAt: Date
    /// The version whose bytes are kept; nil if only the pin is.
    package var generation: GenerationRecord?
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
}

/// A resource that eviction may take, and what that would give back.
package struct EvictionCandidate: Hashable, Sendable {
    /// The resource's key.
    package var key: String
    /// Its current generation.
    package var generation: Int64
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
