import ByteRanges
import Foundation
import GRDB

/// Changes to the catalog that are committed together; see ``Catalog/transaction(_:committed:failed:)``.
struct CatalogTransaction {
    let db: Database
    let catalog: Catalog

    var cipher: CatalogCipher { catalog.cipher }

    // MARK: - Versions

    /// Adds a version of a resource, and removes the records of the previous version.
    ///
    /// The date of creation does not change, unless it can't be read. The pin of a resource changes only if the
    /// resource is in a set, and is not pinned separately. The date of use becomes `date`.
    ///
    /// - Parameters:
    ///   - identifier: The name of the version's media file.
    ///   - key: The hash of the cache key, as 64 lower-case hexadecimal digits.
    ///   - url: The URL. Its user information, its query and its fragment are removed here.
    ///   - version: The version, as encoded by the engine.
    ///   - fields: Other values that the engine stores.
    ///   - rowBytes: The number of bytes that these values use on disk.
    /// - Returns: The version's number in the catalog, and the version that it replaces.
    func begin(
        _ identifier: GenerationIdentifier, key: String, url: String, version: String, length: Int64?,
        contentType: String?, fields: String, rowBytes: Int64 = GenerationDescription.leastRowBytes, at date: Date
    ) throws -> (id: Int64, replaced: RemovedResource?) {
        try Self.checkKey(key)
        let replaced = try stored(key)
        let key = cipher.name(of: key)
        let keepsDate = try replaced == nil || hasCreationDate(key)
        let ordinal = try catalog.ordinal(at: date, db)
        // The statement is prepared only once, because it may run many times per second.
        try db.cachedStatement(
            sql: """
                INSERT INTO resource (key, url, contentType, createdAt, lastUsedAt, createdSealed, usedSealed)
                VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)
                ON CONFLICT (key) DO UPDATE SET
                    url = excluded.url, contentType = excluded.contentType,
                    createdAt = CASE WHEN ?7 THEN createdAt ELSE excluded.createdAt END,
                    createdSealed = CASE WHEN ?7 THEN createdSealed ELSE excluded.createdSealed END,
                    lastUsedAt = CASE typeof(lastUsedAt)
                        WHEN 'integer' THEN MAX(lastUsedAt, excluded.lastUsedAt) ELSE excluded.lastUsedAt END,
                    usedSealed = excluded.usedSealed
                """
        ).execute(arguments: [
            key, try cipher.seal(Catalog.withoutSecrets(url), .url, of: key),
            try cipher.seal(contentType, .contentType, of: key), ordinal,
            try cipher.seal(date, .createdAt, of: key), try cipher.seal(date, .lastUsedAt, of: key), keepsDate,
        ])
        if replaced != nil {
            try db.cachedStatement(
                sql: "DELETE FROM generation WHERE resource = (SELECT id FROM resource WHERE key = ?)"
            ).execute(arguments: [key])
        }
        let place = CatalogCipher.place(of: identifier, length: length, in: key)
        try db.cachedStatement(
            sql: """
                INSERT INTO generation (resource, identifier, length, version, fields, tidyEpoch, landed, format, rowBytes)
                SELECT id, ?, ?, ?, ?, (SELECT value FROM setting WHERE name = 'tidyEpoch'), ?, ?, ?
                FROM resource WHERE key = ?
                """
        ).execute(arguments: [
            identifier.data, length, try cipher.seal(version, .version, of: place),
            try cipher.seal(fields, .fields, of: place), Data(ByteRangeSet().encoded()),
            catalog.format.rawValue, rowBytes, key,
        ])
        let id = db.lastInsertedRowID
        try pinDownload(key, isLengthKnown: length != nil)
        return (id, replaced)
    }

