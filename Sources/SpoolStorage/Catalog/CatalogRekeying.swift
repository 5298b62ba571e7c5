import ByteRanges
import Crypto
import Foundation
import GRDB

/// The rewriting of a catalog for another key. A value over a catalog.
///
/// The catalog is rewritten at once. ``Rekeyer`` encrypts the media files one after the other.
struct CatalogRekeying {
    /// The purpose of the key that encrypts the previous secret.
    static let previousPurpose = "spool.former"

    private let catalog: Catalog
    private var cipher: CatalogCipher { catalog.cipher }

    init(_ catalog: Catalog) { self.catalog = catalog }

    /// Gives the cache another secret, in one transaction. With a key, the secret is stored in an envelope for it. The catalog
    /// must be closed afterwards.
    ///
    /// - Parameter key: The key; `nil` if the cache is unencrypted from now on.
    /// - Throws: ``CacheError`` with code `invalidArgument` if the cache is and stays unencrypted, or if the previous secret is
    ///   still in use.
    func start(to key: EncryptionKey?) throws {
        let path = catalog.path
        let secrets = try catalog.secrets()
        guard secrets.former == nil else {
            throw CacheError(.invalidArgument, "“\(path)” is still being given the key that it has now")
        }
        let previous = secrets.current
        guard key != nil || previous.format.isEncrypted else {
            throw CacheError(.invalidArgument, "“\(path)” is plain already")
        }
        let next = CacheSecret(number: try nextSecretNumber(after: previous), format: key == nil ? .plain : .encrypted)
        let mark = try key.map { try EncryptionMark(next, for: $0).data }
        let envelope = try previous.sealed(with: next.derive(Self.previousPurpose))
        try catalog.write { db in
            let new = CatalogCipher(next)
            try removeStrays(db)
            try rewriteGenerations(to: new, db)
            try rewriteDownloads(to: new, db)
            try rewriteResources(to: new, db)
            try db.set("encryption", to: mark?.databaseValue)
            let bytes = next.key.withUnsafeBytes { Data($0) }
            try db.set("sealKey", to: mark == nil ? bytes.databaseValue : nil)
            try db.set("secretNumber", to: next.number.databaseValue)
            try db.set("formerSecret", to: envelope.databaseValue)
            try db.set("scrubPending", to: true.databaseValue)
        }
    }

    /// A number that no version uses, whatever another program has written into the catalog.
    private func nextSecretNumber(after previous: CacheSecret) throws -> Int64 {
        let largest = try catalog.read { db in try Int64.fetchOne(db, sql: "SELECT MAX(secret) FROM generation") } ?? 0
        let last = max(previous.number, largest)
        guard previous.number >= 0, last < Int64(UInt32.max) else {
            throw CacheError(.catalogDamaged, "“\(catalog.path)” is damaged: the number of its key can't be \(last)")
        }
        return last + 1
    }

    /// Removes versions without a resource, which another program has left. They can't be read.
    private func removeStrays(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM generation WHERE resource NOT IN (SELECT id FROM resource)")
        if db.changesCount > 0 { try db.set("sweepPending", to: true.databaseValue) }
    }

    /// Removes overwritten and deleted values from the catalog's files.
    func scrubIfPending() throws {
        guard try catalog.read({ db in try db.setting("scrubPending") ?? false }) else { return }
        try catalog.writeAlone { db in
            try db.execute(sql: "VACUUM")
            // Pages that other connections are reading stay. Then the next opening removes them.
            guard try db.checkpoint(.truncate).walFrameCount <= 0 else { return }
            try db.set("scrubPending", to: nil)
        }
    }

    /// Whether versions may still use the previous secret.
    func isUnfinished() throws -> Bool {
        try catalog.read { db in try db.setting("formerSecret") as Data? } != nil
    }

    /// A version that uses another secret than the current one.
    struct Outdated {
        var id: Int64
        var key: String
        var bytes: Int64
    }

