import ByteRanges
import Foundation
import Synchronization

/// Compares the claims of all versions, the sums of the catalog and the blocks on disk. A value over a store at rest, for
/// tests and simulations.
struct LedgerCheck: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Compares them all. This blocks.
    ///
    /// - Throws: ``CacheError`` with a message that names the first difference.
    func run() throws {
        let (counted, records) = try (store.catalog.countedBytes(), store.catalog.resources())
        let lives = store.table.withLock { $0.lives }
        var sum: Int64 = 0
        var rowSum: Int64 = 0
        var named: Set<GenerationIdentifier> = []
        for record in records {
            guard let stored = record.generation else { continue }
            named.insert(stored.identifier)
            let blocks = counted.bytes[stored.id] ?? 0
            let landed = try stored.landed ?? store.catalog.landed(of: stored.id)
            try expect(
                blocks == stored.storedBytes && blocks == landed.byteCount,
                "\(record.url): its blocks hold \(blocks) bytes, its record has \(stored.storedBytes) and lists \(landed.byteCount)"
            )
            let life = lives[stored.identifier]
            if let disk = life?.generation.disk {
                try expect(
                    disk.landedByteCount - disk.memoryByteCount == blocks || life?.phase == .retired,
                    "\(record.url): \(disk.landedByteCount) bytes are on disk, \(blocks) are recorded")
            } else {
                sum += stored.storedBytes
            }
            if let life {
                try expect(
                    life.generation.rowClaim == stored.rowBytes || life.phase == .retired,
                    "\(record.url): its row claims \(life.generation.rowClaim) bytes, its record has \(stored.rowBytes)"
                )
            } else {
                rowSum += stored.rowBytes
            }
            try expectOnDisk(record, stored, end: landed.bounds?.upperBound ?? 0)
        }
        for life in lives.values {
            rowSum += life.generation.rowClaim
            guard let disk = life.generation.disk else { continue }
            sum += disk.claimedByteCount
            let isListed = named.contains(life.generation.identifier) == life.isRecorded
            try expect(isListed, "\(life.generation.url): the catalog and the table disagree whether it is recorded")
            try expect(
                life.isRecorded || life.leases > 0, "\(life.generation.url): it is not open, and no record names it")
        }
        sum += store.remover.unremovedByteCount
        let total = try store.catalog.settings.storedBytes()
        let recorded = records.reduce(0) { $0 + ($1.generation?.storedBytes ?? 0) }
        try expect(total == recorded, "the catalog's sum is \(total), its records hold \(recorded)")
        try expect(store.ledger.reserved == 0, "\(store.ledger.reserved) bytes are still reserved")
        try expect(store.ledger.used == sum, "\(store.ledger.used) bytes count as used, the claims are \(sum)")
        let (rowTotal, rowsRecorded) = (
            try store.catalog.settings.rowBytes(), records.reduce(0) { $0 + ($1.generation?.rowBytes ?? 0) }
        )
        try expect(
            rowTotal == rowsRecorded, "the catalog's sum of rows is \(rowTotal), its records have \(rowsRecorded)")
        try expect(
            store.ledger.rowBytes == rowSum, "\(store.ledger.rowBytes) bytes count for rows, the claims are \(rowSum)")
        try expect(
            store.memoryLedger.reserved == 0, "\(store.memoryLedger.reserved) bytes of memory are still reserved")
        let inMemory = lives.values.reduce(0) { $0 + $1.generation.memory.byteCount }
        try expect(
            store.memoryLedger.used == inMemory,
            "\(store.memoryLedger.used) bytes of memory count as used, \(inMemory) are")
        guard store.directory.access.isWritable, try !store.catalog.settings.isSweepPending() else { return }
        try store.directory.forEachMediaFile { identifier in
            let isUsed = named.contains(identifier) || store.table.withLock { $0.isLive(identifier) }
            try expect(isUsed, "the media file \(identifier) belongs to no version")
            return true
        }
    }

    private func expectOnDisk(_ record: ResourceRecord, _ stored: GenerationRecord, end: Int64) throws {
        // Blocks without bytes, which an unclean end has left, are claimed until the version is opened.
        guard end > 0, !stored.needsTidying else { return }
        let size = try store.directory.bytes.open(stored.identifier.hex, isWritable: false)?.size() ?? 0
        try expect(size >= end, "\(record.url): its file has \(size) bytes, its blocks reach to \(end)")
    }

    private func expect(_ holds: Bool, _ sentence: @autoclosure () -> String) throws {
        guard holds else { throw CacheError(.storage, "the account of space is wrong: \(sentence())") }
    }
}
