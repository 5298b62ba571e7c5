public import Foundation
public import SpoolStorage

extension MediaCache {
    /// Returns all stored resources, sorted by URL.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    public func storedResources() async throws -> [StoredResource] {
        try await store.resources().map { StoredResource($0) }
    }

    /// Returns the most recently used resources, newest first, and the number of all stored resources.
    package func recentResources(limit: Int) async throws -> (resources: [StoredResource], count: Int) {
        let (resources, count) = try await store.recentResources(limit: limit)
        return (resources.map { StoredResource($0) }, count)
    }

    /// Returns the stored resources of a cache directory without opening it. Another process may have the directory
    /// open.
    ///
    /// - Parameters:
    ///   - directory: The cache's directory.
    ///   - key: The key of one resource; `nil` for all resources.
    ///   - encryptionKey: The key of an encrypted cache.
    /// - Throws: `CacheError`: `.notStored` if there is no cache in the directory, `.catalogTooNew`,
    ///   `.catalogDamaged`, `.storage`, `.keyRequired`, `.wrongEncryptionKey`.
    public static func inspect(
        _ directory: URL, key: CacheKey? = nil, encryptionKey: EncryptionKey? = nil
    ) async throws -> [StoredResource] {
        try await Store.inspect(path: directory.path, key: key, encryptionKey: encryptionKey).map { StoredResource($0) }
    }

    /// Protects a stored resource from eviction, even across launches, until it is unpinned or removed.
    ///
    /// Bytes that are received later are protected, too. The key of a playlist also covers its segments and everything
    /// else that was received when a server or a download used the playlist.
    ///
    /// With ``FreshnessPolicy/http``, a resource may have variants, which differ in header fields that `Vary` lists, or
    /// in the user's credentials. The key of a URL covers all stored variants. The key of a source with credentials
    /// among its header fields covers the variants for these credentials. ``key(for:)-(MediaSource)`` and
    /// ``MediaResource/key`` return the key of a source.
    ///
    /// - Throws: `CacheError`: `.notStored` if nothing is stored under the key, `.storage`, `.closed`.
    public func pin(_ key: CacheKey) async throws { try await context.setPinned(true, key) }

    /// Allows the eviction of a pinned resource again. The key covers the same variants as in ``pin(_:)``.
    ///
    /// - Throws: `CacheError`: `.notStored` if nothing is stored under the key, `.storage`, `.closed`.
    public func unpin(_ key: CacheKey) async throws { try await context.setPinned(false, key) }

    /// Removes a stored resource, pinned or not. The key covers the same variants as in ``pin(_:)``.
    ///
    /// A reader that is already open can still read the removed bytes, but ends with `.resourceChanged` if it needs
    /// more. A reader that is created later fetches the resource again.
    ///
    /// - Returns: Whether anything was stored.
    /// - Throws: `CacheError`: `.storage` if the catalog can't be written, `.closed`.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool { try await context.remove(key) }

    /// Cancels requests for a resource without readers. None of their bytes may be stored anymore.
    package func discardTransfers(of key: CacheKey) { resources.discardTransfers(of: key) }

    /// Removes all resources, pinned or not.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be written, `.closed`.
    public func removeAll() async throws { try await store.removeAll() }

    /// Evicts resources according to the eviction policy until at most `size` bytes are stored.
    ///
    /// Pinned resources, and the bytes that readers need next, are not evicted.
    ///
    /// - Parameter size: The maximum number of bytes that stay stored; `nil` for the capacity.
    /// - Returns: The number of evicted bytes.
    /// - Throws: `CacheError`: `.invalidArgument` if `size` is negative, `.storage` if the cache can't be changed,
    ///   `.closed`.
    @discardableResult
    public func evict(to size: Int64? = nil) async throws -> Int64 {
        let store = try await store
        guard let size = size ?? store.capacity else { return 0 }
        return try await store.evict(to: size)
    }

    /// Changes the capacity, and evicts media that no longer fits, as far as pins and readers allow.
    ///
    /// - Throws: `CacheError`: `.invalidArgument` for an invalid capacity, `.storage`, `.closed`.
    public func setCapacity(_ capacity: CacheCapacity) async throws { try await store.setCapacity(capacity) }

    /// Changes the capacity like ``setCapacity(_:)``, and saves the new capacity in the directory.
    package func rememberCapacity(_ capacity: CacheCapacity) async throws {
        try await store.setCapacity(capacity, isRemembered: true)
    }
}
