import SpoolStorage

/// Operations on all stored versions of a resource. Under ``FreshnessPolicy/http``, these are its variants. Under the
/// other policies, a resource has only one version.
extension CacheContext {
    /// Excludes the version that is stored under a key, and its variants, from eviction, or includes them again.
    ///
    /// - Throws: `CacheError` with code `.notStored` if none of them is stored.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws {
        let store = try await opening.directory()
        var isStored = false
        for key in try await variants(of: key, in: store) where try await store.setPinned(isPinned, key) {
            isStored = true
        }
        if !isStored { throw CacheError(.notStored, "nothing is stored under the key \(key)", key: key) }
    }

    /// Removes the version that is stored under a key, its variants, and their parts. If the version is not pinned, its
    /// pinned parts stay.
    ///
    /// - Returns: Whether anything was stored.
    func remove(_ key: CacheKey) async throws -> Bool {
        let store = try await opening.directory()
        var wasStored = false
        for key in try await variants(of: key, in: store) {
            let parts = try await store.parts(of: key, forRemoval: true)
            for part in parts where try await store.remove(part) { wasStored = true }
            if try await store.remove(key) { wasStored = true }
        }
        return wasStored
    }

    /// Returns the key, and the keys of its variants that are stored or being received.
    private func variants(of key: CacheKey, in store: Store) async throws -> [CacheKey] {
        guard configuration.freshness == .http else { return [key] }
        return [key] + (try await store.variants(of: key).filter { $0 != key })
    }
}
