import ByteRanges
package import Foundation
import GRDB

extension Catalog {
    /// The resource with this key, and the version of it that is kept.
    package func resource(key: String) throws -> ResourceRecord? {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: resourceQuery + " WHERE resource.key = ?")
            return try Row.fetchOne(statement, arguments: [cipher.name(of: key)]).map { try resource($0) }
        }
    }

    /// All resources, by URL and key; for lists that people read.
    package func resources() throws -> [ResourceRecord] {
        let resources = try read { db in
            try Row.fetchAll(db, sql: resourceQuery + " ORDER BY resource.url, resource.key").map {
                try resource($0)
            }
        }
        // Enciphered, they are in no order.
        return cipher.isPlain ? resources : resources.sorted { ($0.url, $0.key) < ($1.url, $1.key) }
    }

    /// The resources that were used last, the last one first, and how many there are.
    package func recentResources(limit: Int) throws -> (resources: [ResourceRecord], count: Int) {
        try read { db in
            // One index for each of them.
            let recent = try [0, 1].flatMap { pinned in
                try Row.fetchAll(
                    db,
                    sql: resourceQuery + " WHERE pinned = \(pinned) ORDER BY lastUsedAt DESC, resource.id DESC LIMIT ?",
                    arguments: [limit]
                ).map { try resource($0) }
            }
            let count = try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM resource") ?? 0
            return (Array(recent.sorted { $0.lastUsedAt > $1.lastUsedAt }.prefix(limit)), count)
        }
    }

    /// The keys of a presentation's parts.
    package func parts(of presentation: String) throws -> [String] {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: "SELECT key FROM resource WHERE presentation = (SELECT id FROM resource WHERE key = ?)")
            return try String.fetchAll(statement, arguments: [cipher.name(of: presentation)])
                .map { cipher.key(of: $0) }
        }
    }

    /// Some keys, in the catalog's order, from the one after `key` on.
    package func keys(after key: String, limit: Int) throws -> [String] {
        try readOnce { db in
            // A key of another type, as in a damaged catalog, comes after all texts, again and again.
            try String.fetchAll(
                db,
                sql: """
                    SELECT key FROM resource WHERE key > ? AND typeof(key) = 'text' ORDER BY key LIMIT ?
                    """,
                arguments: [cipher.name(of: key), limit]
            ).map { cipher.key(of: $0) }
        }
    }

    /// Pins or unpins a resource, and what is a part of it; what a set of downloads has stays pinned.
    ///
    /// - Returns: False if the catalog knows no such resource.
    package func setPinned(_ isPinned: Bool, key: String) throws -> Bool {
        try write { db in try setPinned(isPinned, name: cipher.name(of: key), db) }
    }

    /// Whether the resource is kept from eviction; false if it is not known.
    package func isPinned(_ key: String) throws -> Bool {
        try readOnce { db in
            let statement = try db.cachedStatement(sql: "SELECT pinned FROM resource WHERE key = ?")
            return try Bool.fetchOne(statement, arguments: [cipher.name(of: key)]) ?? false
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
    /// A presentation's parts come where it was used last, its later parts first, then itself.
    ///
    /// - Parameters:
    ///   - limit: How many at most.
    ///   - position: Where to go on, from the last one of the former call; nil begins.
    package func leastRecentlyUsed(limit: Int, after position: EvictionPosition? = nil) throws -> [EvictionCandidate] {
        while true {
            let (candidates, late) = try candidates(limit: limit, after: position)
            guard !late.isEmpty, isWritable else { return candidates }
            try write { db in
                let update = try db.cachedStatement(sql: "UPDATE resource SET lastUsedAt = ? WHERE id = ?")
                for (id, date) in late { try update.execute(arguments: [date, id]) }
            }
        }
    }

    /// As recorded, and for parts whose presentation was used later, the date that they are to have.
    private func candidates(
        limit: Int, after position: EvictionPosition?
    ) throws -> (candidates: [EvictionCandidate], late: [(id: Int64, lastUsedAt: Int64)]) {
        try readOnce { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT resource.key, generation.storedBytes, resource.lastUsedAt, resource.id,
                        whole.lastUsedAt - 1, resource.usedSealed
                    FROM resource LEFT JOIN generation ON generation.resource = resource.id
                        LEFT JOIN resource AS whole ON whole.id = resource.presentation
                    WHERE resource.pinned = 0 AND resource.lastUsedAt >= ?1
                        AND (resource.lastUsedAt > ?1 OR resource.id < ?2)
                    ORDER BY resource.lastUsedAt, resource.id DESC LIMIT ?3
                    """)
            let rows = try Row.fetchCursor(
                statement, arguments: [position?.lastUsedAt ?? .min, position?.resource ?? .max, limit])
            var candidates: [EvictionCandidate] = []
            var late: [(id: Int64, lastUsedAt: Int64)] = []
            while let row = try rows.next() {
                let lastUsedAt: Int64 = try row.decode(atIndex: 2)
                let id: Int64 = try row.decode(atIndex: 3)
                if let date: Int64 = try row.decode(atIndex: 4), date > lastUsedAt { late.append((id, date)) }
                let name: String = try row.decode(atIndex: 0)
                // What can't be read has been changed, and goes like what was used at some time.
                let date = try? cipher.open(row, 5, number: 2, .lastUsedAt, of: name)
                candidates.append(
                    EvictionCandidate(
                        key: cipher.key(of: name), storedBytes: Self.byteCount(try row.decode(atIndex: 1)),
                        lastUsedAt: date ?? .distantPast,
                        position: EvictionPosition(lastUsedAt: lastUsedAt, resource: id)))
            }
            return (candidates, late)
        }
    }

    /// The most recent date of use, or `nil` if nothing is stored or the date can't be read.
    func newestUse() throws -> Date? {
        try readOnce { db in
            // Pinned and unpinned resources each have an index.
            let dates = try [0, 1].compactMap { pinned -> Date? in
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT key, usedSealed, lastUsedAt FROM resource WHERE pinned = \(pinned)
                        ORDER BY lastUsedAt DESC LIMIT 1
                        """)
                guard let row else { return nil }
                // A date that another program has changed is ignored.
                return try? cipher.open(row, 1, number: 2, .lastUsedAt, of: try row.decode(atIndex: 0))
            }
            return dates.max()
        }
    }

    /// Moves dates of use that lie after `date`, as a clock that went wrong has left them, to just before it, in their
    /// order; some hundreds at a time.
    ///
    /// - Returns: How many were moved; call again until it is 0.
    package func pullBackUses(to date: Date) throws -> Int {
        // The order of an encrypted cache goes by no clock.
        guard cipher.isPlain else { return 0 }
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
            tidyEpoch IS NOT (SELECT value FROM setting WHERE name = 'tidyEpoch'),
            \(version < 2 ? "1, NULL" : "format, landed"),
            \(version < 3 ? "NULL" : "(SELECT key FROM resource AS whole WHERE whole.id = resource.presentation)"),
            \(version < 4 ? "NULL, NULL, 0" : "createdSealed, usedSealed, secret"),
            \(version < 6 ? "0" : "rowBytes")
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
        """
    }

    /// - Throws: `RowDecodingError` where a column holds another type than its own: a subscript would trap.
    private func resource(_ row: Row) throws -> ResourceRecord {
        let name: String = try row.decode(atIndex: 0)
        do {
            return try resource(row, named: name)
        } catch is CatalogCipher.UnreadableValue {
            var record = ResourceRecord(
                key: cipher.key(of: name), url: Self.unreadable, isPinned: try row.decode(atIndex: 3),
                createdAt: .distantPast, lastUsedAt: .distantPast)
            record.isUnreadable = true
            return record
        }
    }

    private func resource(_ row: Row, named name: String) throws -> ResourceRecord {
        let presentation: String? = try row.decode(atIndex: 15)
        var record = ResourceRecord(
            key: cipher.key(of: name), url: try cipher.open(row, 1, .url, of: name) ?? Self.unreadable,
            contentType: try cipher.open(row, 2, .contentType, of: name), isPinned: try row.decode(atIndex: 3),
            createdAt: try cipher.open(row, 16, number: 4, .createdAt, of: name),
            lastUsedAt: try cipher.open(row, 17, number: 5, .lastUsedAt, of: name),
            presentation: presentation.map { cipher.key(of: $0) })
        guard let id: Int64 = try row.decode(atIndex: 6), let data: Data = try row.decode(atIndex: 7),
            let identifier = GenerationIdentifier(data)
        else { return record }
        let landed = Self.landed(try row.decode(atIndex: 14))
        let length: Int64? = try row.decode(atIndex: 8)
        let place = CatalogCipher.place(of: identifier, length: length, in: name)
        let end = max(0, landed?.bounds?.upperBound ?? 0)
        record.generation = GenerationRecord(
            id: id, identifier: identifier,
            // One that can't be is not known: the origin is asked.
            length: length.flatMap { $0 >= end && $0 <= Block.offsetLimit ? $0 : nil },
            version: try cipher.open(row, 9, .version, of: place) ?? "",
            fields: try cipher.open(row, 10, .fields, of: place) ?? "",
            storedBytes: Self.byteCount(try row.decode(atIndex: 11)),
            rowBytes: Self.byteCount(try row.decode(atIndex: 19)), needsTidying: try row.decode(atIndex: 12),
            format: try row.decode(atIndex: 13),
            secret: try row.decode(atIndex: 18), landed: landed)
        return record
    }

    /// What people are shown of a record that somebody else has changed.
    static let unreadable = "(a record that can't be read)"

    /// A row's address; nil if it was changed.
    static func url(_ row: Row, _ index: Int, _ cipher: CatalogCipher, of name: String) throws -> String? {
        do {
            return try cipher.open(row, index, .url, of: name)
        } catch is CatalogCipher.UnreadableValue {
            return nil
        }
    }

    /// Which bytes blocks hold; nil for what can't be: that is worked out from the blocks, as if it were not there.
    static func landed(_ encoded: Data?) -> ByteRangeSet? {
        guard let landed = encoded.flatMap({ try? ByteRangeSet(decoding: Array($0)) }),  // Else it can't be read.
            landed.bounds?.upperBound ?? 0 <= Block.offsetLimit
        else { return nil }
        return landed
    }

    /// A recorded number of bytes, between 0 and ``Block/offsetLimit``.
    static func byteCount(_ recorded: Int64?) -> Int64 { min(max(recorded ?? 0, 0), Block.offsetLimit) }

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
