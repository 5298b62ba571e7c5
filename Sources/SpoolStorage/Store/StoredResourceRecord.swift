package import ByteRanges
package import Foundation

/// What the store holds of one resource, to look at.
package struct StoredResourceRecord: Sendable, Hashable {
    /// Its name.
    package var key: CacheKey
    /// Scheme, host and path; no query values.
    package var url: String
    /// Length, type, version and fields, as they were last described; nil if only a pin is kept.
    package var description: GenerationDescription?
    /// Which bytes are kept.
    package var landed: ByteRangeSet
    /// Whether it is kept from eviction.
    package var isPinned: Bool
    /// When it was first stored.
    package var createdAt: Date
    /// When it was last used.
    package var lastUsedAt: Date
    /// What it is a part of, as a segment of a playlist's presentation.
    package var presentation: CacheKey?
}
