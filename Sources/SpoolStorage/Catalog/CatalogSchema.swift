import Foundation
import GRDB

/// The catalog's tables, and every step by which they came about.
///
/// Migrations are append-only: one that was released is never changed. All byte counts are kept by the statements and
/// triggers of one transaction, so they are right whenever it is.
enum CatalogSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in try db.execute(sql: version1) }
        migrator.registerMigration("2") { db in try db.execute(sql: version2) }
        migrator.registerMigration("3") { db in try db.execute(sql: version3) }
        migrator.registerMigration("offline") { db in try db.execute(sql: downloads) }
        migrator.registerMigration("4") { db in try db.execute(sql: version4) }
        migrator.registerMigration("5") { db in try db.execute(sql: version5) }
        migrator.registerMigration("6") { db in try db.execute(sql: version6) }
        return migrator
    }

    /// Looks whether all tables and columns are there, and the few values without which nothing can be opened.
    ///
    /// - Throws: `DatabaseError` with `SQLITE_ERROR` where one is missing; `RowDecodingError` where a value is none.
    static func check(_ db: Database) throws {
        let columns = [
            "setting": "name, value",
            "resource":
                "id, key, url, contentType, pinned, createdAt, lastUsedAt, presentation, createdSealed, usedSealed, "
                + "history",
            "generation":
                "id, resource, identifier, length, version, fields, storedBytes, tidyEpoch, landed, format, secret, "
                + "rowBytes",
            "block": "generation, idx, length, seal",
        ]
        for (table, columns) in columns.merging(downloadColumns, uniquingKeysWith: { first, _ in first }) {
            _ = try db.makeStatement(sql: "SELECT \(columns) FROM \(table)")
        }
        for name in ["sealKey", "encryption", "formerSecret"] { _ = try Catalog.setting(name, db) as Data? }
    }

    /// Dates are microseconds since 1970. AUTOINCREMENT: a late record for a generation that is gone must not find
    /// another one under its number. `tidyEpoch` is the number of unclean ends after which the generation's file has
    /// been freed of bytes that no block claims.
    private static let version1 = """
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
            lastUsedAt INTEGER NOT NULL
        );
        CREATE INDEX resourceByUse ON resource (lastUsedAt, id) WHERE pinned = 0;

        CREATE TABLE generation (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            resource INTEGER NOT NULL UNIQUE REFERENCES resource (id) ON DELETE CASCADE,
            identifier BLOB NOT NULL UNIQUE,
            length INTEGER,
            version TEXT NOT NULL,
            fields TEXT NOT NULL,
            storedBytes INTEGER NOT NULL DEFAULT 0,
            tidyEpoch INTEGER NOT NULL
        );

        CREATE TABLE block (
            generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
            idx INTEGER NOT NULL,
            length INTEGER NOT NULL,
            seal BLOB NOT NULL,
            PRIMARY KEY (generation, idx)
        ) WITHOUT ROWID;

        INSERT INTO setting (name, value) VALUES ('storedBytes', 0), ('tidyEpoch', 0);

        CREATE TRIGGER generationCounted AFTER UPDATE OF storedBytes ON generation BEGIN
            UPDATE setting SET value = value + NEW.storedBytes - OLD.storedBytes WHERE name = 'storedBytes';
        END;
        CREATE TRIGGER generationGone AFTER DELETE ON generation BEGIN
            UPDATE setting SET value = value - OLD.storedBytes WHERE name = 'storedBytes';
        END;
        """

    /// `landed`: the union of the generation's blocks, as `ByteRangeSet.encoded()`, so that opening a long film reads one
    /// row; null in what version 1 wrote, and then worked out from the blocks once. `format`: how the bytes of a block
    /// lie in the file; 1 is plain.
    private static let version2 = """
        ALTER TABLE generation ADD COLUMN landed BLOB;
        ALTER TABLE generation ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
        CREATE INDEX resourcePinned ON resource (lastUsedAt, id) WHERE pinned = 1;
        """

    /// `presentation`: the resource that names this one as a part of it, as a playlist its segments: they are used, pinned
    /// and removed together. A presentation is no part of another. A part's `lastUsedAt` may lie behind the presentation's:
    /// it is set right when its turn to be evicted comes, so that a use of thousands of parts is a use of one row. Of
    /// parts with one date the later ones go first: the beginning is what a next play needs.
    private static let version3 = """
        ALTER TABLE resource ADD COLUMN presentation INTEGER REFERENCES resource (id) ON DELETE SET NULL;
        CREATE INDEX resourceByPresentation ON resource (presentation) WHERE presentation IS NOT NULL;
        DROP INDEX resourceByUse;
        CREATE INDEX resourceByUse ON resource (lastUsedAt, id DESC) WHERE pinned = 0;
        """

    /// `createdSealed`, `usedSealed`: the dates of an encrypted cache, enciphered; there `createdAt` and `lastUsedAt` only
    /// say which came first. `secret`: the number of the cache's secret with which the generation's blocks are sealed.
    private static let version4 = """
        ALTER TABLE resource ADD COLUMN createdSealed BLOB;
        ALTER TABLE resource ADD COLUMN usedSealed BLOB;
        ALTER TABLE generation ADD COLUMN secret INTEGER NOT NULL DEFAULT 0;
        """

    /// `history`: how a resource is played, as `PlayHistory.text`; enciphered where the cache is.
    private static let version5 = "ALTER TABLE resource ADD COLUMN history;"

    /// `rowBytes`: what a generation takes on disk beside its media, as `GenerationDescription.rowBytes(url:)`; of what
    /// earlier versions wrote, the same of the texts as they stand in the catalog.
    private static let version6 = """
        ALTER TABLE generation ADD COLUMN rowBytes INTEGER NOT NULL DEFAULT 0;
        UPDATE generation SET rowBytes = LENGTH(CAST(version AS BLOB)) + LENGTH(CAST(fields AS BLOB))
            + COALESCE((SELECT LENGTH(CAST(url AS BLOB)) + COALESCE(LENGTH(CAST(contentType AS BLOB)), 0)
                FROM resource WHERE resource.id = generation.resource), 0);
        UPDATE generation SET rowBytes = 4096 + CASE WHEN rowBytes > 2048 THEN (rowBytes + 4095) / 4096 * 4096 ELSE 0 END;
        INSERT OR REPLACE INTO setting (name, value) SELECT 'rowBytes', COALESCE(SUM(rowBytes), 0) FROM generation;

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
