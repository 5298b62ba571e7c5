import Foundation
import GRDB
import Spool

/// A cache directory with one resource that the engine stored, and with copies of its records under different keys.
///
/// It depends on these parts of the format in `docs/format.md`: the tables of the catalog, the lock and the file names.
/// Other columns are copied unchanged.
struct Stock: Sendable {
    /// The size of each resource, in bytes.
    static let length: Int64 = 256 << 10

    let folder: TemporaryFolder
    private let url: URL

    init(resources: Int) async throws {
        folder = try TemporaryFolder("stock")
        url = try StoredMedia.url("media")
        let cache = try await open()
        for try await chunk in cache.media(for: url).reader() { blackHole(chunk) }
        await cache.close()
        try multiply(to: resources)
    }

    func open() async throws -> MediaCache {
        let cache = MediaCache(
            directory: folder.url, upstream: MemoryOrigin(length: Self.length), configuration: .unlimited)
        try await cache.open()
        return cache
    }

    /// Returns the time to open the directory and, if `reads` is `true`, to read the first bytes of a resource. The
    /// time is in milliseconds.
    func open(andRead reads: Bool) async throws -> Double {
        let begin = ContinuousClock.now
        let cache = try await open()
        if reads { blackHole(try await cache.media(for: url).reader().next()) }
        let time = (ContinuousClock.now - begin) / .milliseconds(1)
        guard cache.storedByteCount > 0 else { throw BenchmarkError("no resources were found after opening") }
        await cache.close()
        return time
    }

    /// Returns the same time as ``open(andRead:)`` for a directory whose last process was killed.
    func openAfterUncleanEnd(andRead reads: Bool) async throws -> Double {
        try Data("process 1 (killed)\n".utf8).write(to: folder.file("lock"))
        return try await open(andRead: reads)
    }

    /// Copies the rows of the only resource, so that there are `count` resources. Each resource has blocks and an empty
    /// sparse file of its length.
    private func multiply(to count: Int) throws {
        let database = try DatabaseQueue(path: folder.file("catalog.sqlite").path)
        let identifiers = try database.write { db in
            try db.execute(
                sql: """
                    CREATE TEMP TABLE copy AS WITH RECURSIVE number (n) AS (
                        VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < \(count - 1))
                        SELECT n + 1 AS id, lower(hex(randomblob(32))) AS key, randomblob(16) AS identifier FROM number
                    """)
            try copy("resource", ["id": "copy.id", "key": "copy.key", "url": "original.url || copy.id"], db)
            try copy(
                "generation", ["id": "copy.id", "resource": "copy.id", "identifier": "copy.identifier"], db)
            try copy("block", ["generation": "copy.id"], db)
            try db.execute(
                sql: """
                    UPDATE setting SET value = (SELECT sum(storedBytes) FROM generation) WHERE name = 'storedBytes'
                    """)
            return try String.fetchAll(db, sql: "SELECT lower(hex(identifier)) FROM copy")
        }
        try database.close()
        for shard in Set(identifiers.map { $0.prefix(2) }) {
            try FileManager.default.createDirectory(
                at: folder.file("media/\(shard)"), withIntermediateDirectories: true)
        }
        for identifier in identifiers {
            let file = folder.file("media/\(identifier.prefix(2))/\(identifier).media")
            try Data().write(to: file)
            guard truncate(file.path, off_t(Self.length)) == 0 else {
                throw BenchmarkError("“\(file.path)” can't be extended: error \(errno)")
            }
        }
    }

    /// Copies all rows of a table, which belong to the only resource, once for each row of `copy`.
    ///
    /// - Parameter changes: The expressions for the columns that differ in each copy.
    private func copy(_ table: String, _ changes: [String: String], _ db: Database) throws {
        let columns = try db.columns(in: table).map(\.name)
        let values = columns.map { changes[$0] ?? "original.\"\($0)\"" }
        let names = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        try db.execute(
            sql: """
                CREATE TEMP TABLE original AS SELECT * FROM \(table);
                INSERT INTO \(table) (\(names)) SELECT \(values.joined(separator: ", ")) FROM copy, original;
                DROP TABLE original;
                """)
    }
}
