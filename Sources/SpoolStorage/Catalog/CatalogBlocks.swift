import ByteRanges
import GRDB

/// A value type that reads the catalog's `block` table: the stored blocks, with their lengths and checksums.
struct CatalogBlocks {
    private let catalog: Catalog

    init(_ catalog: Catalog) { self.catalog = catalog }

    /// Returns the records of a version's blocks with the given indices, in ascending order. Invalid rows are skipped.
    func records(
        of generation: Int64, in indices: Range<Int64> = 0..<Int64.max, limit: Int = .max
    ) throws -> [BlockRecord] {
        try catalog.readOnce { db in
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
                guard let seal, let index = row.number(0), let wide = row.number(1), let length = Int32(exactly: wide)
                else { continue }
                let block = BlockRecord(index: index, length: length, seal: seal)
                if block.isPlausible { blocks.append(block) }
            }
            return blocks
        }
    }

    /// Returns the stored ranges of a version, computed from its recorded blocks.
    static func storedRanges(of generation: Int64, _ db: Database) throws -> ByteRangeSet {
        let statement = try db.cachedStatement(
            sql: "SELECT idx, length FROM block WHERE generation = ? ORDER BY idx")
        let rows = try Row.fetchCursor(statement, arguments: [generation])
        var storedRanges = ByteRangeSet()
        // Adjacent blocks are merged first, so that each run of blocks needs only one insertion.
        var run: Range<Int64>?
        while let row = try rows.next() {
            guard let index = row.number(0), let length = row.number(1),
                (0..<Block.offsetLimit / Block.size).contains(index), (1...Block.size).contains(length)
            else { continue }
            let range = Block.start(of: index)..<Block.start(of: index) + length
            if let open = run, open.upperBound == range.lowerBound {
                run = open.lowerBound..<range.upperBound
            } else {
                if let run { storedRanges.insert(run) }
                run = range
            }
        }
        if let run { storedRanges.insert(run) }
        return storedRanges
    }

    /// Returns the number of recorded blocks, and the number of bytes in the blocks of each version. Invalid rows are
    /// ignored.
    func countedBytes() throws -> (blocks: Int, bytes: [Int64: Int64]) {
        try catalog.read { db in
            var result = (blocks: 0, bytes: [Int64: Int64]())
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT generation, COUNT(*), SUM(length) FROM block
                    WHERE typeof(length) = 'integer' AND length BETWEEN 1 AND \(Block.size) GROUP BY generation
                    """)
            while let row = try rows.next() {
                guard let generation = row.number(0) else { continue }
                result.blocks += Int(row.byteCount(1))
                result.bytes[generation] = row.byteCount(2)
            }
            return result
        }
    }

    /// Returns the number of recorded blocks.
    func count() throws -> Int {
        try catalog.readOnce { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM block") ?? 0 }
    }
}
