import Foundation
import GRDB

/// The catalog's tables.
///
/// The transaction that changes blocks also updates all byte counts, with statements and triggers.
enum CatalogSchema {
    /// The only version of the tables that this version of Spool reads.
    static let version = "9"
    /// The versions of earlier catalogs, which were never released.
    private static let earlierVersions: Set = ["1", "2", "3", "offline", "4", "5", "6", "7", "8"]

    static var migrator: DatabaseMigrator {
        // A row that refers to a missing row counts as missing, and does not prevent the catalog from being opened.
        var migrator = DatabaseMigrator().disablingDeferredForeignKeyChecks()
        migrator.registerMigration(version) { db in
            try db.execute(sql: tables)
            try db.execute(sql: downloadTables)
            try db.execute(sql: sums)
        }
        return migrator
    }

    /// Rejects a catalog of a different version.
    ///
    /// - Throws: ``CacheError``: `storage` if an earlier version of Spool wrote it, or `catalogTooNew` if a newer one
    ///   did.
    static func refuseOther(_ db: Database, path: String) throws {
        guard try db.tableExists("grdb_migrations") else { return }
        guard try migrator.appliedIdentifiers(db).isDisjoint(with: earlierVersions) else {
            throw CacheError(
                .storage,
                "“\(path)” was written by an earlier version of Spool, whose format this version can't read; remove the "
                    + "cache directory or choose another one, and the media will be fetched again")
        }
        guard try !migrator.hasBeenSuperseded(db) else {
            throw CacheError(.catalogTooNew, "“\(path)” was written by a newer version of Spool")
        }
    }

    /// Returns whether the catalog has exactly the tables, indices and triggers of this version, but no recorded
    /// version, because another program removed the record.
    static func isVersionLost(_ db: Database) throws -> Bool {
        let isRecorded = try db.tableExists("grdb_migrations") && !migrator.appliedIdentifiers(db).isEmpty
        guard try !isRecorded && db.tableExists("resource") else { return false }
        let new = try DatabaseQueue()
        try migrator.migrate(new)
        return try definitions(db) == new.read { try definitions($0) }
    }

    private static func definitions(_ db: Database) throws -> [String: String] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT type || ' ' || name, sql FROM sqlite_master
                WHERE name NOT LIKE 'sqlite%' AND name <> 'grdb_migrations'
                """)
        return Dictionary(rows.map { ($0[0] ?? "", $0[1] ?? "") }, uniquingKeysWith: { first, _ in first })
    }

    /// Records the version of the tables again.
    static func restoreVersion(_ db: Database) throws {
        try db.execute(
            sql: "CREATE TABLE IF NOT EXISTS grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        try db.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES (?)", arguments: [version])
    }

    /// Checks that all tables and columns exist.
    ///
    /// - Throws: `DatabaseError` with `SQLITE_ERROR` if one is missing.
    static func check(_ db: Database) throws {
        let statements = """
            SELECT name, value FROM setting;
            SELECT id, key, url, contentType, pinned, createdAt, lastUsedAt, presentation, createdSealed, usedSealed,
                history FROM resource;
            SELECT id, resource, identifier, length, version, fields, storedBytes, tidyEpoch, landed, format,
                rowBytes FROM generation;
            SELECT generation, idx, length, seal FROM block;
            SELECT base, generation FROM variant;
            SELECT id, collection, key, url, source FROM download;
            SELECT key FROM handPin
            """
        for statement in statements.split(separator: ";") { _ = try db.makeStatement(sql: String(statement)) }
    }

    /// The tables for media.
    ///
    /// - Dates are microseconds since 1970.
    /// - AUTOINCREMENT: a late record for a removed generation must not apply to another generation that reuses its
    ///   number.
    /// - `resource.presentation`: the resource that references this one as a part, such as a segment's playlist. A
    ///   presentation and its parts are used, pinned and removed together. A presentation is never part of another one.
    ///   A part's `lastUsedAt` may be earlier than that of the presentation. The date is corrected when the part is
    ///   about to be evicted, so that a use of thousands of parts changes only one row. Among parts with the same date,
    ///   later parts are evicted first, because the next playback needs the first parts.
    /// - `createdSealed`, `usedSealed`: the encrypted dates of an encrypted cache. There, `createdAt` and `lastUsedAt`
    ///   only define an order.
    /// - `history`: the playback history of a resource, as `PlaybackHistory.text`, encrypted in an encrypted cache.
    /// - `tidyEpoch`: the number of unclean shutdowns when bytes that no block claims were last removed from the
    ///   generation's file.
    /// - `landed`: the union of the ranges of the generation's blocks, encoded with `ByteRangeSet.encoded()`, so that
    ///   opening long media reads only one row.
    /// - `format`: the layout of a block's bytes in the file. 1 is unencrypted.
    /// - `rowBytes`: the bytes that a generation uses on disk in addition to its media, as computed by
    ///   `GenerationDescription.rowBytes(url:)`.
    /// - `variant`: the keys of the resources that a generation is a variant of. A query for all variants of a resource
    ///   reads only the rows of these variants. The resource `base` does not have to be stored.
    private static let tables = """
        CREATE TABLE setting (
            name TEXT NOT NULL PRIMARY KEY,
            value NOT NULL
        ) WITHOUT ROWID;

