import ByteRanges
import Foundation
import Synchronization

/// A check of the stored blocks of a store against their checksums.
///
/// It reads through the same objects as players, so that a bad block is discarded for all readers.
struct Verifier: Sendable {
    private let store: Store
    private let isRepairing: Bool

    /// - Parameter isRepairing: Whether to discard bad blocks. If not, they stay recorded.
    init(_ store: Store, isRepairing: Bool) {
        self.store = store
        self.isRepairing = isRepairing
    }

    /// Checks the stored blocks of one resource, or of all resources if `only` is `nil`. A repair of all resources also
    /// removes unreachable rows, and corrects the byte totals in the catalog.
    func run(_ only: CacheKey?, _ progress: @escaping @Sendable (Int, Int) -> Void) async throws -> VerificationReport {
        if isRepairing { try store.checkWritable() }
        try store.checkOpen()
        var result = VerificationReport()
        if let only {
            try await verify(only, 0, &result, progress)
            return result
        }
        if isRepairing { try await repairRows(&result) }
        let total = try await store.readCatalog(in: .maintenance) { try $0.blocks.count() }
        var key = ""
        while true {
            try Task.checkCancellation()
            let last = key
            let keys = try await store.executor.run(in: .maintenance) { try store.catalog.keys(after: last, limit: 64) }
            guard let next = keys.last else { break }
            key = next
            for key in keys { try await verify(CacheKey(hash: key), total, &result, progress) }
        }
        if isRepairing {
            try await ResourceRemover(store).correctSums()
            store.evictor.enforceCapacity()
        }
        return result
    }

    private func verify(
        _ key: CacheKey, _ total: Int, _ result: inout VerificationReport, _ progress: (Int, Int) -> Void
    ) async throws {
        guard let lease = try await store.lease(key) else {
            try await verifyRecord(of: key, &result)
            return
        }
        defer { lease.end() }
        let end = result.blockCount + lease.generation.storedBlockCount
        do {
            try await verify(lease.generation, &result) { progress($0, max(total, $0)) }
        } catch let unopened as UnopenedFile {
            let count = max(0, end - result.blockCount)
            guard unopened.cause.isNotRegularFile else {
                result.uncheckedBlockCount += count
                result.uncheckedCause = result.uncheckedCause ?? unopened.cause.message
                return
            }
            result.blockCount += count
            result.damagedBlockCount += count
            guard isRepairing else { return }
            // A file with this name can't be created either, so the whole resource is removed.
            _ = try await store.remove(key)
            result.discardedBlockCount += count
        }
    }

    /// Checks the record of a resource that can't be opened. A record that was changed without the cache's key counts
    /// as one bad block.
    private func verifyRecord(of key: CacheKey, _ result: inout VerificationReport) async throws {
        let record = try await store.executor.run(in: .maintenance) { try store.catalog.resource(key: key.hash) }
        guard record?.isUnreadable == true else { return }
        result.blockCount += 1
        result.damagedBlockCount += 1
        guard isRepairing else { return }
        _ = try await store.remove(key)
        result.discardedBlockCount += 1
    }

    private func verify(
        _ generation: Generation, _ result: inout VerificationReport, _ progress: (Int) -> Void
    ) async throws {
        if isRepairing {
            try await store.executor.run(in: .maintenance) {
                // A file that was deleted while it was open can be read until it is closed, so it is closed now.
                guard try !store.directory.bytes.contains(generation.identifier.hex) else { return }
                generation.disk?.file.close()
            }
        }
        var index: Int64 = 0
        while true {
            try Task.checkCancellation()
            let first = index
            // A few blocks are checked at a time, so that a player's reads can use the thread in between.
            let step = try await store.executor.run(in: .maintenance) { () -> CheckedPart? in
                try store.checkOpen()
                guard let disk = generation.disk, let row = generation.row.value else { return nil }
                let blocks = try store.catalog.blocks.records(of: row, in: first..<Int64.max, limit: 64)
                let found = disk.verify(blocks, repairing: isRepairing)
                if isRepairing { generation.recordInvalidated(found.bad.map(StoredBlocks.wholeBlocks)) }
                return CheckedPart(found: found, next: blocks.last.map { $0.index + 1 })
            }
            guard let step else { return }
            result.blockCount += step.found.checked
            result.damagedBlockCount += step.found.bad.count
            if isRepairing { result.discardedBlockCount += step.found.bad.count }
            if let cause = step.found.failure { throw UnopenedFile(cause: cause) }
            guard let next = step.next else { return }
            progress(result.blockCount)
            index = next
        }
    }

    /// Removes rows that can't be found by any key, and their files. Each row counts as one bad block.
    private func repairRows(_ result: inout VerificationReport) async throws {
        let count = try await ResourceRemover(store).removeUnreachable()
        result.blockCount += count
        result.damagedBlockCount += count
        result.discardedBlockCount += count
    }
}

/// The result of a check of stored blocks. A block is up to 64 KiB of a media file. Some blocks are only partly
/// stored.
public struct VerificationReport: Sendable, Hashable {
    /// The number of checked blocks.
    public var blockCount = 0
    /// The number of blocks that do not match their checksums or can't be read. A damaged record counts as one block.
    public var damagedBlockCount = 0
    /// The number of damaged blocks that were discarded. They are fetched again when they are requested.
    public var discardedBlockCount = 0
    /// The number of blocks that were not checked, because their file could not be opened during the check. They stay
    /// stored.
    public var uncheckedBlockCount = 0
    /// A sentence with the path and the cause for the first file that could not be opened; `nil` if there is none.
    public var uncheckedCause: String?

