import ByteRanges
import Crypto
import Foundation
import GRDB

/// A copy of a catalog, in a separate file, that is encrypted with a different key.
///
/// At first, the copy contains the previous catalog without blocks. Each version and its blocks are added after
/// ``Rekeyer`` has copied the media. The copy must not be opened as a catalog before ``finish(_:)``.
final class CatalogCopy: Sendable {
    /// The secret of the copy.
    let secret: CacheSecret
    /// The path of the copy.
    let path: String
    private let previous: Catalog
    private let database: DatabaseQueue
    private let cipher: CatalogCipher
    /// The encrypted secret; `nil` if the copy is unencrypted.
    private let mark: EncryptionMark?
    /// The format value of versions that have not been moved.
    private static let notMoved = 0

    /// Starts a copy next to a catalog, and removes the remains of an interrupted copy.
    ///
    /// - Parameter key: The key of the copy; `nil` for an unencrypted copy.
    /// - Throws: ``CacheError`` with code `invalidArgument` for an invalid key, or `storage`. Also throws the errors
    ///   from the key derivation.
    init(of previous: Catalog, for key: EncryptionKey?, fileSystem: any FileSystem) throws {
        let secret = CacheSecret(format: key == nil ? .plain : .encrypted)
        let folder = (previous.path as NSString).deletingLastPathComponent
        let path = Self.path(in: folder)
        mark = try key.map { try EncryptionMark(secret, for: $0) }
        try Self.remove(from: folder, fileSystem)
        // The file is created first, so that it has the mode 0600.
        _ = try fileSystem.openFile(path, .create)
        try previous.readOnce { db in try db.execute(sql: "VACUUM INTO ?", arguments: [path]) }
        database = try Catalog.translating(path) {
            let database = try DatabaseQueue(path: path, configuration: Catalog.configuration())
            try database.writeWithoutTransaction { db in
                // An interrupted copy is useless, so only the complete copy is synchronized to the device.
                try db.execute(sql: "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
                // Rows without a key, and versions without a resource, were changed by another program and can't be
                // read.
                try db.execute(sql: "DELETE FROM resource WHERE typeof(key) <> 'text'")
                try db.execute(sql: "DELETE FROM generation WHERE resource NOT IN (SELECT id FROM resource)")
                try db.execute(sql: "DELETE FROM block; UPDATE generation SET format = \(Self.notMoved)")
            }
            return database
        }
        (self.secret, self.path, self.previous, cipher) = (secret, path, previous, CatalogCipher(secret))
    }

    /// Removes the copy from the disk.
    func discard(_ fileSystem: any FileSystem) {
        try? database.close()  // The file is removed in any case.
        let folder = (path as NSString).deletingLastPathComponent
        try? Self.remove(from: folder, fileSystem)  // If this fails, the file is removed later.
    }

    /// Removes an incomplete copy from a cache directory.
    static func remove(from folder: String, _ fileSystem: any FileSystem) throws(CacheError) {
        for suffix in ["", "-wal", "-shm", "-journal"] { try fileSystem.remove(path(in: folder) + suffix) }
    }

    private static func path(in folder: String) -> String { folder + "/catalog-rekeyed.sqlite" }

    // MARK: - Versions

    /// Adds blocks to a version.
    func add(_ blocks: [BlockRecord], to generation: Int64) throws {
        try write { db in
            let insert = try db.cachedStatement(
                sql: """
                    INSERT OR REPLACE INTO block (generation, idx, length, seal) VALUES (?, ?, ?, ?)
                    """)
            for block in blocks {
                try insert.execute(arguments: [generation, block.index, block.length, block.seal.data])
            }
        }
    }

    /// Records that the blocks of a version are now in a different file.
    ///
    /// - Parameter storedRanges: The ranges of the version's blocks.
    func move(
        _ version: GenerationRecord, of key: String, to file: GenerationIdentifier, storedRanges: ByteRangeSet
    ) throws {
        let place = CatalogCipher.place(of: file, length: version.length, in: cipher.name(of: key))
        try write { db in
            let update = try db.cachedStatement(
                sql: """
                    UPDATE generation SET identifier = ?, length = ?, version = ?, fields = ?, format = ?, landed = ?,
                        storedBytes = ?, tidyEpoch = (SELECT value FROM setting WHERE name = 'tidyEpoch')
                    WHERE id = ?
                    """)
            try update.execute(arguments: [
                file.data, version.length, try cipher.seal(version.version, .version, of: place),
                try cipher.seal(version.fields, .fields, of: place), secret.format.rawValue,
                Data(storedRanges.encoded()),
                storedRanges.byteCount, version.id,
            ])
        }
    }

    /// Removes an unreadable resource and its version.
    func remove(_ key: String) throws {
        try write { db in
            try db.execute(sql: "DELETE FROM resource WHERE key = ?", arguments: [previous.cipher.name(of: key)])
        }
    }

    // MARK: - Other values

    /// Encrypts all other values with the secret of the copy, and writes the copy to the device.
    func finish(_ fileSystem: any FileSystem) throws {
        let (resources, downloads) = (try sealedResources(), try sealedDownloads())
        try write { db in
            // Versions that were not moved can't be read.
            try db.execute(sql: "DELETE FROM generation WHERE format = \(Self.notMoved)")
            try replaceDownloads(downloads, db)
            try renameVariants(db)
            let update = try db.cachedStatement(
                sql: """
                    UPDATE resource SET key = ?, url = ?, contentType = ?, createdAt = ?, lastUsedAt = ?,
                        createdSealed = ?, usedSealed = ?, history = ?
                    WHERE id = ?
                    """)
            for values in resources { try update.execute(arguments: values) }
            try db.set("encryption", to: mark?.data.databaseValue)
            let bytes = secret.key.withUnsafeBytes { Data($0) }
            try db.set("sealKey", to: mark == nil ? bytes.databaseValue : nil)
            // The copy does not contain records of the previous media files.
            try db.set("sweepPending", to: true.databaseValue)
        }
        try Catalog.translating(path) {
            // This removes previous values from free pages.
            try database.writeWithoutTransaction { db in try db.execute(sql: "VACUUM") }
            try database.close()
        }
        try fileSystem.openFile(path, .readWrite).synchronize()
    }

    /// Returns the values of all resources, in their order of eviction, which the copy preserves.
    private func sealedResources() throws -> [StatementArguments] {
        try previous.read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT key, url, contentType, id, createdAt, lastUsedAt, createdSealed, usedSealed, history FROM resource
                    ORDER BY lastUsedAt, id DESC
                    """)
            var values: [StatementArguments] = []
            var last: Int64 = 0
            while let row = try rows.next() {
                do {
                    values.append(try sealedResource(row, after: &last))
                } catch is CatalogCipher.UnreadableValue {
                    // An unreadable resource has already been removed with its version.
                }
            }
            return values
        }
    }

    private func sealedResource(_ row: Row, after last: inout Int64) throws -> StatementArguments {
        guard let name = try row.text(0), let id = try row.integer(3) else { throw CatalogCipher.UnreadableValue() }
        let old = previous.cipher
        let newName = cipher.name(of: old.key(of: name))
        let url = try old.open(row, 1, .url, of: name)
        let type = try old.open(row, 2, .contentType, of: name)
        let created = try old.open(row, 6, number: 4, .createdAt, of: name)
        let used = try old.open(row, 7, number: 5, .lastUsedAt, of: name)
        last = max(cipher.isPlain ? used.microseconds : 0, last.addingReportingOverflow(4).partialValue)
        return [
            newName, try cipher.seal(url, .url, of: newName), try cipher.seal(type, .contentType, of: newName),
            cipher.isPlain ? created.microseconds : 0, last, try cipher.seal(created, .createdAt, of: newName),
            try cipher.seal(used, .lastUsedAt, of: newName),
            try cipher.seal(old.history(row, 8, of: name).text, .history, of: newName), id,
        ]
    }

    /// Returns the values of all readable members of sets.
    private func sealedDownloads() throws -> [StatementArguments] {
        try previous.read { db in
            let rows = try Row.fetchCursor(
                db, sql: "SELECT collection, key, url, source, id FROM download ORDER BY id")
            var values: [StatementArguments] = []
            while let row = try rows.next() {
                guard let download = previous.downloads.record(row), let id = row.number(4) else { continue }
                let name = cipher.name(of: download.key)
                values.append([
                    try cipher.sealForSearch(download.set, .collection), name,
                    try cipher.seal(download.url, .url, of: name), try cipher.seal(download.source, .source, of: name),
                    id,
                ])
            }
            return values
        }
    }

    private func replaceDownloads(_ downloads: [StatementArguments], _ db: Database) throws {
        try db.execute(sql: "DELETE FROM download")
        let insert = try db.cachedStatement(
            sql: "INSERT INTO download (collection, key, url, source, id) VALUES (?, ?, ?, ?, ?)")
        for values in downloads { try insert.execute(arguments: values) }
        for name in try String.fetchAll(db, sql: "SELECT key FROM handPin") {
            try db.execute(
                sql: "UPDATE handPin SET key = ? WHERE key = ?",
                arguments: [cipher.name(of: previous.cipher.key(of: name)), name])
        }
    }

    private func renameVariants(_ db: Database) throws {
        for name in try String.fetchAll(db, sql: "SELECT DISTINCT base FROM variant WHERE typeof(base) = 'text'") {
            try db.execute(
                sql: "UPDATE variant SET base = ? WHERE base = ?",
                arguments: [cipher.name(of: previous.cipher.key(of: name)), name])
        }
    }

    private func write<R>(_ body: (Database) throws -> R) throws -> R {
        try Catalog.translating(path) { try database.write(body) }
    }
}

extension Catalog {
    /// Returns the size of the catalog in bytes.
    func byteCount() throws -> Int64 {
        try readOnce { db in
            try Int64.fetchOne(
                db, sql: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()") ?? 0
        }
    }

    /// Returns the number of stored versions.
    func generationCount() throws -> Int {
        try readOnce { db in
            try Int.fetchOne(
                db, sql: "SELECT COUNT(*) FROM generation JOIN resource ON resource.id = generation.resource") ?? 0
        }
    }

    /// Merges the log of a closed catalog into its file, and removes the log.
    ///
    /// The file can then be replaced, because no reader can start a new log. SQLite does not allow this while any other
    /// connection has the catalog open.
    ///
    /// - Throws: ``CacheError`` with code `directoryInUse`, or `storage`.
    static func endLog(of path: String) throws {
        do {
            try translating(path) {
                let database = try DatabaseQueue(path: path, configuration: configuration())
                try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = DELETE") }
                try database.close()
            }
        } catch let error as CacheError where (error.underlying as? DatabaseError)?.resultCode == .SQLITE_BUSY {
            throw CacheError(
                .directoryInUse, "“\(path)” is being read by another process", underlying: error.underlying)
        }
    }
}
