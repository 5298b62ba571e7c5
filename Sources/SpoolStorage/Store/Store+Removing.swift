import Foundation
import Synchronization

extension Store {
    /// Removes what is kept under the key, pinned or not, and what has begun under it.
    ///
    /// Who has it open is told, and keeps what has landed; one that opens later starts anew. The file goes, and its claim
    /// is given back, when the last lease has ended.
    ///
    /// - Returns: Whether anything was kept.
    /// - Throws: ``CacheError`` when the catalog can't be written: then nothing has changed.
    package func remove(_ key: CacheKey) async throws -> Bool {
        try checkWritable()
        return try await turns.run(key) {
            try await executor.run(in: .background) { try self.removeNow(key) }
        }
    }

    /// Removes a key whose turn the caller has; blocks.
    private func removeNow(_ key: CacheKey) throws -> Bool {
        guard table.withLock({ $0.beginRemoval(key, ifUnused: false) }) else {
            throw CacheError(.closed, "the cache has been closed")
        }
        var ended = Ended()
        var isKept = false
        do {
            let removed = try catalog.transaction {
                try $0.remove(key.hash)
            } committed: { removed in
                ended = table.withLock { table in
                    // What is retired here goes only when it is no longer named, which comes next.
                    let outcome = table.endRemoval(key, isDone: true, andCandidates: true)
                    isKept = outcome.retired.contains { $0.generation.hasContent }
                    var ended = noteForgotten(removed.map { [$0] } ?? [], &table)
                    ended.outcome.add(outcome)
                    return ended
                }
            }
            order.withLock { $0?.remove(key) }
            finish(ended)
            return isKept || removed != nil
        } catch {
            finish(table.withLock { $0.endRemoval(key, isDone: false, andCandidates: true) })
            throw error
        }
    }

    /// Removes everything, pins too.
    ///
    /// - Throws: ``CacheError`` when the catalog can't be written; what was removed until then is gone.
    package func removeAll() async throws {
        try checkWritable()
        while true {
            try checkOpen()
            let open = table.withLock { table in
                Set(table.lives.values.filter { $0.phase != .retired }.map(\.generation.key))
            }
            for key in open.sorted(by: { $0.hash < $1.hash }) { _ = try await remove(key) }
            let keys = try await executor.run(in: .background) {
                try self.catalog.keys(after: "", limit: 256).map { CacheKey(hash: $0) }
            }
            guard !keys.isEmpty else { return }
            let taken = keys.filter { turns.tryTake($0) }
            defer { for key in taken { turns.end(key) } }
            if taken.isEmpty {
                // Somebody is at each of them: after them.
                _ = try await remove(keys[0])
            } else {
                try await executor.run(in: .background) { _ = try self.removeUnused(taken, evenPinned: true) }
            }
        }
    }

    /// Removes keys that nobody has open, all by one transaction; the caller has their turns. Blocks.
    ///
    /// Keys that somebody has opened meanwhile, and pinned ones unless `evenPinned`, are passed over.
    ///
    /// - Returns: What was removed, with the bytes that its claim was, and whether its file has been removed.
    func removeUnused(_ keys: [CacheKey], evenPinned: Bool) throws -> [RemovedUnused] {
        let begun = table.withLock { table in keys.filter { table.beginRemoval($0, ifUnused: true) } }
        var ended = Ended()
        var outcome = GenerationTable.Outcome()
        do {
            let removed = try catalog.transaction { transaction in
                try begun.map { try transaction.remove($0.hash, unlessPinned: !evenPinned) }
            } committed: { removed in
                table.withLock { table in
                    for (key, resource) in zip(begun, removed) {
                        outcome.add(table.endRemoval(key, isDone: resource != nil, andCandidates: false))
                    }
                    ended = noteForgotten(removed.compactMap { $0 }, &table)
                }
            }
            ended.outcome.add(outcome)
            order.withLock { order in
                for (key, resource) in zip(begun, removed) where resource != nil { order?.remove(key) }
            }
            let claims = Dictionary(
                ended.outcome.gone.map { ($0.key.hash, $0.disk?.claimedByteCount ?? 0) }, uniquingKeysWith: +)
            finish(ended)
            return removed.compactMap { $0 }.map { resource in
                RemovedUnused(
                    resource: resource, bytes: claims[resource.key] ?? resource.storedBytes,
                    isFreed: !(resource.generation.map { name in unremoved.withLock { $0.contains(name) } } ?? false))
            }
        } catch {
            table.withLock { table in
                for key in begun { outcome.add(table.endRemoval(key, isDone: false, andCandidates: false)) }
            }
            finish(outcome)
            throw error
        }
    }

    /// Keeps a stored resource from eviction, or lets it go again.
    ///
    /// - Returns: False if nothing is kept under the key.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws -> Bool {
        try checkWritable()
        return try await turns.run(key) {
            try await executor.run(in: .background) {
                // What has begun a moment ago may not be in the catalog yet.
                try self.writeChanges()
                return try self.rounds.withLock { _ in
                    let isKept = try self.catalog.setPinned(isPinned, key: key.hash)
                    if isPinned { try self.notePinned([key]) } else { try self.noteEvictable([key], andParts: true) }
                    return isKept
                }
            }
        }
    }
}

/// A resource that was removed while no reader had it open.
struct RemovedUnused {
    var resource: RemovedResource
    /// The bytes of its claim.
    var bytes: Int64
    /// Whether its file has been removed, and the claim given back.
    var isFreed: Bool
}
