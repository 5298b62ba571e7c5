#if Proxy
import ByteRanges
package import Foundation
package import Spool

/// The stored part of one resource, in the format of `spool ls --json` and the server's `/.spool/api/media`.
///
/// Unknown values are `null`.
package struct MediaReport: Encodable, Sendable {
    /// The scheme, the host and the path.
    package var url: String
    /// The hash of the cache key.
    package var key: String
    /// The length in bytes.
    @EncodedAsNull package var length: Int64?
    /// The media type.
    @EncodedAsNull package var contentType: String?
    /// The validator, which differs for each version.
    @EncodedAsNull package var validator: String?
    /// The number of stored bytes.
    package var cachedBytes: Int64
    /// The stored ranges, as pairs of half-open bounds.
    package var ranges: [[Int64]]
    /// Whether all bytes of the resource are stored.
    package var complete: Bool
    /// Whether the resource is protected from eviction.
    package var pinned: Bool
    /// The time of the last playback.
    package var lastUsed: Date
    /// The key of the playlist that the resource belongs to, or `null` if there is none.
    @EncodedAsNull package var streamKey: String?

    /// Creates the report of a stored resource.
    package init(_ media: StoredResource) {
        url = media.redactedURL
        key = media.key.hash
        _length = EncodedAsNull(wrappedValue: media.length)
        _contentType = EncodedAsNull(wrappedValue: media.contentType)
        _validator = EncodedAsNull(wrappedValue: media.validator)
        cachedBytes = media.storedByteCount
        ranges = media.storedRanges.map { [$0.lowerBound, $0.upperBound] }
        complete = media.isComplete
        pinned = media.isPinned
        lastUsed = media.lastUsed
        _streamKey = EncodedAsNull(wrappedValue: media.presentation?.hash)
    }
}

/// A stored file, or a stored playlist with the resources that belong to it.
package struct StoredPresentation: Sendable {
    /// The file, or the playlist that was opened first.
    package let media: StoredResource
    /// The resources that belong to the playlist.
    package let parts: [StoredResource]

    /// Creates a presentation from a file, or from a playlist with its parts.
    package init(media: StoredResource, parts: [StoredResource] = []) {
        self.media = media
        self.parts = parts
    }

    /// Returns the presentations of stored resources, in the order of `contents`.
    package static func presentations(in contents: [StoredResource]) -> [StoredPresentation] {
        let keys = Set(contents.map(\.key))
        let isPart = { (media: StoredResource) in media.presentation.map { keys.contains($0) } ?? false }
        let parts = Dictionary(grouping: contents.filter(isPart)) { $0.presentation }
        return contents.filter { !isPart($0) }.map { StoredPresentation(media: $0, parts: parts[$0.key] ?? []) }
    }

    /// The total number of stored bytes of all files, at most 2^53.
    package var byteCount: Int64 {
        parts.reduce(media.storedByteCount) { min($0 + $1.storedByteCount, NumberLimits.byteOffset) }
    }

    /// The number of files that are stored at least partly, including the playlist.
    package var fileCount: Int { parts.count + 1 }

    /// The number of completely stored files.
    package var completeFileCount: Int { parts.count(where: \.isComplete) + (media.isComplete ? 1 : 0) }
}

extension StoredPresentation {
    /// Returns a file, or a playlist with its parts; `nil` if nothing is stored under the key. The other resources are
    /// not read from the catalog.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package static func stored(_ key: CacheKey, in cache: MediaCache) async throws -> StoredPresentation? {
        guard let media = try await cache.details(of: key)?.resource else { return nil }
        return StoredPresentation(media: media, parts: try await cache.parts(of: key))
    }
}
#endif