    /// The next versions after the one with number `id` that use another secret than the current one.
    func outdated(after id: Int64, limit: Int) throws -> [Outdated] {
        try catalog.readOnce { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT generation.id, resource.key, storedBytes FROM generation JOIN resource ON resource.id = generation.resource
                    WHERE secret <> ? AND generation.id > ? ORDER BY generation.id LIMIT ?
                    """,
                arguments: [catalog.writing.secret, id, limit])
            var found: [Outdated] = []
            while let row = try rows.next() {
                found.append(
                    Outdated(
                        id: try row.decode(atIndex: 0), key: cipher.key(of: try row.decode(atIndex: 1)),
                        bytes: Catalog.byteCount(try row.decode(atIndex: 2))))
            }
            return found
        }
    }

    /// The number of versions, and of their bytes, that use another secret.
    func outdatedCount() throws -> (generations: Int, bytes: Int64) {
        try catalog.readOnce { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT COUNT(*), TOTAL(storedBytes) FROM generation
                        JOIN resource ON resource.id = generation.resource
                    WHERE secret <> ?
                    """,
                arguments: [catalog.writing.secret])
            let bytes: Double = try row?.decode(atIndex: 1) ?? 0
            return (try row?.decode(atIndex: 0) ?? 0, Int64(exactly: bytes.rounded()) ?? .max)
        }
    }

    /// Removes the previous secret, which no version uses any more.
    func finish() throws { try catalog.write { db in try db.set("formerSecret", to: nil) } }

    // MARK: - Rows

    private func rewriteGenerations(to new: CatalogCipher, _ db: Database) throws {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT resource.key, generation.id, identifier, length, version, fields
                FROM generation JOIN resource ON resource.id = generation.resource
                """)
        var changes: [StatementArguments] = []
        while let row = try rows.next() {
            let (name, id, data): (String, Int64, Data) = (
                try row.decode(atIndex: 0), try row.decode(atIndex: 1), try row.decode(atIndex: 2)
            )
            let length: Int64? = try row.decode(atIndex: 3)
            guard let identifier = GenerationIdentifier(data) else { continue }
            let newName = new.name(of: cipher.key(of: name))
            let place = CatalogCipher.place(of: identifier, length: length, in: name)
            let newPlace = CatalogCipher.place(of: identifier, length: length, in: newName)
            guard let version = try? cipher.open(row, 4, .version, of: place),  // It stays unreadable with the new key.
                let fields = try? cipher.open(row, 5, .fields, of: place)  // As does this value.
            else { continue }
            changes.append([
                try new.seal(version, .version, of: newPlace), try new.seal(fields, .fields, of: newPlace), id,
            ])
        }
        let update = try db.cachedStatement(sql: "UPDATE generation SET version = ?, fields = ? WHERE id = ?")
        for change in changes { try update.execute(arguments: change) }
    }

    private func rewriteDownloads(to new: CatalogCipher, _ db: Database) throws {
        let rows = try Row.fetchCursor(db, sql: "SELECT collection, key, url, source, id FROM download")
        var changes: [StatementArguments] = []
        var lost: [Int64] = []
        while let row = try rows.next() {
            let id: Int64 = try row.decode(atIndex: 4)
            guard let download = try catalog.downloads.record(row) else {
                lost.append(id)
                continue
            }
            let name = new.name(of: download.key)
            changes.append([
                try new.sealForSearch(download.set, .collection), name, try new.seal(download.url, .url, of: name),
                try new.seal(download.source, .source, of: name), id,
            ])
        }
        for id in lost { try db.execute(sql: "DELETE FROM download WHERE id = ?", arguments: [id]) }
        let update = try db.cachedStatement(
            sql: "UPDATE download SET collection = ?, key = ?, url = ?, source = ? WHERE id = ?")
        for change in changes { try update.execute(arguments: change) }
        for name in try String.fetchAll(db, sql: "SELECT key FROM handPin") {
            try db.execute(
                sql: "UPDATE handPin SET key = ? WHERE key = ?", arguments: [new.name(of: cipher.key(of: name)), name])
        }
    }

    private func rewriteResources(to new: CatalogCipher, _ db: Database) throws {
        // In the order of eviction, which does not change.
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT key, url, contentType, id, createdAt, lastUsedAt, createdSealed, usedSealed, history FROM resource
                ORDER BY lastUsedAt, id DESC
                """)
        var changes: [StatementArguments] = []
        var lost: [Int64] = []
        var last: Int64 = 0
        while let row = try rows.next() {
            let (name, id): (String, Int64) = (try row.decode(atIndex: 0), try row.decode(atIndex: 3))
            let newName = new.name(of: cipher.key(of: name))
            do {
                let url = try cipher.open(row, 1, .url, of: name)
                let type = try cipher.open(row, 2, .contentType, of: name)
                let created = try cipher.open(row, 6, number: 4, .createdAt, of: name)
                let used = try cipher.open(row, 7, number: 5, .lastUsedAt, of: name)
                last = max(new.isPlain ? used.microseconds : 0, last.addingReportingOverflow(4).partialValue)
                changes.append([
                    newName, try new.seal(url, .url, of: newName), try new.seal(type, .contentType, of: newName),
                    new.isPlain ? created.microseconds : 0, last, try new.seal(created, .createdAt, of: newName),
                    try new.seal(used, .lastUsedAt, of: newName),
                    try new.seal(cipher.history(row, 8, of: name).text, .history, of: newName), id,
                ])
            } catch is CatalogCipher.UnreadableValue {
                lost.append(id)
            }
        }
        for id in lost { try db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [id]) }
        // Their files have no record.
        if !lost.isEmpty { try db.set("sweepPending", to: true.databaseValue) }
        let update = try db.cachedStatement(
            sql: """
                UPDATE resource SET key = ?, url = ?, contentType = ?, createdAt = ?, lastUsedAt = ?,
                    createdSealed = ?, usedSealed = ?, history = ?
                WHERE id = ?
                """)
        for change in changes { try update.execute(arguments: change) }
    }
}