    /// Creates a report without blocks.
    package init() {}
}

/// The error for a media file that could not be opened during the check. The remaining blocks of the file were not
/// checked.
private struct UnopenedFile: Error {
    var cause: CacheError
}

/// A few blocks that were checked, and the index of the next one.
private struct CheckedPart {
    var found: MediaFile.Findings
    var next: Int64?
}

extension Generation {
    /// The number of blocks on disk, whether complete or not.
    fileprivate var storedBlockCount: Int {
        disk?.storedRanges.reduce(0) { $0 + Block.indices(touching: $1).count } ?? 0
    }
}

/// A comparison of the claims of all versions, the sums in the catalog and the blocks on disk. It requires an idle
/// store, and is intended for tests and simulations.
struct LedgerCheck: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Performs the comparison. The method blocks.
    ///
    /// - Throws: ``CacheError`` with a message that names the first difference.
    func run() throws {
        let (counted, records) = try (store.catalog.blocks.countedBytes(), store.catalog.resources())
        let lives = store.table.withLock { $0.lives }
        var sum: Int64 = 0
        var rowSum: Int64 = 0
        var named: Set<GenerationIdentifier> = []
        for record in records {
            guard let stored = record.generation else { continue }
            named.insert(stored.identifier)
            let blocks = counted.bytes[stored.id] ?? 0
            let storedRanges = stored.storedRanges
            try expect(
                blocks == stored.countedBytes && blocks == storedRanges.byteCount,
                "\(record.url): its blocks contain \(blocks) bytes, but \(stored.countedBytes) bytes are recorded, "
                    + "and the recorded ranges contain \(storedRanges.byteCount)")
            let life = lives[stored.identifier]
            if let disk = life?.generation.disk {
                try expect(
                    disk.storedByteCount - disk.memoryByteCount == blocks || life?.phase == .retired,
                    "\(record.url): \(disk.storedByteCount) bytes are on disk, but \(blocks) are recorded")
            } else {
                sum += stored.storedBytes
            }
            if let life {
                try expect(
                    life.generation.rowClaim == stored.rowBytes || life.phase == .retired,
                    "\(record.url): its row claims \(life.generation.rowClaim) bytes, "
                        + "but its record states \(stored.rowBytes)")
            } else {
                rowSum += stored.rowBytes
            }
            try expectOnDisk(record, stored, end: storedRanges.bounds?.upperBound ?? 0)
        }
        for life in lives.values {
            rowSum += life.generation.rowClaim
            guard let disk = life.generation.disk else { continue }
            sum += disk.claimedByteCount
            let isListed = named.contains(life.generation.identifier) == life.isRecorded
            try expect(isListed, "\(life.generation.url): the catalog and the table disagree on whether it is recorded")
            try expect(
                life.isRecorded || life.leases > 0, "\(life.generation.url): it is not open, and no record refers to it"
            )
        }
        sum += store.remover.unremovedByteCount
        let total = try store.catalog.settings.storedBytes()
        let recorded = records.reduce(0) { $0 + ($1.generation?.countedBytes ?? 0) }
        try expect(
            total == recorded,
            "the catalog's sum of stored bytes is \(total), but its records add up to \(recorded)")
        try expect(store.ledger.reserved == 0, "\(store.ledger.reserved) bytes are still reserved")
        try expect(
            store.ledger.used == sum,
            "\(store.ledger.used) bytes are counted as used, but the claims add up to \(sum)")
        let (rowTotal, rowsRecorded) = (
            try store.catalog.settings.rowBytes(), records.reduce(0) { $0 + ($1.generation?.rowBytes ?? 0) }
        )
        try expect(
            rowTotal == rowsRecorded, "the catalog's sum of rows is \(rowTotal), but its records state \(rowsRecorded)")
        try expect(
            store.ledger.rowBytes == rowSum,
            "\(store.ledger.rowBytes) bytes are counted for rows, but the claims add up to \(rowSum)")
        try expect(
            store.memoryLedger.reserved == 0, "\(store.memoryLedger.reserved) bytes of memory are still reserved")
        let inMemory = lives.values.reduce(0) { $0 + $1.generation.memory.byteCount }
        try expect(
            store.memoryLedger.used == inMemory,
            "\(store.memoryLedger.used) bytes of memory count as used, but \(inMemory) are in use")
        guard store.directory.access.isWritable, try !store.catalog.settings.isSweepPending() else { return }
        try store.directory.forEachMediaFile { identifier in
            let isUsed = named.contains(identifier) || store.table.withLock { $0.isLive(identifier) }
            try expect(isUsed, "the media file \(identifier) belongs to no version")
            return true
        }
    }

    private func expectOnDisk(_ record: ResourceRecord, _ stored: GenerationRecord, end: Int64) throws {
        // Blocks without bytes, which remain after an unclean shutdown, are claimed until the version is opened.
        guard end > 0, !stored.needsCleanup else { return }
        let size = try store.directory.bytes.open(stored.identifier.hex, isWritable: false)?.size() ?? 0
        try expect(size >= end, "\(record.url): its file has \(size) bytes, but its blocks end at offset \(end)")
    }

    private func expect(_ holds: Bool, _ sentence: @autoclosure () -> String) throws {
        guard holds else { throw CacheError(.storage, "the space accounting is wrong: \(sentence())") }
    }
}
