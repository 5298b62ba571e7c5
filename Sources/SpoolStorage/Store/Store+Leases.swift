import ByteRanges
import Foundation
import Synchronization

extension Store: GenerationOwner {
    var elapsed: Duration { clock.elapsed() }

    /// Returns a lease on the stored version of the key, which is opened if necessary; `nil` if nothing is stored.
    ///
    /// If nothing is stored, but a version that is being received has stored bytes, that version becomes the stored
    /// one. A version in an unknown format counts as not stored, and is not changed.
    ///
    /// - Throws: ``CacheError`` with code `closed` after ``close()``, or if the version can't be opened at the moment,
    ///   in which case its bytes stay stored. `CancellationError` if the task is cancelled while another task has the
    ///   key's turn.
    package func lease(_ key: CacheKey, user: (any GenerationUser)? = nil) async throws -> Lease? {
        let open = try table.withLock { table in
            try table.checkOpen()
            return table.leaseCurrent(key, user: user)
        }
        if let open { return makeLease(open, user) }
        return try await turns.runUnlessCancelled(key) {
            try await executor.run(in: .playback) { try self.versions.openStored(key, user) }
        }
    }

    /// Creates a new version in addition to the stored one.
    ///
    /// The new version replaces the stored one when one of its blocks, or all of it, is on disk. If nothing is stored,
    /// the new version becomes the stored one with its first byte. If it ends before that, nothing is stored.
    ///
    /// - Parameters:
    ///   - url: The scheme, host and path. Other parts are removed when the URL is recorded.
    ///   - presentation: The presentation that the resource belongs to, if the presentation is stored; `nil` for the
    ///     presentation of the previous version.
    ///   - variantOf: The keys of the resources that the version is a variant of.
    ///   - isKept: Whether bytes may be stored on disk.
    /// - Throws: ``CacheError`` with code `closed` after ``close()``.
    package func begin(
        _ key: CacheKey, url: String, description: GenerationDescription, in presentation: CacheKey? = nil,
        variantOf: [CacheKey] = [], isKept: Bool = true, user: (any GenerationUser)? = nil
    ) throws -> Lease {
        try versions.start(key, url: url, description, in: presentation, variantOf: variantOf, isKept: isKept, user)
    }

    /// Returns the description of the newest open version of the key, stored or not.
    package func openDescription(of key: CacheKey) -> GenerationDescription? {
        table.withLock { $0.newest(key) }?.description
    }

    /// Returns the keys and descriptions of all open versions, stored or not.
    package func openDescriptions() -> [(key: CacheKey, description: GenerationDescription)] {
        table.withLock { table in table.lives.values.filter { $0.phase != .retired }.map(\.generation) }
            .map { ($0.key, $0.description) }
    }

    /// Returns a lease on an open version of the key that satisfies `predicate`, stored or not; `nil` if there is none.
    ///
    /// A version that the disk has rejected since its creation counts, but a version that may only be in memory does
    /// not.
    package func leaseOpen(
        _ key: CacheKey, user: any GenerationUser, where predicate: (Generation) -> Bool
    ) -> Lease? {
        let open = table.withLock { $0.open(key) }
        guard let meant = open.first(where: { $0.disk != nil && predicate($0) }) else { return nil }
        return table.withLock { table in
            // The version may have ended since.
            table.open(key).contains { $0 === meant } ? table.addLease(meant.identifier, user: user) : nil
        }.map { makeLease($0, user) }
    }

    /// Returns whether readers of another user depend on a version that is open for the key and satisfies `predicate`.
    ///
    /// A version without stored bytes counts as well, because its first response has just started. A version in memory
    /// does not count, because it does not occupy a place in the cache that a different version could take.
    package func isFilled(
        _ key: CacheKey, besides user: any GenerationUser, where predicate: (Generation) -> Bool
    ) -> Bool {
        let open = table.withLock { table in
            table.open(key).map { ($0, table.life($0.identifier)?.liveUsers ?? []) }
        }
        return open.contains { generation, users in
            generation.disk != nil && predicate(generation)
                && users.contains { $0 !== user && (generation.storedRanges.isEmpty || $0.isFilling(generation)) }
        }
    }

    // MARK: - Leases

    func makeLease(_ generation: Generation, _ user: (any GenerationUser)?) -> Lease {
        Lease(generation) { [weak self, weak user] in
            guard let self else { return }
            work.counting { self.endLease(generation, user) }
        }
    }

    func extend(_ generation: Generation) -> Lease? {
        table.withLock { $0.addLease(generation.identifier, user: nil) }.map { makeLease($0, nil) }
    }

    private func endLease(_ generation: Generation, _ user: (any GenerationUser)?) {
        // Bytes that only this user needed may now be evicted.
        generation.recordMove()
        let ending = table.withLock { $0.endLease(generation.identifier, user: user) }
        if case .none = ending { return }
        eviction.searches.recordChange()
        switch ending {
        case .none: break
        case .gone(let generation): work.start(in: .background) { [weak self] in self?.remover.dispose(of: generation) }
        case .unused(let generation):
            generation.memory.evictAll()
            if generation.disk == nil {
                // The version has neither a file nor a record.
                remover.finish(table.withLock { $0.releaseUnused(generation.identifier) })
            } else if directory.access.isWritable {
                writer.note(generation, isComplete: false)
            } else {
                for closed in closeUnused() { closed.disk?.file.close() }
            }
        }
    }

    func users(of generation: Generation) -> [any GenerationUser] {
        table.withLock { $0.life(generation.identifier)?.liveUsers ?? [] }
    }

    /// Closes stored versions that have not been used for a long time. The most recently used ones stay open, with
    /// their checked blocks.
    ///
    /// - Returns: The closed versions. The caller closes their descriptors without holding a lock, because this may
    ///   take time.
    func closeUnused() -> [Generation] {
        table.withLock { $0.unused(but: 64) }.compactMap { life in
            // Only the open file still claims the bytes that the disk has not freed.
            guard !life.generation.hasChanges, life.generation.disk?.holdsUnfreedBytes != true else { return nil }
            return table.withLock { $0.close(life.generation.identifier, since: life.stamp) }
        }
    }

    /// Returns whether no reader or transfer has the key open, so that it may be evicted.
    func isUnused(_ key: CacheKey) -> Bool { table.withLock { $0.isUnused(key) } }

    // MARK: - Requests from versions

    func recordFirstBlockStored(of generation: Generation) {
        work.counting {
            let outcome = table.withLock { $0.promote(generation.identifier) }
            guard let outcome else { return }
            recordChange(of: generation)
            remover.finish(outcome)
        }
    }

    func recordChange(of generation: Generation) { writer.note(generation, isComplete: false) }

    func recordCompletion(of generation: Generation) { writer.note(generation, isComplete: true) }

    func recordStoringEnded(of generation: Generation) {
        recordCompletion(of: generation)
        // The file is created now, so that a player does not have to wait for it later.
        versions.prepareFile()
    }

    func reserveSpace(
        _ count: Int64, rowBytes: Int64, isUrgent: @escaping @Sendable () -> Bool
    ) async -> ReservationResult {
        await evictor.reserveSpace(count, rowBytes: rowBytes, isUrgent: isUrgent)
    }

    func makeMemory(_ count: Int64) -> Bool { VersionEvictor(self).makeMemory(count) }
}
