public import Foundation
public import SpoolStorage

extension MediaCache {
    /// What is kept, by address.
    ///
    /// - Throws: `CacheError` with code `.storage` when the catalog can't be read.
    public func storedResources() async throws -> [StoredResource] {
        try await store.resources().map { StoredResource($0) }
    }

    /// What is kept of one resource; nil if nothing is.
    public func storedResource(for key: CacheKey) async throws -> StoredResource? {
        try await store.resource(key).map { StoredResource($0) }
    }

    /// What a cache directory holds, without opening it: also while another process has it open.
    ///
    /// - Parameter key: One resource only.
    /// - Throws: `CacheError`: `.notStored` when there is no cache in the directory, `.catalogTooNew`,
    ///   `.catalogDamaged`, `.storage`.
    public static func inspect(_ directory: URL, key: CacheKey? = nil) async throws -> [StoredResource] {
        try await Store.inspect(path: directory.path, key: key).map { StoredResource($0) }
    }

    /// Keeps what is stored of a resource from eviction, also across launches, until it is unpinned or removed.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    public func pin(_ key: CacheKey) async throws { try await setPinned(true, key) }

    /// Lets what is stored of a resource be evicted again.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    public func unpin(_ key: CacheKey) async throws { try await setPinned(false, key) }

    private func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws {
        guard try await store.setPinned(isPinned, key) else {
            throw CacheError(.notStored, "nothing is kept under the key \(key)")
        }
    }

    /// Removes what is kept of a resource, pinned or not. A reader that is in it finishes from its open file or ends
    /// with `.resourceChanged`; one that opens later starts anew.
    ///
    /// - Returns: Whether anything was kept.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool { try await store.remove(key) }

    /// Removes everything.
    public func removeAll() async throws { try await store.removeAll() }

    /// Evicts by policy until at most `size` bytes are kept; nil: until the capacity holds.
    ///
    /// - Returns: How many bytes went. Pinned resources and what readers are near stay.
    @discardableResult
    public func evict(to size: Int64? = nil) async throws -> Int64 {
        let before = storedByteCount
        guard let size = size ?? capacity else { return 0 }
        try await store.evict(to: size)
        return before - storedByteCount
    }

    /// Sets the most to keep from now on, and evicts what is too much, as far as pins and readers allow.
    ///
    /// - Throws: `CacheError`: `.invalidArgument` for a number that can't be, `.storage`.
    public func setCapacity(_ capacity: CacheCapacity) async throws { try await store.setCapacity(capacity) }

    /// As ``setCapacity(_:)``, and notes it in the directory for the next time.
    package func rememberCapacity(_ capacity: CacheCapacity) async throws {
        try await store.setCapacity(capacity, isRemembered: true)
    }

    /// Checks every stored block against its seal.
    ///
    /// - Parameters:
    ///   - repairing: Whether bad blocks are dropped.
    ///   - progress: Called now and then with the blocks done and the blocks in all; from any thread.
    public func verify(
        repairing: Bool, progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) async throws -> VerificationReport {
        try await store.verify(repairing: repairing, progress: progress)
    }

    /// Copies a complete resource into a file; every byte is checked against its seal on the way.
    ///
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` (the message names the first missing range), `.storage`.
    public func export(_ key: CacheKey, to file: URL) async throws { try await store.export(key, to: file) }
}
