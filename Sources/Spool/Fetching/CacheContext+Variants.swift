import SpoolStorage

/// What is done with all that is kept of a resource: under ``FreshnessPolicy/http`` with each variant of it, else with
/// the one thing that there is.
extension CacheContext {
    /// Keeps what is stored under a key, or as a variant of it, from eviction, or lets it go again.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws {
        let store = try await opening.directory()
        var isStored = false
        for key in try await variants(of: key, in: store) where try await store.setPinned(isPinned, key) {
            isStored = true
        }
        if !isStored { throw CacheError(.notStored, "nothing is kept under the key \(key)", key: key) }
    }

    /// Removes what is kept under a key, as a variant of it, and as a part of its presentation.
    ///
    /// - Returns: Whether anything was.
    func remove(_ key: CacheKey) async throws -> Bool {
        let store = try await opening.directory()
        var wasStored = false
        for key in try await variants(of: key, in: store) {
            for part in try await store.parts(of: key) where try await store.remove(part) { wasStored = true }
            if try await store.remove(key) { wasStored = true }
        }
        return wasStored
    }

    /// The key, and those of its variants that are kept or have begun.
    private func variants(of key: CacheKey, in store: Store) async throws -> [CacheKey] {
        guard configuration.freshness == .http else { return [key] }
        var found = Set(store.openDescriptions().filter { $0.description.isVariant(of: key) }.map(\.key))
        found.formUnion(
            try await store.resources().filter { $0.description?.isVariant(of: key) ?? false }.map(\.key))
        found.remove(key)
        return [key] + found.sorted { $0.hash < $1.hash }
    }
}

extension GenerationDescription {
    fileprivate func isVariant(of key: CacheKey) -> Bool {
        StoredFreshness(encoded: fields)?.variantOf?.contains(key.hash) ?? false
    }
}
