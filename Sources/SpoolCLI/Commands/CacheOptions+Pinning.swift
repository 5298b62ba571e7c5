import Spool
import SpoolProxy

extension CacheOptions {
    func setPinned(_ isPinned: Bool, _ media: MediaURL) async throws {
        let found = try await withExistingCache { cache in
            guard try await cache.storedResource(for: media.key) != nil else { throw media.notStored }
            if isPinned { try await cache.pin(media.key) } else { try await cache.unpin(media.key) }
            return StoredPresentation.presentations(
                in: try await cache.storedResources().filter { $0.key == media.key || $0.presentation == media.key }
            ).first
        }
        guard case let kept?? = found else { throw media.notStored }
        if json { return try Output.json(MediaReport(kept.media)) }
        let bytes = ByteCount(bytes: kept.byteCount).text
        try Output.line("\(isPinned ? "pinned" : "unpinned") \(kept.media.address), \(bytes) kept")
    }
}
