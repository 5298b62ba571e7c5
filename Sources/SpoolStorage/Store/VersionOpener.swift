import ByteRanges
import Foundation
import Synchronization

/// A value type that opens the stored versions of a store and creates new ones.
struct VersionOpener: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    // MARK: - Stored versions

    /// Opens the version that is stored for a key. The caller must have the key's turn. The method blocks.
    ///
    /// - Parameter read: A function that returns the record; `nil` to read it from the catalog. Tests use the function
    ///   to replace the stored version in the meantime.
    func openStored(
        _ key: CacheKey, _ user: (any GenerationUser)?, reading read: ((String) throws -> ResourceRecord?)? = nil
    ) throws -> Lease? {
        // The record is read again only if this key's version changes, and the key's turn prevents most changes.
        defer { _ = store.table.withLock { $0.endReading(key) } }
        while true {
            let open = try store.table.withLock { table in
                try table.checkOpen()
                table.beginReading(key)
                return table.leaseCurrent(key, user: user)
            }
            if let open { return store.makeLease(open, user) }
            let record = try read.map { try $0(key.hash) } ?? store.catalog.resource(key: key.hash)
            guard let record, var stored = record.generation,
                let sealer = store.directory.sealer(of: stored, key: key)
            else {
                return record?.generation == nil ? takeCandidate(of: key, user) : nil
            }
            let isCorrected = try correctCounts(of: &stored, record)
            let rowBytes = store.catalog.counts.rowBytes(of: record) ?? stored.rowBytes
            let generation = makeGeneration(record, stored, sealer, rowClaim: rowBytes)
            let taken = try store.table.withLock { table -> Generation? in
                try table.checkOpen()
                if let open = table.leaseCurrent(key, user: user) { return open }
                // Another version may have been stored since the catalog was read.
                guard table.endReading(key) else { return nil }
                table.open(generation)
                store.ledger.correct(by: (generation.disk?.storedByteCount ?? 0) - stored.countedBytes)
                store.ledger.correctRows(by: rowBytes - stored.rowBytes)
                return table.addLease(generation.identifier, user: user)
            }
            guard let taken else { continue }
            if taken === generation { afterOpening(generation, stored) }
            // The count may have been too low.
            if isCorrected { store.evictor.enforceCapacity() }
            return store.makeLease(taken, user)
        }
    }

    /// Corrects the counts of a record that another program has changed. The caller must have the turn of the key, so
    /// that no other task changes the record.
    ///
    /// - Returns: Whether a count was wrong.
    private func correctCounts(of stored: inout GenerationRecord, _ record: ResourceRecord) throws -> Bool {
        do {
            guard let correction = try store.catalog.counts.correct(&stored, of: record) else { return false }
            store.ledger.correct(by: correction.storedBytes)
            store.ledger.correctRows(by: correction.rowBytes)
            return true
        } catch let error as CacheError where error.code == .storage {
            // The correction is retried the next time the resource is opened. Until then, the space accounting uses the
            // changed numbers.
            store.reporter.warn("the byte counts of \(record.url) could not be corrected: \(error)")
            return false
        }
    }

    private func makeGeneration(
        _ record: ResourceRecord, _ stored: GenerationRecord, _ sealer: BlockSealer, rowClaim: Int64
    ) -> Generation {
        let key = CacheKey(hash: record.key)
        let storedRanges = stored.storedRanges
        let row = CatalogRow(stored.id)
        // A length that is less than the end of the stored bytes is wrong, and is requested from the origin again.
        let length = stored.length.flatMap { $0 >= storedRanges.bounds?.upperBound ?? 0 ? $0 : nil }
        let description = GenerationDescription(
            length: length, contentType: record.contentType, version: stored.version, fields: stored.fields)
        return Generation(
            key: key, identifier: stored.identifier, url: record.url, description: description,
            disk: mediaFile(
                stored.identifier, sealer, storedRanges: storedRanges, isRecordStale: !stored.hasRanges,
                length: length, row: row),
            row: row, isKept: store.directory.access.isWritable, isProven: true, ledger: store.ledger,
            memoryLedger: store.memoryLedger, owner: store, rowClaim: rowClaim,
            padding: storedRanges.padding(to: store.directory.blockSize))
    }

    private func mediaFile(
        _ identifier: GenerationIdentifier, _ sealer: BlockSealer, storedRanges: ByteRangeSet, isRecordStale: Bool,
        length: Int64?, row: CatalogRow
    ) -> MediaFile {
        MediaFile(
            file: store.directory.pooledFile(identifier, in: store.pool), sealer: sealer,
            storedRanges: storedRanges, isRecordStale: isRecordStale, length: length,
            isShared: store.directory.access.isShared,
            elapsed: store.clock.elapsed,
            storedSeals: { [weak store] indices in
                guard let store else { throw CacheError(.closed, "the cache has been closed") }
                try store.checkOpen()
                return try row.value.map { try store.catalog.blocks.records(of: $0, in: indices) } ?? []
            },
            releaseClaim: { [ledger = store.ledger] in ledger.releaseClaim($0) })
    }

    /// Compares the file with its record after an unclean shutdown, in the background. Claims without bytes are
    /// returned, and bytes without a claim are freed.
    ///
    /// The claims of a version that is never opened are returned when it is evicted.
    private func afterOpening(_ generation: Generation, _ stored: GenerationRecord) {
        if generation.rowClaim != stored.rowBytes {
            // The size of the row was computed with an earlier rule.
            generation.restoreDescription()
            store.recordChange(of: generation)
        }
        if !stored.hasRanges { store.recordChange(of: generation) }
        guard stored.needsCleanup, store.directory.access.isWritable else { return }
        guard let lease = store.extend(generation) else { return }
        store.work.start(in: .background) { [weak store] in
            defer { lease.end() }
            do {
                generation.recordInvalidated(try generation.disk?.invalidateHoles() ?? [])
                try generation.disk?.freeUnclaimed()
                if let store { try await store.writer.inTurn { try store.catalog.settings.recordCleanedUp(stored.id) } }
            } catch {
                // The comparison is retried when the version is next opened.
                let text = "the file of \(generation.url) could not be compared with its record: \(error)"
                if let error = error as? CacheError {
                    store?.reporter.warnOnce("tidying", error, text)
                } else {
                    store?.reporter.warn(text)
                }
            }
        }
    }

    private func takeCandidate(of key: CacheKey, _ user: (any GenerationUser)?) -> Lease? {
        let (generation, outcome) = store.table.withLock { table -> (Generation?, GenerationTable.Outcome) in
            guard table.currentGeneration(of: key) == nil, let candidate = table.candidate(of: key),
                let outcome = table.promote(candidate.identifier)
            else { return (table.leaseCurrent(key, user: user), .init()) }
            candidate.isProven.store(true, ordering: .releasing)
            return (table.leaseCurrent(key, user: user), outcome)
        }
        store.remover.finish(outcome)
        guard let generation else { return nil }
        store.recordChange(of: generation)
        return store.makeLease(generation, user)
    }

    // MARK: - New versions

    /// Creates a new version in addition to the stored one. A player is waiting for this, so the method does not access
    /// the catalog. The file was created in advance, or is created when bytes are stored.
    func start(
        _ key: CacheKey, url: String, _ description: GenerationDescription, in presentation: CacheKey?,
        variantOf: [CacheKey], isKept: Bool, _ user: (any GenerationUser)?
    ) throws -> Lease {
        let isOnDisk = isKept && store.directory.access.isWritable
        let prepared = isOnDisk ? store.directory.takePrepared() : nil
        let identifier = prepared?.0 ?? GenerationIdentifier(random: store.clock.random)
        let row = CatalogRow()
        let disk =
            isOnDisk
            ? mediaFile(
                identifier, store.directory.sealer(identifier, key: key), storedRanges: [], isRecordStale: false,
                length: description.length, row: row) : nil
        let generation = Generation(
            key: key, identifier: identifier, url: url, description: description, disk: disk, row: row,
            isKept: isOnDisk, isProven: false, ledger: store.ledger, memoryLedger: store.memoryLedger, owner: store,
            presentation: presentation, variantOf: variantOf)
        // If the file can't be adopted, because one is already open or the pool is closed, it is opened by its path
        // later.
        if let file = prepared?.1, let disk { _ = disk.file.adopt(file) }
        let isStarted = store.table.withLock { table in
            guard !table.isClosed else { return false }
            table.begin(generation)
            table.endReservation(identifier)
            return table.addLease(identifier, user: user) != nil
        }
        guard isStarted else {
            if prepared != nil {
                store.work.start(in: .background) { [directory = store.directory] in directory.removeMedia(identifier) }
            }
            throw CacheError(.closed, "the cache has been closed")
        }
        if isOnDisk { store.recordChange(of: generation) }
        return store.makeLease(generation, user)
    }

    /// Creates the file of the next version in the background, unless one already exists.
    func prepareFile() {
        guard store.directory.wantsPreparedFile else { return }
        store.work.start(in: .background) { [weak store] in
            guard let store, store.isOpen else { return }
            let identifier = GenerationIdentifier(random: store.clock.random)
            // The name is reserved before the file is created, because a sweep would otherwise remove the file as an
            // orphan.
            store.table.withLock { $0.reserve(identifier) }
            if !store.directory.prepareFile(identifier) { store.table.withLock { $0.endReservation(identifier) } }
        }
    }
}
