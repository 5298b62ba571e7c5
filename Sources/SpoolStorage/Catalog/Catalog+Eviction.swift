import ByteRanges
import Foundation
import GRDB

/// What eviction asks of the catalog.
extension Catalog {
    /// A resource that may be evicted.
    struct Evictable {
        var key: String
        var presentation: String?
        /// Its bytes; where the record does not say which, as many from the beginning.
        var landed: ByteRangeSet
        var lastUsedAt: Date
        var history: PlayHistory
        /// Scheme, host and path; empty where it was changed.
        var url: String
    }

    /// Tells of every resource that is not pinned, the one used longest ago first; a presentation's parts when that was
    /// used, in the order in which they came.
    func forEachEvictable(_ body: (Evictable) -> Void) throws {
        try readOnce { db in
            let rows = try Row.fetchCursor(
                db,
                sql: evictableQuery + """
                     WHERE resource.pinned = 0
                    ORDER BY MAX(resource.lastUsedAt, COALESCE(whole.lastUsedAt, resource.lastUsedAt)), resource.id
                    """)
            while let row = try rows.next() { body(try evictable(row)) }
        }
    }

    /// The same of one resource, and with `andParts` of its parts; nothing where it is pinned, or not there.
    func evictables(of key: String, andParts: Bool = false) throws -> [Evictable] {
        try readOnce { db in
            let name = cipher.name(of: key)
            // One index for each.
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
            return try found.map { try evictable($0) }
        }
    }

    private var evictableQuery: String {
        """
        SELECT resource.key, whole.key, landed, storedBytes, resource.lastUsedAt, resource.usedSealed, resource.history,
            resource.url
        FROM resource LEFT JOIN generation ON generation.resource = resource.id
            LEFT JOIN resource AS whole ON whole.id = resource.presentation
        """
    }

    private func evictable(_ row: Row) throws -> Evictable {
        let name: String = try row.decode(atIndex: 0)
        let whole: String? = try row.decode(atIndex: 1)
        let landed = Self.landed(try row.decode(atIndex: 2))
        let date = try? cipher.open(row, 5, number: 4, .lastUsedAt, of: name)  // Changed: used at some time.
        let url = try? Self.url(row, 7, cipher, of: name)  // Of another type: of no host.
        let count = Self.byteCount(try row.decode(atIndex: 3))
        return Evictable(
            key: cipher.key(of: name), presentation: whole.map { cipher.key(of: $0) },
            landed: landed ?? (count > 0 ? [0..<count] : []),
            lastUsedAt: date ?? .distantPast, history: history(row, 6, of: name), url: url.flatMap { $0 } ?? "")
    }

    /// What a row says of plays.
    func history(_ row: Row, _ index: Int, of name: String) -> PlayHistory {
        PlayHistory(try? cipher.open(row, index, .history, of: name))  // Changed: nothing.
    }
}
