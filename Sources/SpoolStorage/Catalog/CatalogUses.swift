import ByteRanges
import Foundation
import GRDB

/// A value type that reads the resources that may be evicted, and reads and corrects the order of their use in the
/// catalog.
struct CatalogUses {
    private let catalog: Catalog
    private var cipher: CatalogCipher { catalog.cipher }

    init(_ catalog: Catalog) { self.catalog = catalog }

    /// A resource that may be evicted.
    struct Evictable {
        var key: String
        var presentation: String?
        /// The stored ranges.
        var storedRanges: ByteRangeSet
        var lastUsedAt: Date
        var history: PlaybackHistory
        /// The scheme, host and path of the resource's URL; empty if another program has changed the URL.
        var url: String
    }

    /// Calls `body` with every resource that is not pinned, the least recently used first. The parts of a presentation
    /// count as used when the presentation was used, and follow in order of creation.
    func forEachEvictable(_ body: (Evictable) -> Void) throws {
        try catalog.readOnce { db in
            let rows = try Row.fetchCursor(
                db,
                sql: evictableQuery + """
                     WHERE resource.pinned = 0
                    ORDER BY MAX(resource.lastUsedAt, COALESCE(whole.lastUsedAt, resource.lastUsedAt)), resource.id
                    """)
            while let row = try rows.next() {
                if let evictable = try evictable(row, db) { body(evictable) }
            }
        }
    }

    /// Returns one resource, and also its parts if `andParts` is `true`. Resources that are pinned or not recorded are
    /// omitted.
    func evictables(of key: String, andParts: Bool = false) throws -> [Evictable] {
        try catalog.readOnce { db in
            let name = cipher.name(of: key)
            // Each condition has its own index, so each has its own statement.
            var found: [Row] = []
            let own = try db.cachedStatement(
                sql: evictableQuery + " WHERE resource.pinned = 0 AND resource.key = ?")
            if let row = try Row.fetchOne(own, arguments: [name]) { found.append(row) }
            if andParts {
                let parts = try db.cachedStatement(
                    sql: evictableQuery + """
                         WHERE resource.presentation = (SELECT id FROM resource WHERE key = ?) AND resource.pinned = 0
                        ORDER BY resource.id
                        """)
                found += try Row.fetchAll(parts, arguments: [name])
            }
            return try found.compactMap { try evictable($0, db) }
        }
    }

    private var evictableQuery: String {
        """
        SELECT resource.key, whole.key, landed, storedBytes, resource.lastUsedAt, resource.usedSealed, resource.history,
            resource.url, generation.id
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
            LEFT JOIN resource AS whole ON whole.id = resource.presentation
        """
    }

    /// Returns the resource in a row; `nil` if the row's key is not text, in which case no query finds it.
    private func evictable(_ row: Row, _ db: Database) throws -> Evictable? {
        guard let name = try? row.text(0) else { return nil }  // Fails if the key is not text.
        let whole = (try? row.text(1)) ?? nil  // If this fails, the row of the presentation is damaged, not this one.
        let storedRanges =
            try row.storedRanges(2, count: 3) ?? row.number(8).map { try CatalogBlocks.storedRanges(of: $0, db) }
        // If another program has changed the date, it counts as unknown.
        let date = try? cipher.open(row, 5, number: 4, .lastUsedAt, of: name)
        let url = try? Catalog.url(row, 7, cipher, of: name)  // A value of a different type has no host.
        return Evictable(
            key: cipher.key(of: name), presentation: whole.map { cipher.key(of: $0) },
            storedRanges: storedRanges ?? [],
            lastUsedAt: date ?? .distantPast, history: cipher.history(row, 6, of: name), url: url.flatMap { $0 } ?? "")
    }

    // MARK: - The order of use

    /// Returns the resources that are not pinned, the least recently used first, including those without bytes.
    ///
    /// The parts of a presentation count as used when the presentation was used. The last part of a presentation is
    /// listed first, and the presentation itself last.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of resources.
    ///   - position: The position of the last resource of the previous call; `nil` for the first call.
    func leastRecentlyUsed(limit: Int, after position: EvictionPosition? = nil) throws -> [EvictionCandidate] {
        while true {
            let (candidates, late) = try candidates(limit: limit, after: position)
            guard !late.isEmpty, catalog.isWritable else { return candidates }
            try catalog.write { db in
                let update = try db.cachedStatement(sql: "UPDATE resource SET lastUsedAt = ? WHERE id = ?")
                for (id, date) in late { try update.execute(arguments: [date, id]) }
            }
        }
    }

