import ByteRanges
import Foundation
import GRDB

/// A value type that reads and changes the catalog's `download` and `handPin` tables: sets of resources to store
/// offline, and pins.
struct CatalogDownloads {
    private let catalog: Catalog
    private var cipher: CatalogCipher { catalog.cipher }

    init(_ catalog: Catalog) { self.catalog = catalog }

    // MARK: - Sets

    /// Adds resources to sets and pins them, even if none of their bytes are stored yet. A resource is not pinned if a
    /// version of unknown length is stored. Existing members of a set remain in it. If a new record contains a URL, it
    /// replaces the URL of the existing member.
    func add(_ downloads: [DownloadRecord], at date: Date) throws {
        try catalog.write { db in
            for download in downloads {
                try CatalogTransaction.checkKey(download.key)
                let key = cipher.name(of: download.key)
                try db.execute(
                    sql: """
                        INSERT OR IGNORE INTO handPin (key) SELECT key FROM resource
                        WHERE key = ?1 AND pinned = 1 AND NOT EXISTS (SELECT 1 FROM download WHERE key = ?1)
                        """,
                    arguments: [key])
                let url = try cipher.seal(Catalog.withoutSecrets(download.url), .url, of: key)
                try db.execute(
                    sql: """
                        INSERT INTO resource (key, url, pinned, createdAt, lastUsedAt, createdSealed, usedSealed)
                        VALUES (?1, ?2, 1, ?3, ?3, ?4, ?5)
                        ON CONFLICT (key) DO UPDATE SET pinned = MAX(pinned, NOT EXISTS (
                            SELECT 1 FROM generation WHERE generation.resource = resource.id AND length IS NULL))
                        """,
                    arguments: [
                        key, url, try catalog.ordinal(at: date, db), try cipher.seal(date, .createdAt, of: key),
                        try cipher.seal(date, .lastUsedAt, of: key),
                    ])
                try db.execute(
                    sql: """
                        UPDATE resource SET pinned = 1
                        WHERE presentation = (SELECT id FROM resource WHERE key = ? AND pinned = 1)
                        """,
                    arguments: [key])
                try db.execute(
                    sql: """
                        INSERT INTO download (collection, key, url, source) VALUES (?, ?, ?, ?)
                        ON CONFLICT (collection, key) DO UPDATE SET source = COALESCE(excluded.source, source)
                        """,
                    arguments: [
                        try cipher.sealForSearch(download.set, .collection), key, url,
                        try cipher.seal(download.source, .source, of: key),
                    ])
            }
        }
    }

    /// Removes one resource, or all resources, from a set. Resources that are in no other set, and are not pinned
    /// separately, are unpinned.
    ///
    /// - Returns: The keys that are no longer in any set; `nil` if no resource was removed from the set.
    func remove(_ key: String?, from set: String) throws -> [String]? {
        try catalog.write { db in
            let (set, key) = (try cipher.sealForSearch(set, .collection), key.map { cipher.name(of: $0) })
            let keys = try String.fetchAll(
                db, sql: "SELECT key FROM download WHERE collection = ?1 AND (?2 IS NULL OR key = ?2)",
                arguments: [set, key])
            guard !keys.isEmpty else { return nil }
            try db.execute(
                sql: "DELETE FROM download WHERE collection = ?1 AND (?2 IS NULL OR key = ?2)", arguments: [set, key])
            let free = try keys.filter { try !isDownload($0, db) }
            for key in free {
                try db.execute(sql: "DELETE FROM handPin WHERE key = ?", arguments: [key])
                if db.changesCount == 0 { try unpin(key, db) }
            }
            return free.map { cipher.key(of: $0) }
        }
    }

    /// Removes the URL of a resource from every set that contains it. The download is not restarted until the resource
    /// is added again.
    func forgetSource(of key: String) throws {
        try catalog.write { db in
            try db.execute(
                sql: "UPDATE download SET source = NULL WHERE key = ?", arguments: [cipher.name(of: key)])
        }
    }