        CREATE TABLE resource (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL UNIQUE,
            url TEXT NOT NULL,
            contentType TEXT,
            pinned INTEGER NOT NULL DEFAULT 0,
            createdAt INTEGER NOT NULL,
            lastUsedAt INTEGER NOT NULL,
            presentation INTEGER REFERENCES resource (id) ON DELETE SET NULL,
            createdSealed BLOB,
            usedSealed BLOB,
            history
        );
        CREATE INDEX resourceByUse ON resource (lastUsedAt, id DESC) WHERE pinned = 0;
        CREATE INDEX resourcePinned ON resource (lastUsedAt, id) WHERE pinned = 1;
        CREATE INDEX resourceByPresentation ON resource (presentation) WHERE presentation IS NOT NULL;

        CREATE TABLE generation (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            resource INTEGER NOT NULL UNIQUE REFERENCES resource (id) ON DELETE CASCADE,
            identifier BLOB NOT NULL UNIQUE,
            length INTEGER,
            version TEXT NOT NULL,
            fields TEXT NOT NULL,
            storedBytes INTEGER NOT NULL DEFAULT 0,
            tidyEpoch INTEGER NOT NULL,
            landed BLOB,
            format INTEGER NOT NULL DEFAULT 1,
            rowBytes INTEGER NOT NULL DEFAULT 0
        );

        CREATE TABLE block (
            generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
            idx INTEGER NOT NULL,
            length INTEGER NOT NULL,
            seal BLOB NOT NULL,
            PRIMARY KEY (generation, idx)
        ) WITHOUT ROWID;

        CREATE TABLE variant (
            base TEXT NOT NULL,
            generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
            PRIMARY KEY (base, generation)
        ) WITHOUT ROWID;
        CREATE INDEX variantByGeneration ON variant (generation);
        """

    /// The tables for resources to store offline.
    ///
    /// - `download`: a member of a named set. The member is pinned as long as any set contains it, unless a version of
    ///   unknown length is stored. `resource.pinned` determines whether it may be evicted. `url` is shown to users.
    ///   `source` is the whole URL, from which the download resumes after a restart. `source` is null if the URL must
    ///   not be stored. The app then has to pass the URL again.
    /// - `handPin`: the keys of members that are also pinned separately. They stay pinned when the last set is removed.
    private static let downloadTables = """
        CREATE TABLE download (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            collection TEXT NOT NULL,
            key TEXT NOT NULL,
            url TEXT NOT NULL,
            source TEXT,
            UNIQUE (collection, key)
        );
        CREATE INDEX downloadByKey ON download (key);

        CREATE TABLE handPin (
            key TEXT NOT NULL PRIMARY KEY
        ) WITHOUT ROWID;
        CREATE TRIGGER resourceGone AFTER DELETE ON resource WHEN OLD.pinned = 1 BEGIN
            DELETE FROM handPin WHERE key = OLD.key;
        END;
        """

    /// The sums of `storedBytes` and `rowBytes` over all generations, as settings.
    private static let sums = """
        INSERT INTO setting (name, value) VALUES ('storedBytes', 0), ('rowBytes', 0), ('tidyEpoch', 0);

        CREATE TRIGGER generationCounted AFTER UPDATE OF storedBytes ON generation BEGIN
            UPDATE setting SET value = value + NEW.storedBytes - OLD.storedBytes WHERE name = 'storedBytes';
        END;
        CREATE TRIGGER generationGone AFTER DELETE ON generation BEGIN
            UPDATE setting SET value = value - OLD.storedBytes WHERE name = 'storedBytes';
        END;

