import Foundation
import GRDB

/// Faults in a cache's catalog: a lock that another program holds, rejected records, and a damaged page.
final class CatalogFault: Sendable {
    private let database: DatabaseQueue

    init(_ directory: String) throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        configuration.busyMode = .timeout(60)
        database = try DatabaseQueue(path: directory + "/catalog.sqlite", configuration: configuration)
    }

    /// Holds the write lock until ``unlock()``. In the meantime, the catalog is busy for other writers.
    func lock() async throws {
        try await database.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    }

    func unlock() async throws {
        try await database.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    }

    /// Makes every read of a resource's record fail.
    func hideResources() async throws {
        try await database.write { try $0.execute(sql: "ALTER TABLE resource RENAME TO hidden") }
    }

    func showResources() async throws {
        try await database.write { try $0.execute(sql: "ALTER TABLE hidden RENAME TO resource") }
    }

    /// Rejects every new record of a block, as a full disk does.
    func refuseBlocks() async throws {
        try await database.write { db in
            try db.execute(
                sql: "CREATE TRIGGER refusal BEFORE INSERT ON block BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        }
    }

    func acceptBlocks() async throws {
        try await database.write { try $0.execute(sql: "DROP TRIGGER refusal") }
    }

    /// Overwrites the first page of the table of checksums, to simulate a damaged disk. The catalog must be closed.
    func overwriteSeals() throws { try overwrite("block") }

    /// Overwrites the first page of a table or an index, to simulate a damaged disk. The catalog must be closed.
    func overwrite(_ name: String) throws {
        let (page, size, path) = try database.read { db in
            let page = try Int.fetchOne(
                db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name])
            return (page ?? 0, try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0, database.path)
        }
        try database.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64((page - 1) * size))
        try file.write(contentsOf: Data(repeating: 0x5a, count: size))
        try file.close()
    }
}