    /// Returns the members of sets, sorted by the name of the set and then by the order in which they were added.
    ///
    /// - Parameter set: The name of one set; `nil` for all.
    func members(of set: String? = nil) throws -> [DownloadRecord] {
        try catalog.read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT download.collection, download.key, download.url, download.source, generation.length,
                        \(Catalog.storedBytes)
                    FROM download LEFT JOIN resource ON resource.key = download.key
                        LEFT JOIN generation ON generation.resource = resource.id
                    WHERE ?1 IS NULL OR download.collection = ?1 ORDER BY download.collection, download.id
                    """,
                arguments: [try set.map { try cipher.sealForSearch($0, .collection) }])
            var records: [DownloadRecord] = []
            while let row = try rows.next() {
                guard var record = record(row) else { continue }
                // An invalid length counts as unknown.
                record.length = row.number(4).flatMap { (0...Block.offsetLimit).contains($0) ? $0 : nil }
                record.storedBytes = row.byteCount(5)
                records.append(record)
            }
            guard !cipher.isPlain else { return records }
            // Encrypted names do not sort in the order of the unencrypted names.
            return records.enumerated().sorted { ($0.element.set, $0.offset) < ($1.element.set, $1.offset) }.map(
                \.element)
        }
    }

    /// Returns the record in a row; `nil` if another program has changed it.
    func record(_ row: Row) -> DownloadRecord? {
        guard let name = try? row.text(1),  // Fails if the cell has a different type.
            let set = try? cipher.open(row, 0, .collection, of: ""),  // Fails as above, or if the value was changed.
            let url = try? cipher.open(row, 2, .url, of: name)  // As above.
        else { return nil }
        do {
            return DownloadRecord(
                set: set, key: cipher.key(of: name), url: url, source: try cipher.open(row, 3, .source, of: name))
        } catch {
            return nil
        }
    }

    /// Removes the members that can't be read.
    ///
    /// - Returns: The number of removed members.
    func removeUnreadable(_ db: Database) throws -> Int {
        let rows = try Row.fetchAll(db, sql: "SELECT collection, key, url, source, id FROM download")
        let unreadable = rows.filter { record($0) == nil }.compactMap { $0.number(4) }
        for id in unreadable { try db.execute(sql: "DELETE FROM download WHERE id = ?", arguments: [id]) }
        return unreadable.count
    }

    /// Returns the number of bytes of all pinned resources except one.
    ///
    /// Members of sets that were added before the excluded resource count with their full length. If only one of two
    /// members fits, the earlier one therefore gets the space.
    func pinnedBytes(except key: String) throws -> Int64 {
        try catalog.readOnce { db in
            let sum = try Double.fetchOne(
                db,
                sql: """
                    SELECT TOTAL(CASE WHEN (SELECT MIN(id) FROM download WHERE download.key = resource.key)
                            < COALESCE((SELECT MIN(id) FROM download WHERE download.key = ?1), 9223372036854775807)
                        THEN MAX(\(Catalog.storedBytes), COALESCE(generation.length, 0))
                        ELSE \(Catalog.storedBytes) END)
                    FROM resource JOIN generation ON generation.resource = resource.id
                    WHERE pinned = 1 AND resource.key <> ?1
                    """,
                arguments: [cipher.name(of: key)])
            return Int64(exactly: (sum ?? 0).rounded()) ?? .max
        }
    }

    // MARK: - Pins

    /// Pins or unpins a resource and its parts. Members of sets stay pinned.
    ///
    /// - Returns: `false` if the resource is not recorded.
    func setPinned(_ isPinned: Bool, key: String) throws -> Bool {
        try catalog.write { db in try setPinned(isPinned, name: cipher.name(of: key), db) }
    }

    private func setPinned(_ isPinned: Bool, name key: String, _ db: Database) throws -> Bool {
        let sql = "SELECT 1 FROM resource WHERE key = ?"
        guard try Int.fetchOne(db, sql: sql, arguments: [key]) != nil else { return false }
        let isDownload = try isDownload(key, db)
        if isPinned {
            if isDownload { try db.execute(sql: "INSERT OR IGNORE INTO handPin (key) VALUES (?)", arguments: [key]) }
            try db.execute(
                sql: """
                    UPDATE resource SET pinned = 1
                    WHERE key = ?1 OR presentation = (SELECT id FROM resource WHERE key = ?1)
                    """,
                arguments: [key])
            // The resource is removed from a presentation that is not pinned, and that may belong to a different
            // origin.
            try db.execute(
                sql: """
                    UPDATE resource SET presentation = NULL
                    WHERE key = ? AND presentation IN (SELECT id FROM resource WHERE NOT pinned)
                    """,
                arguments: [key])
        } else {
            try db.execute(sql: "DELETE FROM handPin WHERE key = ?", arguments: [key])
            if !isDownload { try unpin(key, db) }
        }
        return true
    }

    private func unpin(_ key: String, _ db: Database) throws {
        try db.execute(
            sql: """
                UPDATE resource SET pinned = 0
                WHERE key = ?1 OR (presentation = (SELECT id FROM resource WHERE key = ?1)
                    AND NOT EXISTS (SELECT 1 FROM download WHERE download.key = resource.key))
                """,
            arguments: [key])
        // The resource is removed if it has no version.
        try db.execute(
            sql: """
                DELETE FROM resource WHERE key = ?
                    AND NOT EXISTS (SELECT 1 FROM generation WHERE generation.resource = resource.id)
                """,
            arguments: [key])
    }

    private func isDownload(_ key: String, _ db: Database) throws -> Bool {
        try Int.fetchOne(db, sql: "SELECT 1 FROM download WHERE key = ? LIMIT 1", arguments: [key]) != nil
    }
}
