#if Proxy
import ByteRanges
package import Spool

/// What the cache holds of one thing to play: a media file, or a playlist with what belongs to it.
package struct StoredPresentation: Sendable {
    /// The file, or the playlist that was opened first.
    package let media: StoredResource
    /// What belongs to the playlist.
    package let parts: [StoredResource]

    /// What is stored of a file, or of a playlist with these parts.
    package init(media: StoredResource, parts: [StoredResource] = []) {
        self.media = media
        self.parts = parts
    }

    /// What is stored, by what it belongs to; in the order of `contents`.
    package static func presentations(in contents: [StoredResource]) -> [StoredPresentation] {
        let keys = Set(contents.map(\.key))
        let isPart = { (media: StoredResource) in media.presentation.map { keys.contains($0) } ?? false }
        let parts = Dictionary(grouping: contents.filter(isPart)) { $0.presentation }
        return contents.filter { !isPart($0) }.map { StoredPresentation(media: $0, parts: parts[$0.key] ?? []) }
    }

    /// The number of stored bytes of all files together, at most 2^53.
    package var byteCount: Int64 {
        parts.reduce(media.storedByteCount) { min($0 + $1.storedByteCount, NumberLimits.byteOffset) }
    }

    /// How many files have come, the playlist among them.
    package var fileCount: Int { parts.count + 1 }

    /// How many of them are stored whole.
    package var completeFileCount: Int { parts.count(where: \.isComplete) + (media.isComplete ? 1 : 0) }
}
#endif