    /// Returns the recorded order, and the parts that need a later date because their presentation was used later.
    private func candidates(
        limit: Int, after position: EvictionPosition?
    ) throws -> (candidates: [EvictionCandidate], late: [(id: Int64, lastUsedAt: Int64)]) {
        try catalog.readOnce { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT resource.key, \(Catalog.storedBytes), resource.lastUsedAt, resource.id,
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
                let key = try? row.text(0)  // A repair removes rows whose number or key is invalid.
                guard let id = row.number(3), let name = key else { continue }
                guard let lastUsedAt = row.number(2) else {
                    // A date that is not a number can't be sorted, so it becomes the oldest date.
                    late.append((id, 0))
                    continue
                }
                if let date = row.number(4), date > lastUsedAt { late.append((id, date)) }
                // A date that can't be read was changed by another program, and counts as unknown.
                let date = try? cipher.open(row, 5, number: 2, .lastUsedAt, of: name)
                candidates.append(
                    EvictionCandidate(
                        key: cipher.key(of: name), storedBytes: row.byteCount(1),
                        lastUsedAt: date ?? .distantPast,
                        position: EvictionPosition(lastUsedAt: lastUsedAt, resource: id)))
            }
            return (candidates, late)
        }
    }

    /// Returns the most recent date of use, or `nil` if nothing is stored or the date can't be read.
    func newestUse() throws -> Date? {
        try catalog.readOnce { db in
            // Pinned and unpinned resources each have an index.
            let dates = try [0, 1].compactMap { pinned -> Date? in
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT key, usedSealed, lastUsedAt FROM resource
                        WHERE pinned = \(pinned) AND typeof(lastUsedAt) = 'integer'
                        ORDER BY lastUsedAt DESC LIMIT 1
                        """)
                // A date that another program has changed is ignored.
                guard let row, let name = try? row.text(0) else { return nil }  // Fails if the key is not text.
                return try? cipher.open(row, 1, number: 2, .lastUsedAt, of: name)  // As above.
            }
            return dates.max()
        }
    }

    /// Replaces dates of use that are more than a minute after `date` with dates just before it. Such dates were
    /// recorded while the clock was wrong. Each call replaces up to 1024 dates, or all dates of an encrypted cache, and
    /// preserves their order.
    ///
    /// - Returns: The number of dates that were replaced. Repeat the call until the result is 0.
    func clampFutureUses(to date: Date) throws -> Int {
        guard cipher.isPlain else { return try clampFutureSealedUses(to: date) }
        let now = date.microseconds
        // Dates that are less than a minute ahead are not wrong, because uses are recorded at least one microsecond
        // apart.
        let wrong = now + 60_000_000
        let counting = "SELECT COUNT(*) FROM resource WHERE pinned = ? AND lastUsedAt > ?"
        let chunk = 512
        return try catalog.write { db in
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

    /// Replaces encrypted dates. They do not affect the order, so all of them become `date`.
    private func clampFutureSealedUses(to date: Date) throws -> Int {
        // Microseconds have a limited range, so that a replaced date is never wrong again.
        let wrong = date.microseconds + 60_000_000
        let late = try catalog.readOnce { db in
            let rows = try Row.fetchCursor(db, sql: "SELECT key, usedSealed, lastUsedAt, id FROM resource")
            var late: [(id: Int64, name: String)] = []
            while let row = try rows.next() {
                let key = try? row.text(0)  // A repair removes rows whose key is invalid.
                guard let id = row.number(3), let name = key else { continue }
                let used = try? cipher.open(row, 1, number: 2, .lastUsedAt, of: name)  // A changed date counts as old.
                if let used, used.microseconds > wrong { late.append((id, name)) }
            }
            return late
        }
        for start in stride(from: 0, to: late.count, by: 512) {
            try catalog.write { db in
                let update = try db.cachedStatement(sql: "UPDATE resource SET usedSealed = ? WHERE id = ?")
                for (id, name) in late[start..<min(late.count, start + 512)] {
                    try update.execute(arguments: [try cipher.seal(date, .lastUsedAt, of: name), id])
                }
            }
        }
        return late.count
    }
}
