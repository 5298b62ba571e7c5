package import Foundation
import GRDB

extension Catalog {
    /// The resource with this key, and the version of it that is kept.
    package func resource(key: String) throws -> ResourceRecord? {
        try readOnce { db in try Self.resource(key: key, db) }
    }

    /// All resources, by address and key; for lists that people read.
    package func resources() throws -> [ResourceRecord] {
        try read { db in
            try Row.fetchAll(db, sql: Self.resourceQuery + " ORDER BY resource.url, resource.key").compactMap(
                Self.resource)
        }
    }

    /// Begins a version of a resource, in place of the one that was kept, whose records are forgotten.
    ///
    /// The pin and the first date stay; the resource counts as used at `date`.
    ///
    /// - Parameters:
    ///   - identifier: The name of its media file.
    ///   - key: The cache key's hash: 64 lower-case hexadecimal digits.
    ///   - url: The address; what follows its path, and user information, is cut off here in any case.
    ///   - version: The version as the engine encodes it.
    ///   - fields: What else goes with it.
    /// - Returns: The resource with its new generation, and the identifiers whose files are to be removed now.
    package func beginGeneration(
        _ identifier: GenerationIdentifier = GenerationIdentifier(), key: String, url: String, version: String,
        length: Int64?, contentType: String?, fields: String = "",
        at date: Date
    ) throws -> (resource: ResourceRecord, replaced: [GenerationIdentifier]) {
        try checkKey(key)
        return try write { db in
            let replaced = try Self.identifiers("WHERE resource.key = ?", [key], db)
            // Prepared once: a player waits for this.
            try db.cachedStatement(
                sql: """
                    INSERT INTO resource (key, url, contentType, createdAt, lastUsedAt) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (key) DO UPDATE SET
                        url = excluded.url, contentType = excluded.contentType,
                        lastUsedAt = MAX(lastUsedAt, excluded.lastUsedAt)
                    """
            ).execute(arguments: [key, Self.withoutSecrets(url), contentType, date.microseconds, date.microseconds])
            if !replaced.isEmpty {
                try db.cachedStatement(
                    sql: "DELETE FROM generation WHERE resource = (SELECT id FROM resource WHERE key = ?)"
                ).execute(arguments: [key])
            }
            try db.cachedStatement(
                sql: """
                    INSERT INTO generation (resource, identifier, length, version, fields, tidyEpoch)
                    SELECT id, ?, ?, ?, ?, (SELECT value FROM setting WHERE name = 'tidyEpoch')
                    FROM resource WHERE key = ?
                    """
            ).execute(arguments: [identifier.data, length, version, fields, key])
            guard let resource = try Self.resource(key: key, db) else {
                throw CacheError(.storage, "“\(path)” lost the resource \(key) while writing it.")
            }
            return (resource, replaced)
        }
    }

    /// Changes what is known of a generation; what is nil stays. One that is gone is passed over.
    package func update(
        generation: Int64, length: Int64? = nil, version: String? = nil, fields: String? = nil,
        contentType: String? = nil
    ) throws {
        try write { db in
            try db.execute(
                sql: """
                    UPDATE generation SET length = COALESCE(?, length), version = COALESCE(?, version),
                        fields = COALESCE(?, fields) WHERE id = ?
                    """,
                arguments: [length, version, fields, generation])
            guard let contentType else { return }
            try db.execute(
                sql: "UPDATE resource SET contentType = ? WHERE id = (SELECT resource FROM generation WHERE id = ?)",
                arguments: [contentType, generation])
        }
    }

    /// Forgets a resource, its pin too.
    ///
    /// - Returns: The identifiers whose files are to be removed now; empty if nothing was kept.
    @discardableResult
    package func remove(key: String) throws -> [GenerationIdentifier] {
        try write { db in
            let identifiers = try Self.identifiers("WHERE resource.key = ?", [key], db)
            try db.execute(sql: "DELETE FROM resource WHERE key = ?", arguments: [key])
            return identifiers
        }
    }

    /// Forgets everything, pins too, but not the settings.
    ///
    /// - Returns: The identifiers whose files are to be removed now.
    @discardableResult
    package func removeAll() throws -> [GenerationIdentifier] {
        try write { db in
            let identifiers = try Self.identifiers("", [], db)
            try db.execute(sql: "DELETE FROM resource")
            return identifiers
        }
    }

