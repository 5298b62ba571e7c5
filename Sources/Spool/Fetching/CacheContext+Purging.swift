import SpoolStorage

/// Operations that remove all resources in a selection.
extension CacheContext {
    /// Returns the keys of all resources whose preloads store the resource with this key; see
    /// ``MediaCache/preloadKeys(for:)``.
    func preloadKeys(for key: CacheKey) async throws -> Set<CacheKey> {
        guard let record = try await opening.directory().resource(key) else { return [key] }
        return preloadKeys(for: record)
    }

    private func preloadKeys(for record: StoredResourceRecord) -> Set<CacheKey> {
        let baseKeys = record.description.flatMap { StoredFreshness(encoded: $0.fields) }?.variantOf ?? []
        return Set([record.key] + [record.presentation].compactMap { $0 } + baseKeys.map { CacheKey(hash: $0) })
    }

    /// Removes the resources in a selection; see ``MediaCache/purge(_:preparing:)``.
    func purge(
        _ selection: PurgeSelection, preparing prepare: ((Set<CacheKey>) async -> Void)?
    ) async throws -> (removed: [StoredResource], failures: [CacheError]) {
        if let prepare {
            let records = try await records(in: selection)
            await prepare(records.reduce(into: []) { $0.formUnion(preloadKeys(for: $1)) })
        }
        var removed: [StoredResource] = []
        var failures: [CacheError] = []
        for record in try await records(in: selection) {
            do {
                // A part may have been removed already, together with its stream.
                _ = try await remove(record.key)
                removed.append(StoredResource(record))
            } catch let error as CacheError {
                failures.append(error)
            }
        }
        return (removed, failures)
    }

    /// Returns the records that a selection includes, with the parts of the selected streams.
    func records(in selection: PurgeSelection) async throws -> [StoredResourceRecord] {
        let store = try await opening.directory()
        // A resource whose first bytes have just been received has no record yet.
        try await store.flush()
        let records = try await store.resources()
        let selected = Set(records.filter(selection.includes).map(\.key))
        return records.filter { record in
            selected.contains(record.key) || record.presentation.map(selected.contains) ?? false
        }
    }
}
