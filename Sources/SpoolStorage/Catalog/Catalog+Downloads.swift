import Foundation
import GRDB

extension Catalog {
    /// Adds media files to sets, and pins them, also those of which nothing is stored yet; what a set has already stays,
    /// and takes over an address that it did not have.
    func addDownloads(_ downloads: [DownloadRecord], at date: Date) throws {
        try write { db in
            for download in downloads {
                try CatalogTransaction.checkKey(download.key)
                let key = cipher.name(of: download.key)
                try db.execute(
                    sql: """
                        INSERT OR IGNORE INTO handPin (key) SELECT key FROM resource
                        WHERE key = ?1 AND pinned = 1 AND NOT EXISTS (SELECT 1 FROM download WHERE key = ?1)
                        """,
                    arguments: [key])
                let url = try cipher.seal(Self.withoutSecrets(download.url), .url, of: key)
                try db.execute(
                    sql: """
                        INSERT INTO resource (key, url, pinned, createdAt, lastUsedAt, createdSealed, usedSealed)
                        VALUES (?1, ?2, 1, ?3, ?3, ?4, ?5)
                        ON CONFLICT (key) DO UPDATE SET pinned = MAX(pinned, NOT EXISTS (
                            SELECT 1 FROM generation WHERE generation.resource = resource.id AND length IS NULL))
                        """,
                    arguments: [
                        key, url, try ordinal(at: date, db), try cipher.seal(date, .createdAt, of: key),
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

    /// Takes media files out of a set, or all of them; those that no other set has, and nobody has pinned for themselves,
    /// are no longer pinned.
    ///
    /// - Returns: The keys that no set has any more; nil if the set has nothing of that.
    func removeDownloads(_ key: String?, from set: String) throws -> [String]? {
        try write { db in
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

    /// Forgets the address of a media file in every set that has it: it is not started again until it is added again.
    func forgetSource(ofDownload key: String) throws {
        try write { db in
            try db.execute(
                sql: "UPDATE download SET source = NULL WHERE key = ?", arguments: [cipher.name(of: key)])
        }
    }

    /// What sets have, in the order in which it was added, sets by name.
    ///
    /// - Parameter set: One set only.
    func downloads(of set: String? = nil) throws -> [DownloadRecord] {
        try read { db in
            // Written by an older version, and only read by this one.
            guard try db.tableExists("download") else { return [] }
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT download.collection, download.key, download.url, download.source, generation.length,
                        generation.storedBytes
                    FROM download LEFT JOIN resource ON resource.key = download.key
                        LEFT JOIN generation ON generation.resource = resource.id
                    WHERE ?1 IS NULL OR download.collection = ?1 ORDER BY download.collection, download.id
                    """,
                arguments: [try set.map { try cipher.sealForSearch($0, .collection) }])
            var records: [DownloadRecord] = []
            while let row = try rows.next() {
                guard var record = try download(row) else { continue }
                // One that can't be is not known.
                let length: Int64? = try row.decode(atIndex: 4)
                record.length = length.flatMap { (0...Block.offsetLimit).contains($0) ? $0 : nil }
                record.storedBytes = Self.byteCount(try row.decode(atIndex: 5))
                records.append(record)
            }
            guard !cipher.isPlain else { return records }
            // Enciphered, sets are in no order.
            return records.enumerated().sorted { ($0.element.set, $0.offset) < ($1.element.set, $1.offset) }.map(
                \.element)
        }
    }

    /// What a row says; nil if somebody else has changed it.
    func download(_ row: Row) throws -> DownloadRecord? {
        do {
            let name: String = try row.decode(atIndex: 1)
            guard let set = try cipher.open(row, 0, .collection, of: ""),
                let url = try cipher.open(row, 2, .url, of: name)
            else { return nil }
            return DownloadRecord(
                set: set, key: cipher.key(of: name), url: url, source: try cipher.open(row, 3, .source, of: name))
        } catch is CatalogCipher.UnreadableValue {
            return nil
        }
    }

    /// Bytes that pinned resources have, but for one key; of those that sets had before it, what they will have. So of two
    /// for which there is no room together, the first has it.
    func pinnedBytes(except key: String) throws -> Int64 {
        try readOnce { db in
            let sum = try Double.fetchOne(
                db,
                sql: """
                    SELECT TOTAL(CASE WHEN (SELECT MIN(id) FROM download WHERE download.key = resource.key)
                            < COALESCE((SELECT MIN(id) FROM download WHERE download.key = ?1), 9223372036854775807)
                        THEN MAX(storedBytes, COALESCE(length, 0)) ELSE storedBytes END)
                    FROM resource JOIN generation ON generation.resource = resource.id
                    WHERE pinned = 1 AND resource.key <> ?1
                    """,
                arguments: [cipher.name(of: key)])
            return Int64(exactly: (sum ?? 0).rounded()) ?? .max
        }
    }

    // MARK: - Pins

    /// Pins a resource, or lets go of it, and what is a part of it. What a set has stays pinned.
    ///
    /// - Parameter key: As it stands in the catalog.
    func setPinned(_ isPinned: Bool, name key: String, _ db: Database) throws -> Bool {
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
        // Of which nothing ever came.
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
