import ByteRanges
import Foundation
import Synchronization

extension Store: GenerationOwner {
    /// A lease on what is stored under the key, opened if nobody has it open; nil if nothing is.
    ///
    /// Where nothing is stored, but a version that has begun holds bytes, that one takes the place. One in a format that
    /// this version of Spool does not know counts as not stored, and is left as it is.
    ///
    /// - Throws: ``CacheError`` when it could not be opened this time; nothing stored is given up for that. `closed`
    ///   after ``close()``.
    package func lease(_ key: CacheKey, user: (any GenerationUser)? = nil) async throws -> Lease? {
        let open = try table.withLock { table in
            try Self.checkOpen(table)
            return table.leaseCurrent(key, user: user)
        }
        if let open { return makeLease(open, user) }
        return try await turns.run(key) {
            try await executor.run(in: .playback) { try self.openStored(key, user) }
        }
    }

    /// Opens what is stored under a key whose turn the caller has; blocks.
    ///
    /// - Parameter read: Reads the record in place of the catalog, for tests: what is stored may be replaced meanwhile.
    func openStored(
        _ key: CacheKey, _ user: (any GenerationUser)?, reading read: ((String) throws -> ResourceRecord?)? = nil
    ) throws -> Lease? {
        while true {
            let (edition, open) = try table.withLock { table in
                try Self.checkOpen(table)
                return (table.edition, table.leaseCurrent(key, user: user))
            }
            if let open { return makeLease(open, user) }
            let record = try read.map { try $0(key.hash) } ?? catalog.resource(key: key.hash)
            guard let record, let stored = record.generation, let sealer = directory.sealer(of: stored, key: key) else {
                return record?.generation == nil ? takeCandidate(of: key, user) : nil
            }
            let generation = try makeGeneration(record, stored, sealer)
            let taken = try table.withLock { table -> Generation? in
                try Self.checkOpen(table)
                if let open = table.leaseCurrent(key, user: user) { return open }
                // Another version may have been stored since the catalog was read.
                guard table.edition == edition else { return nil }
                table.open(generation)
                ledger.correct(by: (generation.disk?.landedByteCount ?? 0) - stored.storedBytes)
                return table.addLease(generation.identifier, user: user)
            }
            guard let taken else { continue }
            if taken === generation { afterOpening(generation, stored) }
            return makeLease(taken, user)
        }
    }

    private func makeGeneration(
        _ record: ResourceRecord, _ stored: GenerationRecord, _ sealer: BlockSealer
    ) throws -> Generation {
        let key = CacheKey(hash: record.key)
        let landed = try stored.landed ?? catalog.landed(of: stored.id)
        let row = CatalogRow(stored.id)
        let description = GenerationDescription(
            length: stored.length, contentType: record.contentType, version: stored.version, fields: stored.fields)
        return Generation(
            key: key, identifier: stored.identifier, url: record.url, description: description,
            disk: mediaFile(
                stored.identifier, sealer, landed: landed, isRecordStale: stored.landed == nil, length: stored.length,
                row: row),
            row: row, isKept: directory.access.isWritable, isProven: true, ledger: ledger, memoryLedger: memoryLedger,
            owner: self, rowClaim: stored.rowBytes)
    }

    private func mediaFile(
        _ identifier: GenerationIdentifier, _ sealer: BlockSealer, landed: ByteRangeSet, isRecordStale: Bool,
        length: Int64?, row: CatalogRow
    ) -> MediaFile {
        MediaFile(
            file: directory.pooledFile(identifier, in: pool), sealer: sealer,
            landed: landed, isRecordStale: isRecordStale, length: length, isShared: directory.access.isShared,
            storedSeals: { [weak self] indices in
                guard let self else { throw CacheError(.closed, "the cache has been closed") }
                try checkOpen()
                return try row.value.map { try self.catalog.blocks(of: $0, in: indices) } ?? []
            },
            giveBack: { [ledger] in ledger.giveBack($0) })
    }

