import ByteRanges
import Foundation
import GRDB
import Synchronization

/// A value type that reads and corrects the byte counts of individual versions. If another program has changed a count,
/// the count is computed again from the stored blocks and texts.
struct CatalogCounts {
    private let catalog: Catalog

    init(_ catalog: Catalog) { self.catalog = catalog }

    /// The number of bytes per row that an earlier rule did not count. The sums are consistent with rows counted by
    /// that rule.
    private static let earlierDifference = GenerationDescription.leastRowBytes - GenerationDescription.pageBytes

    /// The usual maximum size of a row, in bytes. Larger rows are checked.
    private static let usualRowBytes: Int64 = 1 << 20

    /// Corrects the counts of a version that is not open. The caller must have the turn of its key. A row whose byte
    /// count follows an earlier rule is not changed.
    ///
    /// - Returns: The number of bytes by which the space accounting is wrong; `nil` if the counts are correct.
    func correct(_ stored: inout GenerationRecord, of record: ResourceRecord) throws -> CountCorrection? {
        guard catalog.isWritable, !stored.isCounted || isRowChanged(stored, of: record) else { return nil }
        var corrected = stored
        let correction = try catalog.write { db in try correct(&corrected, of: record, db) }
        stored = corrected
        return correction
    }

    /// Corrects the counts of a version in a transaction.
    func correct(_ stored: inout GenerationRecord, of record: ResourceRecord, _ db: Database) throws -> CountCorrection
    {
        let rowBytes = self.rowBytes(of: record) ?? stored.rowBytes
        guard !stored.isCounted || rowBytes != stored.rowBytes else { return CountCorrection() }
        let mustCount = !stored.isCounted || isRowChanged(stored, of: record)
        let before = try sums(db)
        // A trigger changes the sums by the difference.
        try db.execute(
            sql: "UPDATE generation SET storedBytes = ?, landed = ?, rowBytes = ? WHERE id = ?",
            arguments: [stored.storedBytes, Data(stored.storedRanges.encoded()), rowBytes, stored.id])
        if mustCount {
            // The sums do not necessarily include the wrong counts, so the sums are computed again.
            for column in ["storedBytes", "rowBytes"] {
                try db.set(column, to: CatalogSettings.count(column, db).databaseValue)
            }
        }
        let after = try sums(db)
        (stored.countedBytes, stored.rowBytes, stored.hasRanges) = (stored.storedBytes, rowBytes, true)
        return CountCorrection(
            storedBytes: after.storedBytes - before.storedBytes, rowBytes: after.rowBytes - before.rowBytes)
    }

    /// Corrects the counts of rows that exceed the capacity on their own, or whose own size is too large for any
    /// response. Such a row would cause the eviction of all other media.
    func correctImplausible(_ capacity: Int64, _ db: Database) throws {
        let rows = try Row.fetchAll(
            db, sql: Catalog.resourceQuery + " WHERE generation.storedBytes > ? OR generation.rowBytes > ?",
            arguments: [capacity, Self.usualRowBytes])
        for row in rows {
            guard let record = try catalog.resource(row, db), var stored = record.generation else { continue }
            _ = try correct(&stored, of: record, db)
        }
    }

    private func sums(_ db: Database) throws -> CountCorrection {
        CountCorrection(
            storedBytes: Catalog.byteCount(try db.number("storedBytes")),
            rowBytes: Catalog.byteCount(try db.number("rowBytes")))
    }

    /// Returns whether another program has changed the row or its byte count.
    private func isRowChanged(_ stored: GenerationRecord, of record: ResourceRecord) -> Bool {
        guard let rowBytes = self.rowBytes(of: record) else { return false }
        return ![0, Self.earlierDifference].contains(rowBytes - stored.rowBytes)
    }

    /// Returns the number of bytes that the row of a stored version uses; `nil` if the volume's block size is unknown.
    func rowBytes(of record: ResourceRecord) -> Int64? {
        let blockSize = catalog.volumeBlockSize.load(ordering: .relaxed)
        guard let stored = record.generation, blockSize > 0 else { return nil }
        let description = GenerationDescription(
            length: stored.length, contentType: record.contentType, version: stored.version, fields: stored.fields)
        return description.rowBytes(url: record.url)
            + GenerationDescription.countedPadding(stored.storedRanges.padding(to: blockSize))
    }
}
