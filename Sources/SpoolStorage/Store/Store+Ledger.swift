import ByteRanges
import Foundation
import Synchronization

extension Store {
    /// Compares what is counted: the claims of all generations, the catalog's numbers, and what the blocks on disk hold;
    /// and that no file is there which nobody names. For a cache at rest, in tests and simulations.
    ///
    /// Damage on disk that nobody has read counts as a difference: repair first.
    ///
    /// - Throws: ``CacheError`` whose message says what does not add up.
    package func checkLedger() async throws {
        try checkOpen()
        if directory.access.isWritable { await waitUntilIdle() }
        try await executor.run(in: .maintenance) { try self.compare() }
    }

    private func compare() throws {
        let (counted, records) = try (catalog.countedBytes(), catalog.resources())
        let lives = table.withLock { $0.lives }
        var sum: Int64 = 0
        var rowSum: Int64 = 0
        var named: Set<GenerationIdentifier> = []
        for record in records {
            guard let stored = record.generation else { continue }
            named.insert(stored.identifier)
            let blocks = counted.bytes[stored.id] ?? 0
            let landed = try stored.landed ?? catalog.landed(of: stored.id)
            try expect(
                blocks == stored.storedBytes && blocks == landed.byteCount,
                "\(record.url): its blocks hold \(blocks) bytes, its record says \(stored.storedBytes) and lists \(landed.byteCount)"
            )
            let life = lives[stored.identifier]
            if let disk = life?.generation.disk {
                try expect(
                    disk.landedByteCount - disk.memoryByteCount == blocks || life?.phase == .retired,
                    "\(record.url): \(disk.landedByteCount) bytes have landed, \(blocks) are recorded")
            } else {
                sum += stored.storedBytes
            }
            if let life {
                try expect(
                    life.generation.rowClaim == stored.rowBytes || life.phase == .retired,
                    "\(record.url): its row claims \(life.generation.rowClaim) bytes, its record says \(stored.rowBytes)"
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
            try expect(isListed, "\(life.generation.url): what the catalog names and what is thought so differ")
            try expect(
                life.isRecorded || life.leases > 0, "\(life.generation.url): nobody has it open, and nothing names it")
        }
        sum += unremoved.withLock { $0.byteCount }
        let total = try catalog.storedBytes()
        let recorded = records.reduce(0) { $0 + ($1.generation?.storedBytes ?? 0) }
        try expect(total == recorded, "the catalog's sum is \(total), its records hold \(recorded)")
        try expect(ledger.reserved == 0, "\(ledger.reserved) bytes are still reserved")
        try expect(ledger.used == sum, "\(ledger.used) bytes count as used, the claims are \(sum)")
        let (rowTotal, rowsRecorded) = (
            try catalog.rowBytes(), records.reduce(0) { $0 + ($1.generation?.rowBytes ?? 0) }
        )
        try expect(rowTotal == rowsRecorded, "the catalog's sum of rows is \(rowTotal), they say \(rowsRecorded)")
        try expect(ledger.rowBytes == rowSum, "\(ledger.rowBytes) bytes count for rows, the claims are \(rowSum)")
        try expect(memoryLedger.reserved == 0, "\(memoryLedger.reserved) bytes of memory are still reserved")
        let inMemory = lives.values.reduce(0) { $0 + $1.generation.memoryFile.byteCount }
        try expect(memoryLedger.used == inMemory, "\(memoryLedger.used) bytes of memory count as used, \(inMemory) are")
        guard directory.access.isWritable, try !catalog.isSweepPending() else { return }
        try directory.forEachMediaFile { identifier in
            let isSomebodys = named.contains(identifier) || table.withLock { $0.isLive(identifier) }
            try expect(isSomebodys, "the media file \(identifier) is nobody's")
            return true
        }
    }

    private func expectOnDisk(_ record: ResourceRecord, _ stored: GenerationRecord, end: Int64) throws {
        // What an unclean end left without its bytes is claimed until it is opened.
        guard end > 0, !stored.needsTidying else { return }
        let size = try directory.bytes.open(stored.identifier.hex, isWritable: false)?.size() ?? 0
        try expect(size >= end, "\(record.url): its file has \(size) bytes, its blocks reach to \(end)")
    }

    private func expect(_ holds: Bool, _ sentence: @autoclosure () -> String) throws {
        guard holds else { throw CacheError(.storage, "the ledger is wrong: \(sentence())") }
    }
}
