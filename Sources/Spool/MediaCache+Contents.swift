public import Foundation
public import SpoolStorage

extension MediaCache {
    /// What is kept, by address.
    ///
    /// - Throws: `CacheError` with code `.storage` when the catalog can't be read.
    public func storedResources() async throws -> [StoredResource] {
        try await store.resources().map { StoredResource($0) }
    }

    /// Of what is kept, what was used last, the last one first; and how many resources are kept.
    package func recentResources(limit: Int) async throws -> (resources: [StoredResource], count: Int) {
        let (resources, count) = try await store.recentResources(limit: limit)
        return (resources.map { StoredResource($0) }, count)
    }

    /// What is kept under a key; nil if nothing is.
    ///
    /// Of variants (see ``remove(_:)-(CacheKey)``), the one that has the key itself; a source's is found by the source.
    public func storedResource(for key: CacheKey) async throws -> StoredResource? {
        try await store.resource(key).map { StoredResource($0) }
    }

    /// What is kept of a source's media file; nil if nothing is. As ``MediaResource/storedResource()``.
    public func storedResource(for source: MediaSource) async throws -> StoredResource? {
        try await media(for: source).storedResource()
    }

    /// What a cache directory holds, without opening it: also while another process has it open.
    ///
    /// - Parameters:
    ///   - directory: The cache's directory.
    ///   - key: One resource only.
    ///   - encryptionKey: The key of an encrypted cache.
    /// - Throws: `CacheError`: `.notStored` when there is no cache in the directory, `.catalogTooNew`,
    ///   `.catalogDamaged`, `.storage`, `.keyRequired`, `.keyRefused`.
    public static func inspect(
        _ directory: URL, key: CacheKey? = nil, encryptionKey: EncryptionKey? = nil
    ) async throws -> [StoredResource] {
        try await Store.inspect(path: directory.path, key: key, encryptionKey: encryptionKey).map { StoredResource($0) }
    }

    /// Keeps what is stored under a key from eviction, also across launches, until it is unpinned or removed.
    ///
    /// Variants of it, too, as far as they are stored: see ``remove(_:)-(CacheKey)``; of a playlist, the segments and all
    /// else that came through a server or a download of it.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    public func pin(_ key: CacheKey) async throws { try await context.setPinned(true, key) }

    /// Keeps what is stored of a source's media file from eviction. As ``MediaResource/pin()``.
    public func pin(_ source: MediaSource) async throws { try await pin(key(for: source)) }

    /// Lets what is stored under a key, and as variants of it, be evicted again.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    public func unpin(_ key: CacheKey) async throws { try await context.setPinned(false, key) }

    /// Lets what is stored of a source's media file be evicted again. As ``MediaResource/unpin()``.
    public func unpin(_ source: MediaSource) async throws { try await unpin(key(for: source)) }

    /// Removes what is kept under a key, pinned or not. A reader that is in it finishes from its open file or ends
    /// with `.resourceChanged`; one that opens later starts anew.
    ///
    /// Under ``FreshnessPolicy/http`` there may be several variants of a media file: for users with credentials of their
    /// own, and by the header fields that the origin names in `Vary`. The key of a URL covers all of them, that of a
    /// source with credentials among its header fields the variants for these.
    ///
    /// - Returns: Whether anything was kept.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool { try await context.remove(key) }

    /// Removes what is kept of a source's media file. As ``MediaResource/remove()``.
    @discardableResult
    public func remove(_ source: MediaSource) async throws -> Bool { try await remove(key(for: source)) }

    /// Removes everything.
    public func removeAll() async throws { try await store.removeAll() }

    /// Evicts by policy until at most `size` bytes are kept; nil: until the capacity holds.
    ///
    /// - Returns: How many bytes went. Pinned resources and what readers are near stay.
    /// - Throws: `CacheError`: `.invalidArgument` if `size` is negative, `.storage` where nothing may be changed, `.closed`.
    @discardableResult
    public func evict(to size: Int64? = nil) async throws -> Int64 {
        let store = try await store
        guard let size = size ?? store.capacity else { return 0 }
        return try await store.evict(to: size)
    }

    /// Sets the most to keep from now on, and evicts what is too much, as far as pins and readers allow.
    ///
    /// - Throws: `CacheError`: `.invalidArgument` for a number that can't be, `.storage`.
    public func setCapacity(_ capacity: CacheCapacity) async throws { try await store.setCapacity(capacity) }

    /// As ``setCapacity(_:)``, and notes it in the directory for the next time.
    package func rememberCapacity(_ capacity: CacheCapacity) async throws {
        try await store.setCapacity(capacity, isRemembered: true)
    }

    /// Copies what is kept under a key into a file, if it is complete; every byte is checked against its seal on the way.
    ///
    /// Of variants (see ``remove(_:)-(CacheKey)``), the one that has the key itself; a source's is found by the source.
    ///
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` (the message names the first missing range), `.storage`.
    public func export(_ key: CacheKey, to file: URL) async throws { try await store.export(key, to: file) }

    /// Copies a source's media file into a file. As ``MediaResource/export(to:)``.
    public func export(_ source: MediaSource, to file: URL) async throws {
        try await media(for: source).export(to: file)
    }
}
