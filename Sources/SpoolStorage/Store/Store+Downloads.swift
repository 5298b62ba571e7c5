import Foundation
import Synchronization

/// What is to be kept offline: sets of media files by name.
extension Store {
    /// Adds media files to sets and pins them, whether something of them is stored or not. When it returns, that survives
    /// the end of the process.
    ///
    /// - Throws: ``CacheError`` with code `storage` when the catalog can't be written; `closed`.
    package func addDownloads(_ downloads: [DownloadRecord]) async throws {
        try checkWritable()
        try await executor.run(in: .background) {
            // What has begun a moment ago may not be in the catalog yet.
            try self.writeChanges()
            try self.rounds.withLock { _ in
                try self.catalog.addDownloads(downloads, at: self.clock.now())
                try self.notePinned(downloads.map { CacheKey(hash: $0.key) })
            }
        }
    }

    /// Takes one media file out of a set, or with nil all.
    ///
    /// - Returns: The keys that no set has any more; nil if the set has nothing of that.
    package func removeDownloads(_ key: CacheKey?, from set: String) async throws -> [CacheKey]? {
        try checkWritable()
        return try await executor.run(in: .background) {
            try self.writeChanges()
            return try self.rounds.withLock { _ in
                let free = try self.catalog.removeDownloads(key?.hash, from: set)?.map { CacheKey(hash: $0) }
                try self.noteEvictable(free ?? [], andParts: true)
                return free
            }
        }
    }

    /// Forgets the address of a media file in every set that has it: it is not started again until it is added again.
    package func forgetSource(ofDownload key: CacheKey) async throws {
        try checkWritable()
        try await executor.run(in: .background) { try self.catalog.forgetSource(ofDownload: key.hash) }
    }

    /// What sets have, and what is stored of it; sets by name.
    package func downloads(of set: String? = nil) async throws -> [DownloadRecord] {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.downloads(of: set)
        }
    }

    /// Bytes that what is pinned has, but for one resource; of what sets had before it, what that will have.
    package func pinnedBytes(except key: CacheKey) async throws -> Int64 {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.pinnedBytes(except: key.hash)
        }
    }

    /// What sets have, as ``inspect(path:key:)``: without opening the cache.
    package static func inspectDownloads(
        path: String, encryptionKey: EncryptionKey? = nil
    ) async throws -> [DownloadRecord] {
        try await BlockingExecutor(threadLimit: 2).run {
            try CacheDirectory.catalog(inspecting: path, key: encryptionKey, fileSystem: SystemFileSystem()).downloads()
        }
    }
}
