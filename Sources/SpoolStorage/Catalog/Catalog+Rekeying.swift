import ByteRanges
import Crypto
import Foundation
import GRDB

/// Giving a cache another key: what says what is kept is written anew at once, what is kept afterwards, piece by piece.
extension Catalog {
    /// Gives the cache another secret, and with a key puts that into an envelope for it; all or nothing. This catalog is to
    /// be closed afterwards.
    ///
    /// - Parameter key: Nil: the cache is plain from now on.
    /// - Throws: ``CacheError``: `invalidArgument` if the cache is plain and stays so, or a former secret is still in use.
    func beginRekeying(to key: EncryptionKey?) throws {
        let secrets = try secrets()
        guard secrets.former == nil else {
            throw CacheError(.invalidArgument, "“\(path)” is still being given the key that it has now")
        }
        let former = secrets.current
        guard key != nil || former.format.isEncrypted else {
            throw CacheError(.invalidArgument, "“\(path)” is plain already")
        }
        let next = CacheSecret(number: try nextSecretNumber(after: former), format: key == nil ? .plain : .encrypted)
        let mark = try key.map { try EncryptionMark(next, for: $0).data }
        let envelope = try former.sealed(with: next.derive(Self.formerPurpose))
        try write { db in
            let new = CatalogCipher(next)
            try removeStrays(db)
            try rewriteGenerations(to: new, db)
            try rewriteDownloads(to: new, db)
            try rewriteResources(to: new, db)
            try Self.set("encryption", to: mark?.databaseValue, db)
            let bytes = next.key.withUnsafeBytes { Data($0) }
            try Self.set("sealKey", to: mark == nil ? bytes.databaseValue : nil, db)
            try Self.set("secretNumber", to: next.number.databaseValue, db)
            try Self.set("formerSecret", to: envelope.databaseValue, db)
            try Self.set("scrubPending", to: true.databaseValue, db)
        }
    }

    /// One that nothing here is sealed with, whatever somebody has written into the catalog.
    private func nextSecretNumber(after former: CacheSecret) throws -> Int64 {
        let largest = try read { db in try Int64.fetchOne(db, sql: "SELECT MAX(secret) FROM generation") } ?? 0
        let last = max(former.number, largest)
        guard former.number >= 0, last < Int64(UInt32.max) else {
            throw CacheError(.catalogDamaged, "“\(path)” is damaged: the number of its key can't be \(last)")
        }
        return last + 1
    }

    /// Forgets generations whose resource is gone, as somebody must have changed the catalog: nobody could read them.
    private func removeStrays(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM generation WHERE resource NOT IN (SELECT id FROM resource)")
        if db.changesCount > 0 { try Self.set("sweepPending", to: true.databaseValue, db) }
    }

    /// Leaves nothing of what has been overwritten or deleted in the catalog's files.
    func scrubIfPending() throws {
        guard try read({ db in try Self.setting("scrubPending", db) ?? false }) else { return }
        try writeAlone { db in
            try db.execute(sql: "VACUUM")
            // What other connections read just now stays until they have done so; then the next opening does it.
            guard try db.checkpoint(.truncate).walFrameCount <= 0 else { return }
            try Self.set("scrubPending", to: nil, db)
        }
    }

    /// Whether something may still be sealed with a former secret.
    func isRekeying() throws -> Bool {
        try read { db in try Self.setting("formerSecret", db) as Data? } != nil
    }

    /// A generation that was sealed with another secret than the present one.
    struct Outdated {
        var id: Int64
        var key: String
        var bytes: Int64
    }

    /// Generations that are still sealed with another secret than the present one, after the one numbered `id`.
    func outdated(after id: Int64, limit: Int) throws -> [Outdated] {
        try readOnce { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT generation.id, resource.key, storedBytes FROM generation JOIN resource ON resource.id = generation.resource
                    WHERE secret <> ? AND generation.id > ? ORDER BY generation.id LIMIT ?
                    """,
                arguments: [writing.secret, id, limit])
            var found: [Outdated] = []
            while let row = try rows.next() {
                found.append(
                    Outdated(
                        id: try row.decode(atIndex: 0), key: cipher.key(of: try row.decode(atIndex: 1)),
                        bytes: Self.byteCount(try row.decode(atIndex: 2))))
            }
            return found
        }
    }

    /// How many generations, and bytes of them, are still sealed with another secret.
    func outdatedCount() throws -> (generations: Int, bytes: Int64) {
        try readOnce { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT COUNT(*), TOTAL(storedBytes) FROM generation
                        JOIN resource ON resource.id = generation.resource
                    WHERE secret <> ?
                    """,
                arguments: [writing.secret])
            let bytes: Double = try row?.decode(atIndex: 1) ?? 0
            return (try row?.decode(atIndex: 0) ?? 0, Int64(exactly: bytes.rounded()) ?? .max)
        }
    }

    /// Nothing is sealed with the former secret any more.
    func endRekeying() throws { try write { db in try Self.set("formerSecret", to: nil, db) } }

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
            guard let version = try? cipher.open(row, 4, .version, of: place),  // Stays unreadable under the new key.
                let fields = try? cipher.open(row, 5, .fields, of: place)  // As does this.
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
            guard let download = try download(row) else {
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
        // The order in which they would be evicted stays.
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
                    try new.seal(history(row, 8, of: name).text, .history, of: newName), id,
                ])
            } catch is CatalogCipher.UnreadableValue {
                lost.append(id)
            }
        }
        for id in lost { try db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [id]) }
        // Their files are nobody's.
        if !lost.isEmpty { try Self.set("sweepPending", to: true.databaseValue, db) }
        let update = try db.cachedStatement(
            sql: """
                UPDATE resource SET key = ?, url = ?, contentType = ?, createdAt = ?, lastUsedAt = ?,
                    createdSealed = ?, usedSealed = ?, history = ?
                WHERE id = ?
                """)
        for change in changes { try update.execute(arguments: change) }
    }
}

extension CatalogTransaction {
    /// A generation's bytes lie in another file now, sealed with the present secret: its blocks are these.
    ///
    /// - Returns: False if it is not there any more.
    func replace(
        _ generation: Int64, of key: String, with identifier: GenerationIdentifier, length: Int64?, version: String,
        fields: String, blocks: [BlockRecord], landed: ByteRangeSet
    ) throws -> Bool {
        let place = CatalogCipher.place(of: identifier, length: length, in: cipher.name(of: key))
        try db.execute(
            sql: """
                UPDATE generation SET identifier = ?, secret = ?, format = ?, length = ?, version = ?, fields = ?
                WHERE id = ?
                """,
            arguments: [
                identifier.data, catalog.writing.secret, catalog.writing.format.rawValue, length,
                try cipher.seal(version, .version, of: place), try cipher.seal(fields, .fields, of: place), generation,
            ])
        guard db.changesCount == 1 else { return false }
        try db.execute(sql: "DELETE FROM block WHERE generation = ?", arguments: [generation])
        let insert = try db.cachedStatement(
            sql: "INSERT INTO block (generation, idx, length, seal) VALUES (?, ?, ?, ?)")
        for block in blocks { try insert.execute(arguments: [generation, block.index, block.length, block.seal.data]) }
        try setLanded(landed, of: generation)
        return true
    }
}
