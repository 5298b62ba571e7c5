import Foundation
import Spool

/// The stored part of one resource, as `ls` and `info` show it.
struct MediaReport: Encodable, Sendable {
    var url: String
    var key: String
    @OrNull var length: Int64?
    @OrNull var contentType: String?
    @OrNull var validator: String?
    var cachedBytes: Int64
    var ranges: [[Int64]]
    var complete: Bool
    var pinned: Bool
    var lastUsed: Date

    init(_ media: StoredResource) {
        url = media.address
        key = media.key.hash
        _length = OrNull(wrappedValue: media.length)
        _contentType = OrNull(wrappedValue: media.mimeType)
        _validator = OrNull(wrappedValue: media.validator)
        cachedBytes = media.storedByteCount
        ranges = media.storedRanges.map(\.pair)
        complete = media.isComplete
        pinned = media.isPinned
        lastUsed = media.lastUsed
    }
}

extension StoredResource {
    /// How much is there, in one short column: `complete`, `42 %`, or bytes where the length is not known.
    var share: String {
        if isComplete { return "complete" }
        guard let length, length > 0 else { return ByteCount(bytes: storedByteCount).text }
        return "\(min(99, storedByteCount * 100 / length)) %"
    }
}
