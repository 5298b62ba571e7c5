import Foundation

/// The sets of resources to store offline, with their names and members. A value over a store.
package struct StoredDownloads: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Adds resources to sets and pins them, whether they are stored or not. When it returns, the change survives the end
    /// of the process.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the catalog can't be written, or `closed`.
    package func add(_ downloads: [DownloadRecord]) async throws {
        try store.checkWritable()
        try await store.executor.run(in: .background) {
            // A version that started a moment ago may not be in the catalog yet.
            try store.writer.writeChanges()
            try store.writer.pausing {
                try store.catalog.downloads.add(downloads, at: store.clock.now())
                try store.eviction.queue.notePinned(downloads.map { CacheKey(hash: $0.key) })
            }
        }
    }

    /// Removes one resource from a set, or all of them if `key` is `nil`.
    ///
    /// - Returns: The keys that no set has any more; `nil` if the set had none of them.
    package func remove(_ key: CacheKey?, from set: String) async throws -> [CacheKey]? {
        try store.checkWritable()
        return try await store.executor.run(in: .background) {
            try store.writer.writeChanges()
            return try store.writer.pausing {
                let free = try store.catalog.downloads.remove(key?.hash, from: set)?.map { CacheKey(hash: $0) }
                try store.eviction.queue.noteEvictable(free ?? [], andParts: true)
                return free
            }
        }
    }

    /// Removes the address of a resource from every set that has it. Its download is not started again until it is added
    /// again.
    package func forgetSource(of key: CacheKey) async throws {
        try store.checkWritable()
        try await store.executor.run(in: .background) { try store.catalog.downloads.forgetSource(of: key.hash) }
    }

    /// The members of all sets, or of one, and how much of them is stored. Sets are sorted by name.
    package func members(of set: String? = nil) async throws -> [DownloadRecord] {
        try await store.readCatalog { try $0.downloads.members(of: set) }
    }

    /// The bytes of all pinned resources except one.
    ///
    /// Members that were added before that one count with their whole length.
    package func pinnedBytes(except key: CacheKey) async throws -> Int64 {
        try await store.readCatalog { try $0.downloads.pinnedBytes(except: key.hash) }
    }

    /// The members of all sets in the directory at `path`, without opening the cache. See ``Store/inspect(path:key:encryptionKey:)``.
    package static func inspect(path: String, encryptionKey: EncryptionKey? = nil) async throws -> [DownloadRecord] {
        try await BlockingExecutor(threadLimit: 2).run {
            try CacheDirectory.catalog(inspecting: path, key: encryptionKey, fileSystem: SystemFileSystem()).downloads
                .members()
        }
    }
}
