import ByteRanges
package import Foundation
import GRDB

extension Catalog {
    /// The resource with this key, and the version of it that is kept.
    package func resource(key: String) throws -> ResourceRecord? {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: resourceQuery + " WHERE resource.key = ?")
            return try Row.fetchOne(statement, arguments: [key]).map(Self.resource)
        }
    }

    /// All resources, by URL and key; for lists that people read.
    package func resources() throws -> [ResourceRecord] {
        try read { db in
            try Row.fetchAll(db, sql: resourceQuery + " ORDER BY resource.url, resource.key").map(Self.resource)
        }
    }

    /// Some keys, ascending, from the one after `key` on.
    package func keys(after key: String, limit: Int) throws -> [String] {
        try readOnce { db in
            try String.fetchAll(
                db, sql: "SELECT key FROM resource WHERE key > ? ORDER BY key LIMIT ?", arguments: [key, limit])
        }
    }

    /// Pins or unpins a resource.
    ///
    /// - Returns: False if the catalog knows no such resource.
    package func setPinned(_ isPinned: Bool, key: String) throws -> Bool {
        try write { db in
            try db.execute(sql: "UPDATE resource SET pinned = ? WHERE key = ?", arguments: [isPinned, key])
            return db.changesCount > 0
        }
    }

    /// Whether the resource is kept from eviction; false if it is not known.
    package func isPinned(_ key: String) throws -> Bool {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: "SELECT pinned FROM resource WHERE key = ?")
            return try Bool.fetchOne(statement, arguments: [key]) ?? false
        }
    }

    /// Whether a version of this name is recorded: every other media file is an orphan.
    package func contains(_ identifier: GenerationIdentifier) throws -> Bool {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: "SELECT 1 FROM generation WHERE identifier = ?")
            return try Int.fetchOne(statement, arguments: [identifier.data]) != nil
        }
    }

    /// Resources that may be evicted, the least recently used first: all that are not pinned, also those of no bytes.
    ///
    /// - Parameters:
    ///   - limit: How many at most.
    ///   - position: Where to go on, from the last one of the former call; nil begins.
    package func leastRecentlyUsed(limit: Int, after position: EvictionPosition? = nil) throws -> [EvictionCandidate] {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT resource.key, generation.storedBytes, resource.lastUsedAt, resource.id
                    FROM resource LEFT JOIN generation ON generation.resource = resource.id
                    WHERE resource.pinned = 0 AND (resource.lastUsedAt, resource.id) > (?, ?)
                    ORDER BY resource.lastUsedAt, resource.id LIMIT ?
                    """)
            return try Row.fetchAll(
                statement, arguments: [position?.lastUsedAt ?? .min, position?.resource ?? .min, limit]
            ).map { row in
                EvictionCandidate(
                    key: row[0], storedBytes: row[1] ?? 0, lastUsedAt: Date(microseconds: row[2]),
                    position: EvictionPosition(lastUsedAt: row[2], resource: row[3]))
            }
        }
    }

    /// Moves dates of use that lie after `date`, as a clock that went wrong has left them, to just before it, in their
    /// order; some hundreds at a time.
    ///
    /// - Returns: How many were moved; call again until it is 0.
    package func pullBackUses(to date: Date) throws -> Int {
        let now = date.microseconds
        // What is ahead by less is the same time: uses are stamped a microsecond apart at least.
        let wrong = now.addingReportingOverflow(60_000_000).partialValue
        let counting = "SELECT COUNT(*) FROM resource WHERE pinned = ? AND lastUsedAt > ?"
        let chunk = 512
        return try write { db in
            let late = try [0, 1].map { try Int64.fetchOne(db, sql: counting, arguments: [$0, wrong]) ?? 0 }
            var moved = 0
            for pinned in [0, 1] where late[pinned] > 0 {
                let ids = try Int64.fetchAll(
                    db,
                    sql: "SELECT id FROM resource WHERE pinned = ? AND lastUsedAt > ? ORDER BY lastUsedAt, id LIMIT ?",
                    arguments: [pinned, wrong, chunk])
                let update = try db.cachedStatement(sql: "UPDATE resource SET lastUsedAt = ? WHERE id = ?")
                for (place, id) in ids.enumerated() {
                    try update.execute(arguments: [now - late[pinned] + Int64(place), id])
                }
                moved += ids.count
            }
            return moved
        }
    }

    // MARK: - Rows

    private var resourceQuery: String {
        """
        SELECT resource.key, url, contentType, pinned, createdAt, lastUsedAt,
            generation.id, identifier, length, version, fields, storedBytes,
            tidyEpoch < (SELECT value FROM setting WHERE name = 'tidyEpoch'),
            \(isOfVersion1 ? "1, NULL" : "format, landed")
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
        """
    }

    private static func resource(_ row: Row) -> ResourceRecord {
        var record = ResourceRecord(
            key: row[0], url: row[1], contentType: row[2], isPinned: row[3], createdAt: Date(microseconds: row[4]),
            lastUsedAt: Date(microseconds: row[5]))
        if let id: Int64 = row[6], let data: Data = row[7], let identifier = GenerationIdentifier(data) {
            let landed: Data? = row[14]
            record.generation = GenerationRecord(
                id: id, identifier: identifier, length: row[8], version: row[9], fields: row[10], storedBytes: row[11],
                needsTidying: row[12], format: row[13],
                // One that can't be read is worked out from the blocks, as if it were not there.
                landed: landed.flatMap { try? ByteRangeSet(decoding: Array($0)) })
        }
        return record
    }

    /// Scheme, host and path of a URL: cut before `?` and `#`, and without `user:password@`.
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
