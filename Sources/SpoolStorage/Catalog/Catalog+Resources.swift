import ByteRanges
import Foundation
import GRDB

extension Catalog {
    /// Returns the resource with this key, and its stored version; `nil` if the resource is not recorded.
    func resource(key: String) throws -> ResourceRecord? {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: Self.resourceQuery + " WHERE resource.key = ?")
            return try Row.fetchOne(statement, arguments: [cipher.name(of: key)]).flatMap { try resource($0, db) }
        }
    }

    /// Returns all resources, or only the parts of a presentation, sorted by URL and key.
    func resources(partOf presentation: String? = nil) throws -> [ResourceRecord] {
        let parts = " WHERE resource.presentation = (SELECT id FROM resource WHERE key = ?)"
        let sql = Self.resourceQuery + (presentation == nil ? "" : parts) + " ORDER BY resource.url, resource.key"
        let resources = try read { db in
            let name = presentation.map { cipher.name(of: $0) }
            return try Row.fetchAll(db, sql: sql, arguments: name.map { [$0] } ?? []).compactMap {
                try resource($0, db)
            }
        }
        // Encrypted values do not sort in the order of their unencrypted values.
        return cipher.isPlain ? resources : resources.sorted { ($0.url, $0.key) < ($1.url, $1.key) }
    }

    /// Returns the most recently used resources, most recent first, and the number of all resources.
    func recentResources(limit: Int) throws -> (resources: [ResourceRecord], count: Int) {
        try read { db in
            // Pinned and unpinned resources each have an index.
            let recent = try [0, 1].flatMap { pinned in
                try Row.fetchAll(
                    db,
                    sql: Self.resourceQuery
                        + " WHERE pinned = \(pinned) ORDER BY lastUsedAt DESC, resource.id DESC LIMIT ?",
                    arguments: [limit]
                ).compactMap { try resource($0, db) }
            }
            let count = try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM resource") ?? 0
            return (Array(recent.sorted { $0.lastUsedAt > $1.lastUsedAt }.prefix(limit)), count)
        }
    }

    /// Returns the keys of a presentation's parts.
    ///
    /// - Parameter forRemoval: Whether to omit pinned parts if the presentation is not pinned.
    func parts(of presentation: String, forRemoval: Bool = false) throws -> [String] {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT resource.key FROM resource JOIN resource AS whole ON whole.id = resource.presentation
                    WHERE whole.key = ?1 AND (NOT ?2 OR whole.pinned OR NOT resource.pinned)
                    """)
            return try String.fetchAll(statement, arguments: [cipher.name(of: presentation), forRemoval])
                .map { cipher.key(of: $0) }
        }
    }

    /// Returns the keys of the stored variants of a resource.
    func variants(of key: String) throws -> [String] {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: Self.variantQuery)
            return try String.fetchAll(statement, arguments: [cipher.name(of: key)]).map { cipher.key(of: $0) }
        }
    }

    /// The statement for the variants of one resource. It uses only indices.
    static let variantQuery = """
        SELECT resource.key FROM variant JOIN generation ON generation.id = variant.generation
            JOIN resource ON resource.id = generation.resource
        WHERE variant.base = ? AND typeof(resource.key) = 'text'
        """

    /// Returns the next keys after `key`, in the catalog's order.
    func keys(after key: String, limit: Int) throws -> [String] {
        try readOnce { db in
            // In a damaged catalog, a key of the wrong type sorts after all texts, and would be listed again and again.
            try String.fetchAll(
                db,
                sql: """
                    SELECT key FROM resource WHERE key > ? AND typeof(key) = 'text' ORDER BY key LIMIT ?
                    """,
                arguments: [cipher.name(of: key), limit]
            ).map { cipher.key(of: $0) }
        }
    }

    /// Returns whether the resource is excluded from eviction; `false` if it is not recorded.
    func isPinned(_ key: String) throws -> Bool {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: "SELECT pinned FROM resource WHERE key = ?")
            return try Bool.fetchOne(statement, arguments: [cipher.name(of: key)]) ?? false
        }
    }

    /// Returns whether a version with this identifier is recorded. A media file whose identifier is not recorded is an
    /// orphan.
    func contains(_ identifier: GenerationIdentifier) throws -> Bool {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: "SELECT 1 FROM generation WHERE identifier = ?")
            return try Int.fetchOne(statement, arguments: [identifier.data]) != nil
        }
    }

    // MARK: - Rows

    /// The SQL expression for the number of stored bytes of a generation. If its ranges are not recorded, the lengths
    /// of its blocks are added up.
    static let storedBytes = """
        CASE WHEN generation.landed IS NULL THEN (
            SELECT COALESCE(SUM(block.length), 0) FROM block WHERE block.generation = generation.id
                AND typeof(block.length) = 'integer' AND block.length BETWEEN 1 AND \(Block.size)
        ) ELSE generation.storedBytes END
        """

    static let resourceQuery = """
        SELECT resource.key, url, contentType, pinned, createdAt, lastUsedAt,
            generation.id, identifier, length, version, fields, storedBytes,
            tidyEpoch IS NOT (SELECT value FROM setting WHERE name = 'tidyEpoch'),
            format, landed, (SELECT key FROM resource AS whole WHERE whole.id = resource.presentation),
            createdSealed, usedSealed, rowBytes
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
        """

    /// Returns the record in a row; `nil` if the row's key is not text, in which case no query finds it.
    /// ``repairRows()`` removes such a row.
    func resource(_ row: Row, _ db: Database) throws -> ResourceRecord? {
        guard let name = try? row.text(0) else { return nil }  // Fails if the key is not text.
        do {
            return try resource(row, named: name, db)
        } catch is CatalogCipher.UnreadableValue {
            // The record below is returned instead.
        }
        var record = ResourceRecord(
            key: cipher.key(of: name), url: Self.unreadable, isPinned: row.isSet(3), createdAt: .distantPast,
            lastUsedAt: .distantPast)
        record.isUnreadable = true
        return record
    }

    private func resource(_ row: Row, named name: String, _ db: Database) throws -> ResourceRecord {
        let presentation = (try? row.text(15)) ?? nil  // Fails if the presentation's row is damaged.
        var record = ResourceRecord(
            key: cipher.key(of: name), url: try cipher.open(row, 1, .url, of: name) ?? Self.unreadable,
            contentType: try cipher.open(row, 2, .contentType, of: name), isPinned: row.isSet(3),
            createdAt: try cipher.open(row, 16, number: 4, .createdAt, of: name),
            lastUsedAt: try cipher.open(row, 17, number: 5, .lastUsedAt, of: name),
            presentation: presentation.map { cipher.key(of: $0) })
        guard let id = try row.integer(6) else { return record }
        guard let identifier = try row.data(7).flatMap({ GenerationIdentifier($0) }), let format = try row.integer(13)
        else { throw CatalogCipher.UnreadableValue() }
        let length = try row.integer(8)
        let recorded = row.storedRanges(14, count: 11).flatMap { ranges in
            // If ranges extend past the length, only the blocks show which of the two is wrong.
            length.map { ranges.bounds?.upperBound ?? 0 > $0 } ?? false ? nil : ranges
        }
        let storedRanges = try recorded ?? CatalogBlocks.storedRanges(of: id, db)
        let place = CatalogCipher.place(of: identifier, length: length, in: name)
        record.generation = GenerationRecord(
            id: id, identifier: identifier,
            // An invalid length counts as unknown, so the length is requested from the origin.
            length: length.flatMap { (0...Block.offsetLimit).contains($0) ? $0 : nil },
            version: try cipher.open(row, 9, .version, of: place) ?? "",
            fields: try cipher.open(row, 10, .fields, of: place) ?? "",
            storedBytes: storedRanges.byteCount, countedBytes: row.byteCount(11), rowBytes: row.byteCount(18),
            needsCleanup: row.isSet(12), format: format, storedRanges: storedRanges, hasRanges: recorded != nil)
        return record
    }

    /// The text that replaces the URL of a record if another program has changed it.
    static let unreadable = "(a record that can't be read)"

    /// Returns a row's URL; `nil` if another program has changed it.
    static func url(_ row: Row, _ index: Int, _ cipher: CatalogCipher, of name: String) throws -> String? {
        do {
            return try cipher.open(row, index, .url, of: name)
        } catch is CatalogCipher.UnreadableValue {
            return nil
        }
    }

    /// Returns a recorded number of bytes, clamped to the range from 0 to ``Block/offsetLimit``.
    static func byteCount(_ recorded: Int64?) -> Int64 { min(max(recorded ?? 0, 0), Block.offsetLimit) }

    /// Returns the scheme, host and path of a URL, without `user:password@`, query and fragment.
    static func withoutSecrets(_ url: String) -> String {
        var text = url.prefix { $0 != "?" && $0 != "#" }
        if let slashes = text.range(of: "//") {
            let authority = text[slashes.upperBound...].prefix { $0 != "/" }
            if let at = authority.lastIndex(of: "@") { text.removeSubrange(slashes.upperBound...at) }
        }
        return String(text)
    }
}

/// Methods for cells whose damage does not invalidate the row.
extension Row {
    /// Returns the integer in a cell; `nil` if the cell contains anything else.
    func number(_ index: Int) -> Int64? { (try? integer(index)) ?? nil }  // Fails if the cell has a different type.

    /// Returns the number of bytes in a cell; 0 if the cell contains anything else.
    func byteCount(_ index: Int) -> Int64 { Catalog.byteCount(number(index)) }

    /// Returns the stored ranges in a cell; `nil` if they contradict their number of bytes in another cell. In that
    /// case, another program has changed one of the cells, and the ranges are computed from the blocks.
    func storedRanges(_ index: Int, count: Int) -> ByteRangeSet? {
        guard let storedRanges = storedRanges(index), number(count) == storedRanges.byteCount else { return nil }
        return storedRanges
    }

    /// Returns the stored ranges in a cell; `nil` if the value is invalid, in which case they are computed from the
    /// blocks.
    func storedRanges(_ index: Int) -> ByteRangeSet? {
        guard let encoded = try? data(index),  // Fails if the cell has a different type.
            let storedRanges = try? ByteRangeSet(decoding: Array(encoded)),  // Fails if the bytes are invalid.
            storedRanges.bounds?.upperBound ?? 0 <= Block.offsetLimit
        else { return nil }
        return storedRanges
    }
}

// MARK: - Repair

extension Catalog {
    /// The number of rows that ``repairRows()`` has removed, and of the bytes that they claimed.
    struct RemovedRows: Hashable, Sendable {
        var count = 0
        var storedBytes: Int64 = 0
        var rowBytes: Int64 = 0
    }

    /// Removes rows that can't be found by any key, for example because their key or their owner is damaged. Corrects
    /// pins with invalid values. The media files of removed rows then have no record, so a search for orphans is
    /// scheduled.
    func repairRows() throws -> RemovedRows {
        try write { db in
            let before = (Self.byteCount(try db.number("storedBytes")), Self.byteCount(try db.number("rowBytes")))
            var removed = RemovedRows()
            for statement in [
                "DELETE FROM resource WHERE typeof(key) <> 'text'",
                "DELETE FROM generation WHERE resource NOT IN (SELECT id FROM resource)",
                "DELETE FROM block WHERE typeof(idx) <> 'integer' OR generation NOT IN (SELECT id FROM generation)",
                "DELETE FROM handPin WHERE typeof(key) <> 'text'",
            ] {
                try db.execute(sql: statement)
                removed.count += db.changesCount
            }
            removed.count += try downloads.removeUnreadable(db)
            try db.execute(sql: "UPDATE resource SET pinned = 1 WHERE pinned IS NOT 0 AND pinned IS NOT 1")
            if removed.count > 0 { try db.set("sweepPending", to: true.databaseValue) }
            removed.storedBytes = before.0 - Self.byteCount(try db.number("storedBytes"))
            removed.rowBytes = before.1 - Self.byteCount(try db.number("rowBytes"))
            return removed
        }
    }
}
