package import Foundation
import GRDB

/// The database of what is kept: resources, their current version, its sealed blocks, and when each was used.
///
/// SQLite in WAL mode, synchronous NORMAL: a crash of the machine may lose the last transactions, never the order of
/// them, and what is lost is only fetched again. It holds no bytes of media and no query value, header or credential.
/// Opening reads nothing but the schema, however much is kept.
///
/// Every method blocks and belongs on a ``BlockingExecutor``; any thread may call. Errors are ``CacheError``: code
/// `storage` names the catalog's path and SQLite's cause; `catalogDamaged` if SQLite finds the file damaged, which
/// also leaves a mark so that the next opening sets the file aside.
package final class Catalog: Sendable {
    /// The database's path.
    package let path: String
    /// Where a damaged catalog was put when this one was begun in its place.
    package let setAside: String?
    /// Whether it was begun at this opening: files that a former one named are nobody's.
    let isNew: Bool
    let database: any DatabaseWriter
    /// Where a mark of damage goes; nil for looking only.
    private let marks: (any FileSystem)?
    var isWritable: Bool { marks != nil }
    /// The version of its tables: what an older one wrote, and nobody could bring up to date, lacks columns.
    let version: Int

    /// Opens a catalog to read and write, and begins it if there is none. One process at a time: the cache directory's
    /// lock sees to that.
    ///
    /// A damaged one is renamed to `catalog-damaged-<time>.sqlite`, with what belongs to it, and an empty one begun;
    /// see ``setAside``.
    ///
    /// - Throws: ``CacheError`` with code `catalogTooNew` if a newer version of Spool wrote it; it is left as it is.
    package convenience init(path: String, fileSystem: any FileSystem = SystemFileSystem(), now: Date = Date()) throws {
        let mark = path + Self.damageMark
        var setAside: String?
        if (try? fileSystem.openFile(mark, .read)) != nil {
            setAside = try Self.setAside(path, fileSystem: fileSystem, now: now)
            try fileSystem.remove(mark)
        }
        do {
            try self.init(opening: path, fileSystem: fileSystem, setAside: setAside)
        } catch let error as CacheError where error.code == .catalogDamaged {
            setAside = try Self.setAside(path, fileSystem: fileSystem, now: now)
            try fileSystem.remove(mark)
            try self.init(opening: path, fileSystem: fileSystem, setAside: setAside)
        }
    }

    /// Opens a catalog that is there, to read only, while another process may be writing it.
    ///
    /// - Parameter isFrozen: Nobody can write it, not even the file beside it by which readers tell writers of
    ///   themselves, as on a disk that is full or read-only. What was committed last may be missing.
    /// - Throws: ``CacheError``: `storage` if there is none, or a frozen one is not whole; `catalogTooNew`, `catalogDamaged`.
    package init(inspecting path: String, isFrozen: Bool = false) throws {
        self.path = path
        self.setAside = nil
        self.marks = nil
        self.isNew = false
        // SQLite would follow a link, and wait for a pipe's other end. Not opened here, even to look: to close any opening
        // of a database gives up the locks that this process has on it.
        try SystemFile.refuseOtherThanFile(path)
        var configuration = Self.configuration
        configuration.readonly = true
        do {
            (self.database, self.version) = try Self.translating(path) {
                let queue = try DatabaseQueue(
                    path: isFrozen ? Self.immutableURI(path) : path, configuration: configuration)
                let version = try queue.read { db in
                    try Self.refuseNewer(db, path: path)
                    let applied = try CatalogSchema.migrator.appliedIdentifiers(db)
                    guard applied.contains("1") else {
                        throw CacheError(.storage, "“\(path)” holds no tables")
                    }
                    return applied.contains("3") ? 3 : applied.contains("2") ? 2 : 1
                }
                return (queue, version)
            }
        } catch let error as CacheError where isFrozen && error.code == .catalogDamaged {
            // Half of it may be in the log, which is not read: where the disk became full while that was brought in.
            throw CacheError(
                .storage, "“\(path)” can't be read without its log, which this disk does not allow to read",
                underlying: error.underlying)
        }
    }

    /// An empty catalog in memory, where there is no disk to have one on.
    package init(inMemory path: String) throws {
        self.path = path
        self.setAside = nil
        self.marks = nil
        self.version = 3
        self.isNew = true
        self.database = try Self.translating(path) {
            let queue = try DatabaseQueue(configuration: Self.configuration)
            try CatalogSchema.migrator.migrate(queue)
            return queue
        }
    }

    private static func immutableURI(_ path: String) -> String {
        var escaped = ""
        for byte in path.utf8 {
            let isPlain = byte != UInt8(ascii: "%") && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
            if isPlain, (33...126).contains(byte) {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                escaped += "%" + (byte < 16 ? "0" : "") + digits
            }
        }
        return "file:\(escaped)?immutable=1"
    }

    private init(opening path: String, fileSystem: any FileSystem, setAside: String?) throws {
        self.path = path
        self.setAside = setAside
        self.marks = fileSystem
        self.version = 3
        // Made here first for its mode, 0600, which SQLite gives to the files beside it as well.
        _ = try fileSystem.openFile(path, .create)
        (self.database, self.isNew) = try Self.translating(path) {
            let pool = try DatabasePool(path: path, configuration: Self.configuration)
            try pool.writeWithoutTransaction { db in try Self.refuseNewer(db, path: path) }
            let migrator = CatalogSchema.migrator
            let isNew = try pool.writeWithoutTransaction { db in try migrator.appliedIdentifiers(db).isEmpty }
            do {
                if try pool.writeWithoutTransaction({ db in try !migrator.hasCompletedMigrations(db) }) {
                    try migrator.migrate(pool)
                }
                try pool.writeWithoutTransaction { db in try CatalogSchema.check(db) }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
                // No such table, or one too many: nothing that trying again would cure.
                throw CacheError(.catalogDamaged, "“\(path)” is damaged: \(Self.cause(error))", underlying: error)
            }
            return (pool, isNew)
        }
    }

    /// Ends all use; later calls throw. Brings what was written into the database file itself.
    package func close() throws {
        try Self.translating(path) {
            // GRDB closes the writing connection before the reading ones, and the last one to close, which SQLite would
            // have do this, can't write then. If it fails, the next opening does it.
            try? database.writeWithoutTransaction { db in
                if isWritable { _ = try db.checkpoint(.truncate) }
            }
            try database.close()
        }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "spool.catalog"
        configuration.busyMode = .timeout(5)
        configuration.maximumReaderCount = 3
        configuration.prepareDatabase { db in
            // Keys are random: the more changes share a page, the less is written. 16 MiB of log, 4 MiB of pages.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -4096")
        }
        return configuration
    }

    private static func refuseNewer(_ db: Database, path: String) throws {
        guard try db.tableExists("grdb_migrations"), try CatalogSchema.migrator.hasBeenSuperseded(db) else { return }
        throw CacheError(.catalogTooNew, "“\(path)” was written by a newer version of Spool")
    }

    // MARK: - Damage

    private static let damageMark = ".damaged"

    /// Moves a damaged catalog and the files beside it out of the way.
    private static func setAside(_ path: String, fileSystem: any FileSystem, now: Date) throws -> String {
        let stem = path.hasSuffix(".sqlite") ? String(path.dropLast(".sqlite".count)) : path
        let stamp = Int64((now.timeIntervalSince1970 * 1000).rounded())
        let target = "\(stem)-damaged-\(stamp).sqlite"
        for suffix in ["", "-wal", "-shm", "-journal"] {
            do {
                try fileSystem.rename(path + suffix, to: target + suffix)
            } catch {
                guard error.posixCode == .ENOENT else { throw error }
            }
        }
        return target
    }

    /// Runs a database operation and gives its errors the cache's form.
    static func translating<R>(_ path: String, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch is RowDecodingError {
            // Its own words would show the row.
            throw CacheError(.catalogDamaged, "“\(path)” is damaged: a value has another type than its column")
        } catch let error as DatabaseError {
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                throw CacheError(.catalogDamaged, "“\(path)” is damaged: \(Self.cause(error))", underlying: error)
            default:
                throw CacheError(.storage, "“\(path)” failed: \(Self.cause(error))", underlying: error)
            }
        }
    }

    /// SQLite's words, without the statement and its arguments.
    private static func cause(_ error: DatabaseError) -> String {
        "\(error.message ?? "no reason given") (SQLite code \(error.extendedResultCode.rawValue))"
    }

    /// Reads in one snapshot of the database.
    func read<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.read(body) } }
    }

    /// Reads by one statement, which needs no transaction to see one state of the database.
    func readOnce<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.unsafeRead(body) } }
    }

    /// Writes in one transaction: all of it or nothing.
    func write<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.write(body) } }
    }

    /// Lets `body` write, in transactions of its own, while nobody else does.
    func writeAlone<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.writeWithoutTransaction(body) } }
    }

    private func marking<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as CacheError where error.code == .catalogDamaged {
            // Without the mark the next opening finds out by itself.
            _ = try? marks?.openFile(path + Self.damageMark, .create)
            throw error
        }
    }
}

extension CacheError {
    /// Whether SQLite says by this that the disk takes nothing: full, read-only, failing, or a file can't be made.
    var isDatabaseRefusal: Bool {
        guard let error = underlying as? DatabaseError else { return false }
        return [.SQLITE_FULL, .SQLITE_READONLY, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_PERM].contains(
            error.resultCode)
    }
}
