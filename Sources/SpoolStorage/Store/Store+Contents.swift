package import ByteRanges
package import Foundation

extension Store {
    /// Returns all stored resources, or those of a presentation, sorted by URL.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the catalog can't be read or written.
    package func resources(partOf presentation: CacheKey? = nil) async throws -> [StoredResourceRecord] {
        try await readCatalog { catalog in
            try catalog.resources(partOf: presentation?.hash).map { StoredResourceRecord($0, of: self) }
        }
    }

    /// Returns one stored resource; `nil` if nothing is stored under the key.
    package func resource(_ key: CacheKey) async throws -> StoredResourceRecord? {
        let record = try await readCatalog { try $0.resource(key: key.hash) }
        return record.map { StoredResourceRecord($0, of: self) }
    }

    /// Returns the most recently used resources, most recent first, and the number of all stored resources.
    package func recentResources(limit: Int) async throws -> (resources: [StoredResourceRecord], count: Int) {
        try await readCatalog { catalog in
            let (records, count) = try catalog.recentResources(limit: limit)
            return (records.map { StoredResourceRecord($0, of: self) }, count)
        }
    }

    /// Returns the keys of a presentation's parts.
    ///
    /// - Parameter forRemoval: Whether to omit pinned parts if the presentation is not pinned, because a manifest from
    ///   another origin may name them. The default is `false`.
    package func parts(of presentation: CacheKey, forRemoval: Bool = false) async throws -> [CacheKey] {
        try await readCatalog { catalog in
            try catalog.parts(of: presentation.hash, forRemoval: forRemoval).map { CacheKey(hash: $0) }
        }
    }

    /// Returns the keys of the variants of a resource, stored or being received.
    ///
    /// - Complexity: The time is proportional to the number of variants and of open versions, not of stored resources.
    package func variants(of key: CacheKey) async throws -> [CacheKey] {
        let open = table.withLock { table in
            table.lives.values.filter { $0.phase != .retired && $0.generation.variantOf.contains(key) }
                .map(\.generation.key)
        }
        let stored = try await readCatalog { try $0.variants(of: key.hash).map { CacheKey(hash: $0) } }
        return Set(open + stored).sorted { $0.hash < $1.hash }
    }

    /// Returns the stored resources of a cache directory, without opening it. Another process may have it open.
    ///
    /// - Parameter key: The key of one resource; `nil` for all.
    /// - Throws: ``CacheError``: `notStored` if there is no cache in the directory, `catalogTooNew`, `catalogDamaged`,
    ///   `storage`, `keyRequired` or `wrongEncryptionKey`.
    package static func inspect(
        path: String, key: CacheKey? = nil, encryptionKey: EncryptionKey? = nil
    ) async throws -> [StoredResourceRecord] {
        try await BlockingExecutor(threadLimit: 2).run {
            let catalog = try CacheDirectory.catalog(
                inspecting: path, key: encryptionKey, fileSystem: SystemFileSystem())
            let records = try key.map { try catalog.resource(key: $0.hash).map { [$0] } ?? [] } ?? catalog.resources()
            return records.map { StoredResourceRecord($0) }
        }
    }
}

/// A stored resource, as the catalog describes it.
package struct StoredResourceRecord: Sendable, Hashable {
    /// The resource's key.
    package var key: CacheKey
    /// The scheme, host and path of the URL.
    package var url: String
    /// The most recent description of the resource's version; `nil` if only a pin is stored.
    package var description: GenerationDescription?
    /// The stored ranges.
    package var storedRanges: ByteRangeSet
    /// Whether the resource is excluded from eviction.
    package var isPinned: Bool
    /// The date on which the resource was first stored.
    package var createdAt: Date
    /// The date on which the resource was last used.
    package var lastUsedAt: Date
    /// The presentation that contains the resource, for example as a segment of a playlist.
    package var presentation: CacheKey?
}

extension StoredResourceRecord {
    /// - Parameter store: The store that has the resource's version open. This store contains the newest state of a
    ///   file that is being written to, which is not in the catalog yet.
    init(_ record: ResourceRecord, of store: Store? = nil) {
        let generation = record.generation
        self.init(
            key: CacheKey(hash: record.key), url: record.url,
            description: generation.map {
                GenerationDescription(
                    length: $0.length, contentType: record.contentType, version: $0.version, fields: $0.fields)
            },
            storedRanges: generation?.storedRanges ?? ByteRangeSet(),
            isPinned: record.isPinned, createdAt: record.createdAt, lastUsedAt: record.lastUsedAt,
            presentation: record.presentation.map { CacheKey(hash: $0) })
        let open = store?.table.withLock { $0.currentGeneration(of: key) }
        if let disk = open?.disk, let row = open?.row.value, row == generation?.id { storedRanges = disk.storedRanges }
    }
}

/// A value type that reads and changes a store's sets of resources to store offline, with their names and members.
package struct StoredDownloads: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Adds resources to sets and pins them, whether they are stored or not. When the method returns, the change
    /// survives the end of the process.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the catalog can't be written, or `closed`.
    package func add(_ downloads: [DownloadRecord]) async throws {
        try store.checkWritable()
        // A version that was just created may not be in the catalog yet.
        try await store.writer.write()
        try await store.writer.inTurn {
            try store.writer.pausing {
                try store.catalog.downloads.add(downloads, at: store.clock.now())
                try store.eviction.queue.recordPinned(downloads.map { CacheKey(hash: $0.key) })
            }
        }
    }

    /// Removes one resource from a set, or all resources if `key` is `nil`.
    ///
    /// - Returns: The keys that are no longer in any set; `nil` if no resource was removed from the set.
    package func remove(_ key: CacheKey?, from set: String) async throws -> [CacheKey]? {
        try store.checkWritable()
        try await store.writer.write()
        return try await store.writer.inTurn {
            try store.writer.pausing {
                let free = try store.catalog.downloads.remove(key?.hash, from: set)?.map { CacheKey(hash: $0) }
                try store.eviction.queue.recordEvictable(free ?? [], andParts: true)
                store.eviction.searches.recordChange()
                return free
            }
        }
    }

    /// Removes the URL of a resource from every set that contains it. Its download is not restarted until the resource
    /// is added again.
    package func forgetSource(of key: CacheKey) async throws {
        try store.checkWritable()
        try await store.writer.inTurn { try store.catalog.downloads.forgetSource(of: key.hash) }
    }

    /// Returns the members of all sets, or of one set, each with its stored byte count. Sets are sorted by name.
    package func members(of set: String? = nil) async throws -> [DownloadRecord] {
        try await store.readCatalog { try $0.downloads.members(of: set) }
    }

    /// Returns the number of bytes of all pinned resources except one.
    ///
    /// Members of sets that were added before the excluded resource count with their full length.
    package func pinnedBytes(except key: CacheKey) async throws -> Int64 {
        try await store.readCatalog { try $0.downloads.pinnedBytes(except: key.hash) }
    }

    /// Returns the members of all sets in the directory at `path`, without opening the cache. See
    /// ``Store/inspect(path:key:encryptionKey:)``.
    package static func inspect(path: String, encryptionKey: EncryptionKey? = nil) async throws -> [DownloadRecord] {
        try await BlockingExecutor(threadLimit: 2).run {
            try CacheDirectory.catalog(inspecting: path, key: encryptionKey, fileSystem: SystemFileSystem()).downloads
                .members()
        }
    }
}
