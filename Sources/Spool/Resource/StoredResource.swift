public import ByteRanges
public import Foundation
import HTTPRanges
public import SpoolStorage

/// What a cache holds of one media file.
public struct StoredResource: Sendable, Hashable {
    /// Its name in the cache.
    public var key: CacheKey
    /// Scheme, host and path; no query values.
    public var address: String
    /// Number of bytes of the whole; nil if no response has told it.
    public var length: Int64?
    /// The media type that the origin named, such as `audio/mpeg`.
    public var mimeType: String?
    /// What tells this version from others: the entity tag, else `Last-Modified`; nil if the origin sent neither.
    public var validator: String?
    /// Which bytes are kept.
    public var storedRanges: ByteRangeSet
    /// Whether it is kept from eviction.
    public var isPinned: Bool
    /// When a reader last opened it.
    public var lastUsed: Date
    /// The key of the playlist that names it as a part of its presentation.
    package var presentation: CacheKey?

    /// Number of bytes kept.
    public var storedByteCount: Int64 { storedRanges.byteCount }
    /// Whether every byte is there.
    public var isComplete: Bool { length.map { storedRanges.contains(0..<$0) } ?? false }
}

extension StoredResource {
    init(_ resource: StoredResourceRecord) {
        let version = resource.description.flatMap { ResourceVersion(encoded: $0.version) }
        self.init(
            key: resource.key, address: resource.url, length: resource.description?.length,
            mimeType: resource.description?.contentType,
            validator: version?.validator.entityTag?.text ?? version?.validator.lastModified,
            storedRanges: resource.landed, isPinned: resource.isPinned, lastUsed: resource.lastUsedAt,
            presentation: resource.presentation)
    }
}