    /// What nobody waits for: claims that an unclean end left without bytes are given up, and bytes without a claim freed;
    /// what an older version did not write is written.
    ///
    /// A claim without bytes of what nobody opens goes with it, when its turn to be evicted comes.
    private func afterOpening(_ generation: Generation, _ stored: GenerationRecord) {
        if stored.landed == nil { noteChange(of: generation) }
        // What is to be sealed anew gets a file of its own, in which there is nothing else.
        guard stored.needsTidying, directory.access.isWritable, !directory.isOutdated(stored) else { return }
        guard let lease = extend(generation) else { return }
        work.start(in: .background) { [weak self] in
            defer { lease.end() }
            do {
                generation.noteInvalidated(try generation.disk?.invalidateHoles() ?? [])
                try generation.disk?.freeUnclaimed()
                try self?.catalog.noteTidied(stored.id)
            } catch {
                // Next time it is opened, it is tried again.
                let text = "\(generation.url) could not be tidied: \(error)"
                if let error = error as? CacheError {
                    self?.warnOnce("tidying", error, text)
                } else {
                    self?.report(.warning(text))
                }
            }
        }
    }

    private func takeCandidate(of key: CacheKey, _ user: (any GenerationUser)?) -> Lease? {
        let (generation, outcome) = table.withLock { table -> (Generation?, GenerationTable.Outcome) in
            guard table.currentGeneration(of: key) == nil, let candidate = table.candidate(of: key),
                let outcome = table.promote(candidate.identifier)
            else { return (table.leaseCurrent(key, user: user), .init()) }
            candidate.isProven.store(true, ordering: .releasing)
            return (table.leaseCurrent(key, user: user), outcome)
        }
        finish(outcome)
        guard let generation else { return nil }
        noteChange(of: generation)
        return makeLease(generation, user)
    }

    /// Begins another version beside what is stored.
    ///
    /// It takes the stored one's place when it has proven itself: a block of it has landed on disk, or all of it. Where
    /// nothing is stored every byte counts. Given up before, it leaves nothing. A player waits for this: it touches no
    /// catalog, and the file has been made ahead, or is made when bytes land.
    ///
    /// - Parameters:
    ///   - url: Scheme, host and path; what follows is cut off when it is recorded.
    ///   - presentation: What it is a part of, if that is stored; nil: of what the version before was.
    ///   - isKept: Whether anything may be on disk.
    /// - Throws: ``CacheError`` with code `closed` after ``close()``.
    package func begin(
        _ key: CacheKey, url: String, description: GenerationDescription, in presentation: CacheKey? = nil,
        isKept: Bool = true, user: (any GenerationUser)? = nil
    ) throws -> Lease {
        let isOnDisk = isKept && directory.access.isWritable
        let prepared = isOnDisk ? directory.takePrepared() : nil
        let identifier = prepared?.0 ?? GenerationIdentifier(random: clock.random)
        let row = CatalogRow()
        let disk =
            isOnDisk
            ? mediaFile(
                identifier, directory.sealer(identifier, key: key), landed: [], isRecordStale: false,
                length: description.length, row: row) : nil
        let generation = Generation(
            key: key, identifier: identifier, url: url, description: description, disk: disk, row: row,
            isKept: isOnDisk, isProven: false, ledger: ledger, memoryLedger: memoryLedger, owner: self,
            presentation: presentation)
        // If it is open already, or too many are, it is opened by its path.
        if let file = prepared?.1, let disk { _ = disk.file.adopt(file) }
        let isBegun = table.withLock { table in
            guard !table.isClosed else { return false }
            table.begin(generation)
            table.endReservation(identifier)
            return table.addLease(identifier, user: user) != nil
        }
        guard isBegun else {
            if prepared != nil { work.start(in: .background) { [directory] in directory.removeMedia(identifier) } }
            throw CacheError(.closed, "the cache has been closed")
        }
        if isOnDisk { noteChange(of: generation) }
        return makeLease(generation, user)
    }

    /// What is known of the newest version that has begun under the key, or is open.
    package func openDescription(of key: CacheKey) -> GenerationDescription? {
        table.withLock { $0.newest(key) }?.description
    }

    /// What is known of each version that is open, or has begun, by its key.
    package func openDescriptions() -> [(key: CacheKey, description: GenerationDescription)] {
        table.withLock { table in table.lives.values.filter { $0.phase != .retired }.map(\.generation) }
            .map { ($0.key, $0.description) }
    }

    /// A lease on a version that is open, or has begun, under the key, if there is one that `isMeant`; also if the disk
    /// refused it since, but none that may only be in memory.
    package func leaseOpen(
        _ key: CacheKey, user: any GenerationUser, where isMeant: (Generation) -> Bool
    ) -> Lease? {
        let open = table.withLock { $0.open(key) }
        guard let meant = open.first(where: { $0.disk != nil && isMeant($0) }) else { return nil }
        return table.withLock { table in
            // It may have gone since.
            table.open(key).contains { $0 === meant } ? table.addLease(meant.identifier, user: user) : nil
        }.map { makeLease($0, user) }
    }

