package import ByteRanges
import Foundation
import GRDB

extension Catalog {
    /// The recorded blocks of a generation with these indices, ascending.
    ///
    /// A row that makes no sense is a block that is not there.
    package func blocks(
        of generation: Int64, in indices: Range<Int64> = 0..<Int64.max, limit: Int = .max
    ) throws -> [BlockRecord] {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT idx, length, seal FROM block WHERE generation = ? AND idx >= ? AND idx < ?
                    ORDER BY idx LIMIT ?
                    """)
            let rows = try Row.fetchCursor(
                statement, arguments: [generation, indices.lowerBound, indices.upperBound, limit])
            var blocks: [BlockRecord] = []
            while let row = try rows.next() {
                let seal = try row.withUnsafeData(atIndex: 2) { data in data.flatMap { BlockSeal($0) } }
                guard let seal, let index = Self.integer(row, 0), let wide = Self.integer(row, 1),
                    let length = Int32(exactly: wide)
                else { continue }
                let block = BlockRecord(index: index, length: length, seal: seal)
                if block.isPlausible { blocks.append(block) }
            }
            return blocks
        }
    }

    /// Works out from its recorded blocks what has landed of a generation.
    package func landed(of generation: Int64) throws -> ByteRangeSet {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: "SELECT idx, length FROM block WHERE generation = ? ORDER BY idx")
            let rows = try Row.fetchCursor(statement, arguments: [generation])
            var landed = ByteRangeSet()
            // Neighbours are joined first: one insertion for each run of blocks, not for each block.
            var run: Range<Int64>?
            while let row = try rows.next() {
                guard let index = Self.integer(row, 0), let length = Self.integer(row, 1),
                    (0..<Block.offsetLimit / Block.size).contains(index), (1...Block.size).contains(length)
                else { continue }
                let range = Block.start(of: index)..<Block.start(of: index) + length
                if let open = run, open.upperBound == range.lowerBound {
                    run = open.lowerBound..<range.upperBound
                } else {
                    if let run { landed.insert(run) }
                    run = range
                }
            }
            if let run { landed.insert(run) }
            return landed
        }
    }

    /// The number of recorded blocks, and the number of bytes in the blocks of each generation. Invalid rows are
    /// ignored.
    package func countedBytes() throws -> (blocks: Int, bytes: [Int64: Int64]) {
        try read { db in
            var result = (blocks: 0, bytes: [Int64: Int64]())
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT generation, COUNT(*), SUM(length) FROM block
                    WHERE typeof(length) = 'integer' AND length BETWEEN 1 AND \(Block.size) GROUP BY generation
                    """)
            while let row = try rows.next() {
                result.blocks += try row.decode(atIndex: 1)
                result.bytes[try row.decode(atIndex: 0)] = try row.decode(atIndex: 2)
            }
            return result
        }
    }

    /// The integer in a column; nil if SQLite, which does not insist on a column's type, has something else there.
    private static func integer(_ row: Row, _ column: Int) -> Int64? {
        if case .int64(let value) = (row[column] as DatabaseValue).storage { value } else { nil }
    }

    /// How many blocks are recorded.
    package func blockCount() throws -> Int {
        try readOnce { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM block") ?? 0 }
    }
}
