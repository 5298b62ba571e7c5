import ByteRanges
import Foundation

/// The record of one resource.
struct ResourceRecord: Hashable, Sendable {
    /// The hash of the cache key, as 64 lower-case hexadecimal digits.
    var key: String
    /// The scheme, host and path of the URL, to be shown to users. It never contains a query, a fragment or user
    /// information.
    var url: String
    /// The media type that the origin reported.
    var contentType: String?
    /// Whether the resource is excluded from eviction.
    var isPinned: Bool
    /// The date when the resource was first stored. All dates in the record are accurate to the microsecond.
    var createdAt: Date
    /// The date of the last use by a reader or a preload.
    var lastUsedAt: Date
    /// The key of the presentation that the resource belongs to; `nil` if there is none.
    var presentation: String?
    /// The stored version; `nil` if only a pin is stored.
    var generation: GenerationRecord?
    /// Whether another program changed the record, in which case none of its values are used. Either a date is out of
    /// range, or a value of an encrypted cache can't be decrypted.
    var isUnreadable = false
}

/// The record of one version of a resource.
struct GenerationRecord: Hashable, Sendable, Identifiable {
    /// The number that identifies the version in the catalog. It is never reused for a different version.
    var id: Int64
    /// The name of the version's media file, and part of the data that its checksums cover.
    var identifier: GenerationIdentifier
    /// The length of the whole resource in bytes; `nil` if it is unknown.
    var length: Int64?
    /// The validator, length and type, as encoded by the engine.
    var version: String
    /// Other values that the engine stores, such as freshness.
    var fields: String
    /// The number of bytes in recorded blocks.
    var storedBytes: Int64
    /// The value that the row states for ``storedBytes``, and that the sums of the catalog include. It differs only if
    /// another program has changed it.
    var countedBytes: Int64 = 0
    /// The number of bytes that the row, its header fields and its file use in addition to the media, as stated in the
    /// row.
    var rowBytes: Int64 = 0
    /// Whether a process has ended uncleanly since the file was last compared with its record. In that case, the file
    /// may contain bytes that no block claims.
    var needsCleanup: Bool
    /// The layout of the version's blocks in the file: a ``BlockFormat``, or a value from a later version of Spool.
    var format: Int64
    /// The ranges of the recorded blocks.
    var storedRanges: ByteRangeSet
    /// Whether the row contains the ranges. If they were absent or wrong, they were computed from the blocks.
    var hasRanges = true

    /// Whether the row states the correct number of bytes. If not, another program has changed the row.
    var isCounted: Bool { storedBytes == countedBytes }
}

/// A resource that may be evicted, and the number of bytes that its eviction would free.
struct EvictionCandidate: Hashable, Sendable {
    /// The resource's key.
    var key: String
    /// The number of bytes in the resource's recorded blocks.
    var storedBytes: Int64
    /// The date on which the resource was last used.
    var lastUsedAt: Date
    /// The position in the order of eviction; see ``CatalogUses/leastRecentlyUsed(limit:after:)``.
    var position: EvictionPosition
}

/// A position in the order of eviction.
struct EvictionPosition: Hashable, Sendable {
    var lastUsedAt: Int64
    var resource: Int64
}

/// A resource that has been removed from the catalog.
struct RemovedResource: Hashable, Sendable {
    /// The resource's key.
    var key: String
    /// The URL that is shown to users.
    var url: String
    /// Whether the resource was excluded from eviction.
    var isPinned: Bool
    /// The version whose file is to be removed now; `nil` if only a pin was stored.
    var generation: GenerationIdentifier?
    /// The number of bytes in the version's recorded blocks.
    var storedBytes: Int64
    /// The number of bytes that the version's row claimed.
    var rowBytes: Int64 = 0
    /// The errors in the counts of the resource's row, which were corrected before the row was removed.
    var correction = CountCorrection()
}

/// The number of bytes by which the sums in the catalog, and the space accounting, were wrong.
struct CountCorrection: Hashable, Sendable {
    var storedBytes: Int64 = 0
    var rowBytes: Int64 = 0
}

/// The record of a member of a set to store offline.
package struct DownloadRecord: Hashable, Sendable {
    /// The set's name.
    package var set: String
    /// The cache key's hash.
    package var key: String
    /// The scheme, host and path, to be shown to users.
    package var url: String
    /// The whole URL; `nil` if it must not be stored.
    package var source: String?
    /// The length of the whole resource in bytes; `nil` if it is unknown.
    package var length: Int64?
    /// The number of bytes in recorded blocks.
    package var storedBytes: Int64 = 0

    /// Creates a record.
    package init(set: String, key: String, url: String, source: String?) {
        self.set = set
        self.key = key
        self.url = url
        self.source = source
    }
}
