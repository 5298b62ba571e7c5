import Synchronization

/// A value type that removes, pins and unpins the resources of a store.
struct ResourceRemover: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    private var queue: EvictionQueue { store.eviction.queue }

    /// Removes the version that is stored for the key, and versions that are being received.
    func remove(_ key: CacheKey) async throws -> Bool {
        try store.checkWritable()
        return try await store.turns.run(key) {
            let (isRemoved, ended) = try await store.writer.inTurn { try removeNow(key) }
            // The files are removed after the turn, because other keys must not wait for this key's file.
            await store.executor.run(in: .background) { store.remover.finish(ended) }
            return isRemoved
        }
    }

    /// Removes a key from the catalog. The caller must have the key's turn. The method blocks.
    ///
    /// - Returns: Whether anything was stored, and the versions whose files the caller must remove.
    private func removeNow(_ key: CacheKey) throws -> (isRemoved: Bool, ended: GenerationTable.Ended) {
        guard store.table.withLock({ $0.beginRemoval(key, ifUnused: false) }) else {
            throw CacheError(.closed, "the cache has been closed")
        }
        var ended = GenerationTable.Ended()
        var isStored = false
        do {
            let removed = try store.catalog.transaction {
                try $0.remove(key.hash)
            } committed: { removed in
                ended = store.table.withLock { table in
                    // A version that is retired here does not end before it is recorded as removed from the catalog, in
                    // the next step.
                    let outcome = table.endRemoval(key, isDone: true, andCandidates: true)
                    isStored = outcome.retired.contains { $0.generation.hasContent }
                    var ended = table.recordRemovedFromCatalog(removed.map { [$0] } ?? [])
                    ended.outcome.add(outcome)
                    return ended
                }
            }
            queue.remove([key])
            return (isStored || removed != nil, ended)
        } catch {
            store.remover.finish(store.table.withLock { $0.endRemoval(key, isDone: false, andCandidates: true) })
            throw error
        }
    }

    /// Removes all resources, including pinned ones.
    func removeAll() async throws {
        try store.checkWritable()
        while true {
            try store.checkOpen()
            let open = store.table.withLock { table in
                Set(table.lives.values.filter { $0.phase != .retired }.map(\.generation.key))
            }
            for key in open.sorted(by: { $0.hash < $1.hash }) { _ = try await remove(key) }
            let keys = try await store.executor.run(in: .background) {
                try store.catalog.keys(after: "", limit: 256).map { CacheKey(hash: $0) }
            }
            guard !keys.isEmpty else {
                if try await removeUnreachable() == 0 {
                    // The sweep also removes files that no row names, because their rows were damaged.
                    await store.executor.run(in: .maintenance) { store.sweepNow() }
                }
                // Removals only subtract from the sums in the catalog, which may have been wrong.
                try await correctSums()
                return
            }
            let taken = keys.filter { store.turns.tryTake($0) }
            defer { for key in taken { store.turns.end(key) } }
            if taken.isEmpty {
                // Other tasks have all of the turns, so the method waits for one of these tasks.
                _ = try await remove(keys[0])
            } else {
                try await store.executor.run(in: .background) { _ = try removeUnused(taken, evenPinned: true) }
            }
        }
    }

    /// Removes rows that can't be found by any key, because a cell was changed, and their files.
    ///
    /// - Returns: The number of removed rows.
    func removeUnreachable() async throws -> Int {
        let removed = try await store.executor.run(in: .maintenance) {
            try store.writer.pausing { try store.catalog.repairRows() }
        }
        guard removed.count > 0 else { return 0 }
        store.ledger.correct(by: -removed.storedBytes)
        store.ledger.correctRows(by: -removed.rowBytes)
        await store.executor.run(in: .maintenance) { store.sweepNow() }
        return removed.count
    }

    /// Recounts the stored bytes and the bytes of all rows, and corrects the sums.
    func correctSums() async throws {
        try await store.flush()
        let (difference, rowDifference) = try await store.executor.run(in: .maintenance) {
            (try store.catalog.settings.recountStoredBytes(), try store.catalog.settings.recountRowBytes())
        }
        store.ledger.correct(by: difference)
        store.ledger.correctRows(by: rowDifference)
    }

    /// Removes unused keys in one transaction. The caller must have their turns. The method blocks.
    ///
    /// Keys that were opened in the meantime are skipped. Pinned keys are also skipped, unless `evenPinned` is `true`.
    ///
    /// - Returns: The resources that were removed.
    func removeUnused(_ keys: [CacheKey], evenPinned: Bool) throws -> [RemovedUnused] {
        let begun = store.table.withLock { table in keys.filter { table.beginRemoval($0, ifUnused: true) } }
        var ended = GenerationTable.Ended()
        var outcome = GenerationTable.Outcome()
        do {
            let removed = try store.catalog.transaction { transaction in
                try begun.map { try transaction.remove($0.hash, unlessPinned: !evenPinned) }
            } committed: { removed in
                store.table.withLock { table in
                    for (key, resource) in zip(begun, removed) {
                        outcome.add(table.endRemoval(key, isDone: resource != nil, andCandidates: false))
                    }
                    ended = table.recordRemovedFromCatalog(removed.compactMap { $0 })
                }
            }
            ended.outcome.add(outcome)
            queue.remove(zip(begun, removed).compactMap { key, resource in resource == nil ? nil : key })
            let claims = Dictionary(
                ended.outcome.gone.map { ($0.key.hash, $0.disk?.claimedByteCount ?? 0) }, uniquingKeysWith: +)
            store.remover.finish(ended)
            return removed.compactMap { $0 }.map { resource in
                RemovedUnused(
                    resource: resource, bytes: claims[resource.key] ?? resource.storedBytes,
                    isFreed: resource.generation.map { !store.remover.isUnremoved($0) } ?? true)
            }
        } catch {
            store.table.withLock { table in
                for key in begun { outcome.add(table.endRemoval(key, isDone: false, andCandidates: false)) }
            }
            store.remover.finish(outcome)
            throw error
        }
    }

    /// Pins a stored resource, or unpins it.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws -> Bool {
        try store.checkWritable()
        return try await store.turns.run(key) {
            // A version that was just created may not be in the catalog yet.
            try await store.writer.write()
            return try await store.writer.inTurn {
                try store.writer.pausing {
                    let isStored = try store.catalog.downloads.setPinned(isPinned, key: key.hash)
                    if isPinned {
                        try queue.recordPinned([key])
                    } else {
                        try queue.recordEvictable([key], andParts: true)
                        store.eviction.searches.recordChange()
                    }
                    return isStored
                }
            }
        }
    }
}

/// A resource that was removed while no reader had it open.
struct RemovedUnused {
    var resource: RemovedResource
    /// The number of bytes that the resource claimed.
    var bytes: Int64
    /// Whether the resource's file has been removed, and its claim returned.
    var isFreed: Bool

    /// The number of bytes by which the space accounting has decreased; at least 1, so that each removal counts. It
    /// differs from the size of the resource if the record was wrong.
    var freedByteCount: Int64 { isFreed ? max(1, bytes - resource.correction.storedBytes) : 0 }
}