    /// Whether readers of another user depend on a version that is open under the key and satisfies `isMeant`.
    ///
    /// A version without stored bytes counts as well, because its first response has just started. A version in memory
    /// does not count: it has no place in the cache that another version could take.
    package func isFilled(
        _ key: CacheKey, besides user: any GenerationUser, where isMeant: (Generation) -> Bool
    ) -> Bool {
        let open = table.withLock { table in
            table.open(key).map { ($0, table.life($0.identifier)?.liveUsers ?? []) }
        }
        return open.contains { generation, users in
            generation.disk != nil && isMeant(generation)
                && users.contains { $0 !== user && (generation.landed.isEmpty || $0.isFilling(generation)) }
        }
    }

    /// Sees to it that the next generation finds its file made, in the background.
    func prepareFile() {
        guard directory.wantsPreparedFile else { return }
        work.start(in: .background) { [weak self] in
            guard let self, !table.withLock({ $0.isClosed }) else { return }
            let identifier = GenerationIdentifier(random: clock.random)
            // Live before it is made, or a sweep would take it for an orphan.
            table.withLock { $0.reserve(identifier) }
            if !directory.prepareFile(identifier) { table.withLock { $0.endReservation(identifier) } }
        }
    }

    // MARK: - Leases

    private static func checkOpen(_ table: borrowing GenerationTable) throws {
        guard !table.isClosed else { throw CacheError(.closed, "the cache has been closed") }
    }

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
        switch table.withLock({ $0.endLease(generation.identifier, user: user) }) {
        case .none: break
        case .gone(let generation): work.start(in: .background) { [weak self] in self?.dispose(of: generation) }
        case .unused(let generation):
            generation.evictAllFromMemory()
            if generation.disk == nil {
                // Nothing is on disk, and nothing of it in the catalog.
                finish(table.withLock { $0.dropUnused(generation.identifier) })
            } else if directory.access.isWritable {
                flusher.note(generation)
                if rekeying.load(ordering: .relaxed) == .waiting { goOnRekeying() }
            } else {
                closeUnused()
            }
        }
    }

    func users(of generation: Generation) -> [any GenerationUser] {
        table.withLock { $0.life(generation.identifier)?.liveUsers ?? [] }
    }

    // MARK: - Proof and end

    func noteProof(of generation: Generation) {
        work.counting {
            let outcome = table.withLock { $0.promote(generation.identifier) }
            guard let outcome else { return }
            noteChange(of: generation)
            finish(outcome)
        }
    }

    /// What is no longer named by the catalog: of open generations, and of those that nobody has open.
    struct Ended {
        var outcome = GenerationTable.Outcome()
        var stored: [RemovedResource] = []
    }

    /// Notes, beside the change of the catalog, whose records are gone.
    func noteForgotten(_ removed: [RemovedResource], _ table: inout GenerationTable) -> Ended {
        var ended = Ended()
        for resource in removed {
            if let outcome = resource.generation.flatMap({ table.noteForgotten($0) }) {
                ended.outcome.add(outcome)
            } else {
                ended.stored.append(resource)
            }
        }
        return ended
    }

    func finish(_ ended: Ended) {
        for resource in ended.stored {
            ledger.correctRows(by: -resource.rowBytes)
            if let identifier = resource.generation {
                removeFile(identifier, claiming: resource.storedBytes)
                continue
            }
            if resource.storedBytes > 0 {
                // A damaged record has lost its file's name. If not even that can be noted, an unclean end may.
                try? catalog.setSweepPending(true)
            }
            ledger.giveBack(resource.storedBytes)
        }
        finish(ended.outcome)
    }

    func finish(_ outcome: GenerationTable.Outcome) {
        for (generation, users) in outcome.retired {
            for user in users { user.retired(generation) }
        }
        for generation in outcome.gone { dispose(of: generation) }
    }

    /// Ends a generation that nobody uses and nothing names: its file goes, then its claim. Blocks.
    func dispose(of generation: Generation) {
        if let disk = generation.disk {
            disk.file.close()
            removeFile(generation.identifier, claiming: disk.endCounting())
        }
        generation.endRowClaim()
        generation.evictAllFromMemory()
    }
}