        CREATE TRIGGER rowBegun AFTER INSERT ON generation BEGIN
            UPDATE setting SET value = value + NEW.rowBytes WHERE name = 'rowBytes';
        END;
        CREATE TRIGGER rowCounted AFTER UPDATE OF rowBytes ON generation BEGIN
            UPDATE setting SET value = value + NEW.rowBytes - OLD.rowBytes WHERE name = 'rowBytes';
        END;
        CREATE TRIGGER rowGone AFTER DELETE ON generation BEGIN
            UPDATE setting SET value = value - OLD.rowBytes WHERE name = 'rowBytes';
        END;
        """
}

/// The secret of a catalog, and the cipher for its values.
struct CatalogLock {
    var cipher = CatalogCipher.plain
    var secret: CacheSecret?

    init(_ db: Database, _ key: EncryptionKey?, path: String, isWritable: Bool) throws {
        // If the mark has the wrong type, no key matches it, but the catalog is still encrypted.
        let mark = try db.setting("encryption").map { value in
            if case .blob(let data) = value.storage { data } else { Data() }
        }
        switch (mark, key) {
        case (nil, nil): return
        case (_?, nil):
            throw CacheError(.keyRequired, "“\(path)” is encrypted, and no key was given")
        case (let mark?, let key?):
            secret = try EncryptionMark(mark).secret(key, path: path)
        case (nil, let key?):
            // A catalog that has never been used has no secret.
            guard try db.setting("sealKey") == nil,
                try Int.fetchOne(db, sql: "SELECT 1 FROM resource LIMIT 1") == nil
            else {
                throw CacheError(
                    .wrongEncryptionKey,
                    "“\(path)” is not encrypted, but a key was given; to encrypt the cache, rekey it instead of opening "
                        + "it with a key")
            }
            guard isWritable else { return }
            let secret = CacheSecret(format: .encrypted)
            try db.set("encryption", to: EncryptionMark(secret, for: key).data.databaseValue)
            self.secret = secret
        }
        if let secret { cipher = CatalogCipher(secret) }
    }
}

extension Catalog {
    /// Checks whether an existing catalog has this version and can be opened with a key. If it is rejected, no file is
    /// changed or created, except for the index (`-shm`) of a log that a killed process left.
    ///
    /// - Parameter isAlone: Whether no other process can write to the catalog. Otherwise, the catalog's log and the key
    ///   are not checked.
    /// - Throws: ``CacheError``: `storage` or `catalogTooNew` for a different version, `keyRequired`,
    ///   `wrongEncryptionKey`, `invalidArgument` for an invalid key, or an error from deriving it. All other errors are
    ///   reported when the catalog is opened.
    static func check(_ key: EncryptionKey?, path: String, fileSystem: any FileSystem, isAlone: Bool) throws {
        guard try fileSystem.attributes(path) != nil else { return }
        try SystemFile.rejectUnlessRegularFile(path)
        // SQLite creates files next to a catalog with a log, so the catalog is first read without its log. After a
        // clean shutdown, that is sufficient.
        let hasLog = try fileSystem.attributes(path + "-wal") != nil
        try check(key, checksKey: isAlone && !hasLog, path: path, isFrozen: true)
        guard hasLog, isAlone else { return }
        let hasIndex = try fileSystem.attributes(path + "-shm") != nil
        do {
            try check(key, checksKey: true, path: path, isFrozen: false)
        } catch {
            if !hasIndex { try fileSystem.remove(path + "-shm") }
            throw error
        }
    }

    private static func check(_ key: EncryptionKey?, checksKey: Bool, path: String, isFrozen: Bool) throws {
        var configuration = configuration()
        configuration.readonly = true
        do {
            let queue = try DatabaseQueue(path: isFrozen ? immutableURI(path) : path, configuration: configuration)
            try queue.read { db in
                try CatalogSchema.refuseOther(db, path: path)
                guard checksKey, try CatalogSchema.migrator.hasCompletedMigrations(db) else { return }
                _ = try CatalogLock(db, key, path: path, isWritable: false)
            }
            try queue.close()
        } catch is DatabaseError {
            // This error is reported when the catalog is opened.
        } catch is RowDecodingError {
            // As above.
        }
    }
}