    /// Returns whether the creation date of a resource can be read. A row with a date that can't be read would count as
    /// missing again.
    private func hasCreationDate(_ name: String) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT createdSealed, createdAt FROM resource WHERE key = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return true }
        // The value can't be read if another program has changed it.
        return (try? cipher.open(row, 0, number: 1, .createdAt, of: name)) != nil
    }

    /// Returns the identifier of the version that is stored for the key; `nil` if there is none.
    func generation(of key: String) throws -> GenerationIdentifier? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT identifier FROM generation JOIN resource ON resource.id = generation.resource
                WHERE resource.key = ?
                """)
        return try Data.fetchOne(statement, arguments: [cipher.name(of: key)]).flatMap { GenerationIdentifier($0) }
    }

    /// The maximum number of ranges for which each change to blocks also records the ranges of all blocks. These ranges
    /// fit into one page of the database. For media with more ranges, the ranges are recorded once no reader uses the
    /// media.
    static let rangeLimit = 128

    /// Records changes to a version's blocks. A version that was removed is skipped.
    ///
    /// - Parameter withRanges: Whether the ranges of all blocks are also recorded. If not, they are computed from the
    ///   blocks when the version is opened.
    func apply(_ changes: BlockChanges, to generation: Int64, withRanges: Bool = true) throws {
        guard try exists(generation) else { return }
        if !changes.removed.isEmpty {
            let delete = try db.cachedStatement(sql: "DELETE FROM block WHERE generation = ? AND idx >= ? AND idx < ?")
            for range in changes.removed {
                let indices = Block.indices(touching: range)
                try delete.execute(arguments: [generation, indices.lowerBound, indices.upperBound])
            }
        }
        if !changes.sealed.isEmpty {
            let insert = try db.cachedStatement(
                sql: """
                    INSERT OR REPLACE INTO block (generation, idx, length, seal) VALUES (?, ?, ?, ?)
                    """)
            for block in changes.sealed {
                try insert.execute(arguments: [generation, block.index, block.length, block.seal.data])
            }
        }
        guard !withRanges else { return try setStoredRanges(changes.after, of: generation) }
        let sql = """
            UPDATE generation SET landed = NULL, storedBytes = ? WHERE id = ?
            """
        try db.cachedStatement(sql: sql).execute(arguments: [changes.after.byteCount, generation])
    }

    /// Records the resources that a version is a variant of.
    func setVariantOf(_ keys: [String], _ generation: Int64) throws {
        let insert = try db.cachedStatement(sql: "INSERT OR IGNORE INTO variant (base, generation) VALUES (?, ?)")
        for key in keys { try insert.execute(arguments: [cipher.name(of: key), generation]) }
    }

    /// Records the ranges of a version's blocks.
    func setStoredRanges(_ storedRanges: ByteRangeSet, of generation: Int64) throws {
        let sql = """
            UPDATE generation SET landed = ?, storedBytes = ? WHERE id = ?
            """
        try db.cachedStatement(sql: sql).execute(arguments: [
            Data(storedRanges.encoded()), storedRanges.byteCount, generation,
        ])
    }

    /// Changes the description of a version. A version that was removed is skipped.
    func describe(
        _ generation: Int64, length: Int64?, version: String, fields: String, contentType: String?,
        rowBytes: Int64 = GenerationDescription.leastRowBytes
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                SELECT resource.key, identifier FROM generation JOIN resource ON resource.id = generation.resource
                WHERE generation.id = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [generation]),
            let name = try? row.text(0),  // A row that can't be read counts as missing.
            let data = try? row.data(1), let identifier = GenerationIdentifier(data)  // As above.
        else { return }
        let place = CatalogCipher.place(of: identifier, length: length, in: name)
        try db.cachedStatement(
            sql: "UPDATE generation SET length = ?, version = ?, fields = ?, rowBytes = ? WHERE id = ?"
        )
        .execute(arguments: [
            length, try cipher.seal(version, .version, of: place), try cipher.seal(fields, .fields, of: place),
            rowBytes, generation,
        ])
        try db.cachedStatement(
            sql: "UPDATE resource SET contentType = ? WHERE id = (SELECT resource FROM generation WHERE id = ?)"
        ).execute(arguments: [try cipher.seal(contentType, .contentType, of: name), generation])
        if length != nil { try pinDownload(name, isLengthKnown: true) }
    }

    /// Pins a member of a set and its parts if the member's length is known, and otherwise unpins the member.
    ///
    /// A body of unknown length may never end. It is not pinned until it has ended, unless it or its presentation is
    /// pinned separately.
    private func pinDownload(_ name: String, isLengthKnown: Bool) throws {
        try db.cachedStatement(
            sql: """
                UPDATE resource SET pinned = ?1
                WHERE key = ?2 AND pinned <> ?1 AND EXISTS (SELECT 1 FROM download WHERE download.key = resource.key)
                    AND NOT EXISTS (SELECT 1 FROM handPin WHERE handPin.key = resource.key)
                    AND (?1 OR NOT EXISTS (
                        SELECT 1 FROM resource AS whole WHERE whole.id = resource.presentation AND whole.pinned))
                """
        ).execute(arguments: [isLengthKnown, name])
        guard isLengthKnown, db.changesCount > 0 else { return }
        try db.cachedStatement(
            sql: "UPDATE resource SET pinned = 1 WHERE presentation = (SELECT id FROM resource WHERE key = ?)"
        ).execute(arguments: [name])
    }

    private func exists(_ generation: Int64) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM generation WHERE id = ?")
        return try Int.fetchOne(statement, arguments: [generation]) != nil
    }

    // MARK: - Resources

    /// Records a use of a resource and of its presentation. A date moves back only if it is more than a minute in the
    /// future.
    ///
    /// - Parameter isEnd: Whether a use is ending, which does not start a playback session.
    func recordUse(of key: String, at date: Date, isEnd: Bool = false) throws {
        let key = cipher.name(of: key)
        let ordinal = try catalog.ordinal(at: date, db)
        if !isEnd { try recordSession(key, at: date) }
        // A date that is far ahead was recorded while the clock was wrong.
        try db.cachedStatement(
            sql: """
                UPDATE resource SET lastUsedAt = ?1, usedSealed = ?3
                WHERE key = ?2 AND (lastUsedAt < ?1 OR lastUsedAt - 60000000 > ?1)
                """
        ).execute(arguments: [ordinal, key, try cipher.seal(date, .lastUsedAt, of: key)])
        let naming = try db.cachedStatement(
            sql: """
                SELECT whole.key FROM resource JOIN resource AS whole ON whole.id = resource.presentation
                WHERE resource.key = ?
                """)
        guard let whole = try String.fetchOne(naming, arguments: [key]) else { return }
        if !isEnd { try recordSession(whole, at: date) }
        // The presentation's date is just after that of its part, so that the presentation is evicted last.
        try db.cachedStatement(
            sql: """
                UPDATE resource SET lastUsedAt = ?1 + 1, usedSealed = ?3
                WHERE key = ?2 AND (lastUsedAt <= ?1 OR lastUsedAt - 60000000 > ?1)
                """
        ).execute(arguments: [ordinal, whole, try cipher.seal(date, .lastUsedAt, of: whole)])
    }

    /// Counts a playback session if the last use was long enough ago.
    private func recordSession(_ name: String, at date: Date) throws {
        let statement = try db.cachedStatement(sql: "SELECT lastUsedAt, usedSealed FROM resource WHERE key = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return }
        do {
            let last = try cipher.open(row, 1, number: 0, .lastUsedAt, of: name)
            guard date.timeIntervalSince(last) > EvictionOrder.sessionGap else { return }
        } catch is CatalogCipher.UnreadableValue {
            return
        }
        try changeHistory(name) { history in
            history.sessions = min(255, history.sessions + 1)
            history.isConsumed = false
        }
    }

    /// Records the position at which playback of a resource stopped; `nil` for its end.
    ///
    /// - Parameter isConsumed: Whether the media is to be played only once, and was played to its end.
    func recordStop(_ stop: Int64?, isConsumed: Bool, of key: String) throws {
        try changeHistory(cipher.name(of: key)) { history in
            history.stop = stop
            history.isConsumed = isConsumed
        }
    }

    /// Records the app's tag for a resource.
    ///
    /// - Returns: `false` if the resource is not recorded.
    func recordTag(_ tag: String, of key: String) throws -> Bool {
        try changeHistory(cipher.name(of: key)) { $0.tag = tag }
    }

    @discardableResult
    private func changeHistory(_ name: String, _ change: (inout PlaybackHistory) -> Void) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT history FROM resource WHERE key = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return false }
        let previous = cipher.history(row, 0, of: name)
        var history = previous
        change(&history)
        guard history != previous else { return true }
        try db.cachedStatement(sql: "UPDATE resource SET history = ? WHERE key = ?")
            .execute(arguments: [try cipher.seal(history.text, .history, of: name), name])
        return true
    }

    /// Makes a resource part of a presentation if both are recorded and the presentation is not a part itself. The
    /// resource is pinned if the presentation is pinned.
    ///
    /// Parts of the resource become parts of the presentation. For example, a master playlist includes the segments of
    /// its media playlists. A manifest from another origin may also reference the resource. Therefore, a resource that
    /// is pinned, either separately or as part of another presentation, is not changed.
    func setPresentation(_ presentation: String, of key: String) throws {
        guard presentation != key else { return }
        let (presentation, key) = (cipher.name(of: presentation), cipher.name(of: key))
        try db.cachedStatement(
            sql: """
                UPDATE resource SET presentation = whole.id, pinned = MAX(resource.pinned, whole.pinned)
                FROM (SELECT id, pinned FROM resource WHERE key = ?1 AND presentation IS NULL) AS whole
                WHERE resource.key = ?2 AND resource.presentation IS NOT whole.id
                    AND NOT (resource.presentation IS NULL AND resource.pinned)
                    AND NOT EXISTS (
                        SELECT 1 FROM resource AS other WHERE other.id = resource.presentation AND other.pinned)
                """
        ).execute(arguments: [presentation, key])
        guard db.changesCount > 0 else { return }
        try db.cachedStatement(
            sql: """
                UPDATE resource SET presentation = (SELECT presentation FROM resource WHERE key = ?1)
                WHERE presentation = (SELECT id FROM resource WHERE key = ?1)
                """
        ).execute(arguments: [key])
    }

    /// Removes a resource and its pin.
    ///
    /// - Parameter unlessPinned: Whether to skip a pinned resource.
    /// - Returns: The removed resource; `nil` if it was not recorded, or if it was skipped.
    func remove(_ key: String, unlessPinned: Bool = false) throws -> RemovedResource? {
        guard let stored = try stored(key), !unlessPinned || !stored.isPinned else { return nil }
        try db.cachedStatement(sql: "DELETE FROM resource WHERE key = ?").execute(arguments: [
            cipher.name(of: key)
        ])
        return stored
    }

    private func stored(_ key: String) throws -> RemovedResource? {
        let statement = try db.cachedStatement(sql: Catalog.resourceQuery + " WHERE resource.key = ?")
        guard let row = try Row.fetchOne(statement, arguments: [cipher.name(of: key)]),
            let record = try catalog.resource(row, db)
        else { return nil }
        if var stored = record.generation {
            let correction = try catalog.counts.correct(&stored, of: record, db)
            return RemovedResource(
                key: key, url: record.url, isPinned: record.isPinned, generation: stored.identifier,
                storedBytes: stored.storedBytes, rowBytes: stored.rowBytes, correction: correction)
        }
        // For an unreadable record, the counts of the row are returned, because the sums include them.
        let name = (try? row.data(7)) ?? nil  // A value of a different type does not name a file.
        let identifier = name.flatMap { GenerationIdentifier($0) }
        // No row names the file of this version. The next sweep of all files removes it.
        if identifier == nil, !row.hasNull(atIndex: 6) { try db.set("sweepPending", to: true.databaseValue) }
        return RemovedResource(
            key: key, url: record.url, isPinned: record.isPinned, generation: identifier,
            storedBytes: min(row.byteCount(11), row.storedRanges(14)?.byteCount ?? .max), rowBytes: row.byteCount(18))
    }

    static func checkKey(_ key: String) throws {
        guard CacheKey(rawValue: key) != nil else {
            throw CacheError(.invalidArgument, "“\(key.prefix(80))” is not a cache key of 64 hexadecimal digits")
        }
    }
}
