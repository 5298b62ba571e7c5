package import Foundation
import GRDB

extension Catalog {
    /// The recorded blocks of a generation, by ascending index.
    package func blocks(of generation: Int64) throws -> [BlockRecord] {
        try read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT idx, length, seal FROM block WHERE generation = ? ORDER BY idx")
            let rows = try Row.fetchCursor(statement, arguments: [generation])
            var blocks: [BlockRecord] = []
            while let row = try rows.next() {
                let seal = try row.withUnsafeData(atIndex: 2) { data in data.flatMap { BlockSeal($0) } }
                // A row that makes no sense is a block that is not there.
                guard let seal, let length = Int32(exactly: row[1] as Int64) else { continue }
                let block = BlockRecord(index: row[0], length: length, seal: seal)
                if block.isPlausible { blocks.append(block) }
            }
            return blocks
        }
    }

    /// Records sealed blocks and uses, in one transaction.
    ///
    /// Of one block the later record replaces the former. Generations that are gone are passed over; uses never move a
    /// resource's date back.
    ///
    /// - Parameters:
    ///   - batch: Blocks by generation.
    ///   - used: Resources by key, with the time of their use.
    package func record(
        _ batch: [(generation: Int64, blocks: [BlockRecord])], used: [(key: String, at: Date)] = []
    ) throws {
        guard !batch.isEmpty || !used.isEmpty else { return }
        try write { db in
            for (generation, blocks) in batch where !blocks.isEmpty { try Self.record(blocks, of: generation, db) }
            guard !used.isEmpty else { return }
            let use = try db.cachedStatement(
                sql: "UPDATE resource SET lastUsedAt = ?1 WHERE key = ?2 AND lastUsedAt < ?1")
            for (key, date) in used { try use.execute(arguments: [date.microseconds, key]) }
        }
    }

    /// Notes that a resource is used now.
    package func touch(key: String, at date: Date) throws { try record([], used: [(key, date)]) }

    private static func record(_ blocks: [BlockRecord], of generation: Int64, _ db: Database) throws {
        let exists = try db.cachedStatement(sql: "SELECT 1 FROM generation WHERE id = ?")
        guard try Int.fetchOne(exists, arguments: [generation]) != nil else { return }
        let insert = try db.cachedStatement(
            sql: "INSERT INTO block (generation, idx, length, seal) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING")
        let former = try db.cachedStatement(sql: "SELECT length FROM block WHERE generation = ? AND idx = ?")
        let replace = try db.cachedStatement(
            sql: "UPDATE block SET length = ?3, seal = ?4 WHERE generation = ?1 AND idx = ?2")
        var change: Int64 = 0
        for block in blocks {
            let row: StatementArguments = [generation, block.index, block.length, block.seal.data]
            try insert.execute(arguments: row)
            if db.changesCount == 0 {
                change -= try Int64.fetchOne(former, arguments: [generation, block.index]) ?? 0
                try replace.execute(arguments: row)
            }
            change += Int64(block.length)
        }
        try add(change, to: generation, db)
    }

    /// Forgets blocks of a generation that are holes now.
    package func dropBlocks(_ generation: Int64, indices: some Collection<Int64>) throws {
        guard !indices.isEmpty else { return }
        try write { db in
            let delete = try db.cachedStatement(
                sql: "DELETE FROM block WHERE generation = ? AND idx = ? RETURNING length")
            var change: Int64 = 0
            for index in indices { change -= try Int64.fetchOne(delete, arguments: [generation, index]) ?? 0 }
            try Self.add(change, to: generation, db)
        }
    }

    private static func add(_ change: Int64, to generation: Int64, _ db: Database) throws {
        guard change != 0 else { return }
        try db.execute(
            sql: "UPDATE generation SET storedBytes = storedBytes + ? WHERE id = ?", arguments: [change, generation])
    }
}
