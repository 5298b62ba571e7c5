public import ByteRanges
public import Foundation
import HTTPRanges
public import SpoolStorage

/// The stored part of one resource.
public struct StoredResource: Sendable, Hashable {
    /// The cache key.
    public var key: CacheKey
    /// The scheme, host and path of the URL.
    public var redactedURL: String
    /// The length in bytes; `nil` if no response stated it.
    public var length: Int64?
    /// The origin's media type, such as `audio/mpeg`; `nil` if the origin sent none.
    public var contentType: String?
    /// The entity tag of this version, or its `Last-Modified` if there is no entity tag; `nil` if the origin sent
    /// neither.
    public var validator: String?
    /// The stored ranges.
    public var storedRanges: ByteRangeSet
    /// Whether the resource is protected from eviction.
    public var isPinned: Bool
    /// The time at which a reader or a preload last used the resource.
    public var lastUsed: Date
    /// The key of the playlist that contains the resource as a part of its presentation.
    package var presentation: CacheKey?

    /// The number of stored bytes.
    public var storedByteCount: Int64 { storedRanges.byteCount }
    /// Whether every byte is stored.
    public var isComplete: Bool { length.map { storedRanges.contains(0..<$0) } ?? false }
}

extension StoredResource {
    init(_ resource: StoredResourceRecord) {
        let version = resource.description.flatMap { ResourceVersion(encoded: $0.version) }
        self.init(
            key: resource.key, redactedURL: resource.url, length: resource.description?.length,
            contentType: resource.description?.contentType,
            validator: version?.validator.entityTag?.text ?? version?.validator.lastModified,
            storedRanges: resource.storedRanges, isPinned: resource.isPinned, lastUsed: resource.lastUsedAt,
            presentation: resource.presentation)
    }
}

/// The information that a player needs about a resource before it reads the first byte.
public struct ContentInformation: Sendable, Hashable {
    /// The number of bytes; `nil` until a response from the origin states it.
    public var length: Int64?
    /// The origin's media type, such as `audio/mpeg`; `nil` if the origin sent none.
    public var contentType: String?
    /// Whether any byte range can be requested at any time. It is `false` if the origin sends only whole bodies.
    public var supportsByteRanges: Bool

    /// Creates content information from its values.
    public init(length: Int64?, contentType: String?, supportsByteRanges: Bool) {
        self.length = length
        self.contentType = contentType
        self.supportsByteRanges = supportsByteRanges
    }
}