    /// Pins or unpins a resource.
    ///
    /// - Returns: False if the catalog knows no such resource.
    @discardableResult
    package func setPinned(_ isPinned: Bool, key: String) throws -> Bool {
        try write { db in
            try db.execute(sql: "UPDATE resource SET pinned = ? WHERE key = ?", arguments: [isPinned, key])
            return db.changesCount > 0
        }
    }

    /// The identifiers of all generations: every other media file is an orphan.
    package func generations() throws -> Set<GenerationIdentifier> {
        try read { db in Set(try Self.identifiers("", [], db)) }
    }

    /// Resources that may be evicted, the least recently used first: not pinned, and with recorded blocks.
    ///
    /// - Parameters:
    ///   - limit: How many at most.
    ///   - position: Where to go on, from the last one of the former call; nil begins.
    package func leastRecentlyUsed(limit: Int, after position: EvictionPosition? = nil) throws -> [EvictionCandidate] {
        try read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT resource.key, generation.id, generation.storedBytes, resource.lastUsedAt, resource.id
                    FROM resource JOIN generation ON generation.resource = resource.id
                    WHERE resource.pinned = 0 AND generation.storedBytes > 0
                        AND (resource.lastUsedAt, resource.id) > (?, ?)
                    ORDER BY resource.lastUsedAt, resource.id LIMIT ?
                    """,
                arguments: [position?.lastUsedAt ?? .min, position?.resource ?? .min, limit]
            ).map { row in
                EvictionCandidate(
                    key: row[0], generation: row[1], storedBytes: row[2], lastUsedAt: Date(microseconds: row[3]),
                    position: EvictionPosition(lastUsedAt: row[3], resource: row[4]))
            }
        }
    }

    // MARK: - Rows

    private static let resourceQuery = """
        SELECT resource.key, url, contentType, pinned, createdAt, lastUsedAt,
            generation.id, identifier, length, version, fields, storedBytes
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
        """

    private static func resource(key: String, _ db: Database) throws -> ResourceRecord? {
        let statement = try db.cachedStatement(sql: resourceQuery + " WHERE resource.key = ?")
        return try Row.fetchOne(statement, arguments: [key]).map(resource)
    }

    private static func resource(_ row: Row) -> ResourceRecord {
        var record = ResourceRecord(
            key: row[0], url: row[1], contentType: row[2], isPinned: row[3], createdAt: Date(microseconds: row[4]),
            lastUsedAt: Date(microseconds: row[5]))
        if let id: Int64 = row[6], let data: Data = row[7], let identifier = GenerationIdentifier(data) {
            record.generation = GenerationRecord(
                id: id, identifier: identifier, length: row[8], version: row[9], fields: row[10], storedBytes: row[11])
        }
        return record
    }

    private static func identifiers(
        _ condition: String, _ arguments: StatementArguments, _ db: Database
    ) throws -> [GenerationIdentifier] {
        let statement = try db.cachedStatement(
            sql: "SELECT identifier FROM generation JOIN resource ON resource.id = generation.resource \(condition)")
        return try Data.fetchAll(statement, arguments: arguments).compactMap { GenerationIdentifier($0) }
    }

    private func checkKey(_ key: String) throws {
        let isHash = key.utf8.count == 64 && key.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        guard isHash else {
            throw CacheError(.invalidArgument, "“\(key.prefix(80))” is no cache key: not 64 hexadecimal digits.")
        }
    }

    /// Scheme, host and path of an address: cut before `?` and `#`, and without `user:password@`.
    static func withoutSecrets(_ url: String) -> String {
        var text = url.prefix { $0 != "?" && $0 != "#" }
        if let slashes = text.range(of: "//") {
            let authority = text[slashes.upperBound...].prefix { $0 != "/" }
            if let at = authority.lastIndex(of: "@") { text.removeSubrange(slashes.upperBound...at) }
        }
        return String(text)
    }
}

extension Date {
    /// Whole microseconds since 1970; dates beyond what fits are clamped.
    var microseconds: Int64 {
        let microseconds = (timeIntervalSince1970 * 1_000_000).rounded()
        return Int64(exactly: microseconds) ?? (microseconds < 0 ? .min : .max)
    }

    init(microseconds: Int64) { self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000) }
}
