import Foundation
import GRDBSQLite
import SpoolTesting

/// Changes to one cell of a catalog that no process has open, as a faulty disk or another program might make them.
enum CatalogDamage {
    /// Values that Spool never writes, because they have the wrong type or exceed the size of any disk.
    private static let values = [
        "NULL", "-1", "-9223372036854775808", "9223372036854775807", "4611686018427387904", "1e300", "'x'", "x'00ff'",
    ]

    /// Changes a cell of the catalog in `directory`, if the catalog exists.
    ///
    /// - Returns: The number of stored bytes that the catalog no longer counts. The bytes are counted again when their
    ///   row is read.
    static func change(_ directory: String, _ random: inout SplitMix, _ log: SimulationLog) -> Int64 {
        let path = "\(directory)/catalog.sqlite"
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard FileManager.default.fileExists(atPath: path),
            sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK
        else { return 0 }
        // The table of migrations is excluded, because a catalog with a changed version is rejected as one from a newer
        // program.
        let tables = rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'grdb_migrations' ORDER BY name", database)
        let filled = tables.filter { rows("SELECT 1 FROM \"\($0)\" LIMIT 1", database).isEmpty == false }
        guard !filled.isEmpty else { return 0 }
        let table = random.pick(filled)
        let columns = rows("SELECT name FROM pragma_table_info('\(table)') ORDER BY cid", database)
        // The schema can't be read while a connection from the run is still being closed.
        guard !columns.isEmpty else { return 0 }
        let column = random.pick(columns)
        let value = random.pick(values)
        let number = random.below(8)
        // If the table has no row identifiers or a constraint rejects the value, nothing is changed.
        let sql = """
            UPDATE "\(table)" SET "\(column)" = \(value) WHERE rowid =
            (SELECT rowid FROM "\(table)" ORDER BY rowid LIMIT 1 OFFSET \(number) % (SELECT count(*) FROM "\(table)"))
            """
        let before = countedBytes(database)
        let code = sqlite3_exec(database, sql, nil, nil, nil)
        log.add("disk", "the catalog's \(table).\(column) becomes \(value): \(code)")
        return max(0, before - countedBytes(database))
    }

    /// Returns the catalog's sum of all stored bytes. A trigger updates the sum when the counts in the rows change.
    private static func countedBytes(_ database: OpaquePointer?) -> Int64 {
        // A damaged catalog may contain any sum, even a negative one.
        max(0, rows("SELECT value FROM setting WHERE name = 'storedBytes'", database).first.flatMap { Int64($0) } ?? 0)
    }

    /// Returns the first column of all rows.
    private static func rows(_ sql: String, _ database: OpaquePointer?) -> [String] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK else { return [] }
        var result: [String] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            if let text = sqlite3_column_text(statement, 0) { result.append(String(cString: text)) }
        }
        return result
    }
}
