import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// The database of stored media: the resources, their versions and blocks, and the dates of last use.
///
/// It uses SQLite in WAL mode with synchronous NORMAL. A system crash may lose the last transactions, but never
/// reorders them, and lost media is simply fetched again. The catalog does not contain media bytes or credentials. It
/// contains the query of a URL only if the app has requested this for a download. When the catalog is opened, only the
/// schema and the settings are read.
///
/// In an encrypted cache, ``CatalogCipher`` encrypts the values. Callers pass and receive unencrypted keys and URLs.
///
/// Every method blocks and should run on a ``BlockingExecutor``. It may be called from any thread. The methods throw
/// ``CacheError``: `storage` names the path and SQLite's cause. `catalogDamaged` means that SQLite found the file
/// damaged. In that case, the method also leaves a mark, so that the file is set aside when the catalog is next opened.
final class Catalog: Sendable {
    /// The database's path.
    let path: String
    /// The path to which a damaged catalog was moved when this catalog was opened; `nil` if none was damaged.
    let setAside: String?
    /// Whether the catalog was created when it was opened. If so, no record names the files of a previous catalog.
    let isNew: Bool
    private let database: any DatabaseWriter
    /// The file system in which damage is marked; `nil` for a read-only catalog.
    private let marks: (any FileSystem)?
    /// The cipher for the catalog's values.
    let cipher: CatalogCipher
    /// The secret of an encrypted cache; `nil` if it is unencrypted.
    private let unlocked: CacheSecret?
    /// Whether the catalog was closed. SQLite crashes if a closed connection is used.
    private let isClosed = Atomic(false)
    /// The waits for a lock that another program holds.
    private let busyWait: BusyWait
    /// The unit in bytes in which the volume allocates space to media files; 0 if it is unknown.
    let volumeBlockSize = Atomic<Int64>(0)
    /// The last number that an encrypted cache assigned to record the order of use.
    private let lastOrdinal = Mutex<Int64?>(nil)

    /// Opens a catalog for reading and writing, or creates it. The lock of the cache directory allows only one process
    /// at a time.
    ///
    /// A damaged catalog is renamed to `catalog-damaged-<time>.sqlite`, together with its other files, and an empty
    /// catalog is created. See ``setAside``.
    ///
    /// - Parameter key: The key of an encrypted cache. A new catalog is encrypted with it.
    /// - Throws: ``CacheError``, without changing the catalog: `catalogTooNew` if a newer version of Spool wrote it,
    ///   `storage` if an earlier one did, `keyRequired` or `wrongEncryptionKey`.
    convenience init(
        path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem = SystemFileSystem(), now: Date = Date()
    ) throws {
        let mark = path + Self.damageMark
        var setAside: String?
        if (try? fileSystem.openFile(mark, .read)) != nil {
            setAside = try Self.setAside(path, fileSystem: fileSystem, now: now)
            try fileSystem.remove(mark)
        }
        do {
            try self.init(opening: path, key, fileSystem: fileSystem, setAside: setAside)
        } catch let error as CacheError where error.code == .catalogDamaged {
            setAside = try Self.setAside(path, fileSystem: fileSystem, now: now)
            try fileSystem.remove(mark)
            try self.init(opening: path, key, fileSystem: fileSystem, setAside: setAside)
        }
    }

    /// Opens an existing catalog read-only, while another process may write to it.
    ///
    /// - Parameter isFrozen: Whether the disk is full or read-only, so that not even SQLite's shared-memory file can be
    ///   written. In that case, the last commits may be missing.
    /// - Throws: ``CacheError``:
    ///   - `storage` if there is no catalog, if a frozen one is incomplete, or if an earlier version of Spool wrote it
    ///   - `catalogTooNew` or `catalogDamaged`
    ///   - `keyRequired` or `wrongEncryptionKey`
    init(inspecting path: String, key: EncryptionKey? = nil, isFrozen: Bool = false) throws {
        self.path = path
        self.setAside = nil
        self.marks = nil
        self.isNew = false
        busyWait = BusyWait()
        // SQLite would follow a link, or wait for the other end of a pipe. The file is not opened here, because closing
        // any descriptor of a database releases the locks that this process has on it.
        try SystemFile.rejectUnlessRegularFile(path)
        var configuration = Self.configuration(busyWait)
        configuration.readonly = true
        do {
            let lock: CatalogLock
            (self.database, lock) = try Self.translating(path) {
                let queue = try DatabaseQueue(
                    path: isFrozen ? Self.immutableURI(path) : path, configuration: configuration)
                let lock = try queue.read { db in
                    try CatalogSchema.refuseOther(db, path: path)
                    guard try CatalogSchema.migrator.hasCompletedMigrations(db) || CatalogSchema.isVersionLost(db)
                    else {
                        throw CacheError(.storage, "“\(path)” contains no tables")
                    }
                    return try CatalogLock(db, key, path: path, isWritable: false)
                }
                return (queue, lock)
            }
            (cipher, unlocked) = (lock.cipher, lock.secret)
        } catch let error as CacheError where isFrozen && error.code == .catalogDamaged {
            // If the disk became full during a checkpoint, part of the catalog may still be in the log, which is not
            // read.
            throw CacheError(
                .storage, "“\(path)” can't be read, because its write-ahead log is not readable on this volume",
                underlying: error.underlying)
        }
    }

    /// Creates an empty catalog in memory, for a cache without a disk.
    init(inMemory path: String) throws {
        self.path = path
        self.setAside = nil
        self.marks = nil
        self.isNew = true
        busyWait = BusyWait()
        (cipher, unlocked) = (.plain, nil)
        self.database = try Self.translating(path) {
            let queue = try DatabaseQueue(configuration: Self.configuration(BusyWait()))
            try CatalogSchema.migrator.migrate(queue)
            return queue
        }
    }

    static func immutableURI(_ path: String) -> String {
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

    private init(opening path: String, _ key: EncryptionKey?, fileSystem: any FileSystem, setAside: String?) throws {
        self.path = path
        self.setAside = setAside
        self.marks = fileSystem
        // The file is created here so that its mode is 0600. SQLite gives its other files the same mode.
        _ = try fileSystem.openFile(path, .create)
        let busyWait = BusyWait()
        self.busyWait = busyWait
        let lock: CatalogLock
        (self.database, self.isNew, lock) = try Self.translating(path) {
            let pool = try DatabasePool(path: path, configuration: Self.configuration(busyWait))
            try pool.writeWithoutTransaction { db in try CatalogSchema.refuseOther(db, path: path) }
            let migrator = CatalogSchema.migrator
            if try pool.writeWithoutTransaction({ db in try CatalogSchema.isVersionLost(db) }) {
                try pool.write { db in try CatalogSchema.restoreVersion(db) }
            }
            let isNew = try pool.writeWithoutTransaction { db in try migrator.appliedIdentifiers(db).isEmpty }
            do {
                if try pool.writeWithoutTransaction({ db in try !migrator.hasCompletedMigrations(db) }) {
                    try migrator.migrate(pool)
                }
                try pool.writeWithoutTransaction { db in try CatalogSchema.check(db) }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
                // A table is missing, or an unexpected one exists. A retry would not help.
                throw CacheError(.catalogDamaged, "“\(path)” is damaged: \(Self.cause(error))", underlying: error)
            }
            return (pool, isNew, try pool.write { db in try CatalogLock(db, key, path: path, isWritable: true) })
        }
        (cipher, unlocked) = (lock.cipher, lock.secret)
    }

    /// Shortens waits for a lock that another program holds, because the catalog is about to be closed.
    func beginClosing() { busyWait.shorten() }

    /// Closes the database after a checkpoint of its log. Later calls to other methods throw.
    func close() throws {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        try Self.translating(path) {
            // SQLite leaves the checkpoint to the connection that is closed last. GRDB closes the writing connection
            // first, and the other connections can't write. If the checkpoint fails here, it runs the next time the
            // catalog is opened.
            try? database.writeWithoutTransaction { db in
                if isWritable { _ = try db.checkpoint(.truncate) }
            }
            try database.close()
        }
    }

    /// Returns the configuration for all connections.
    static func configuration(_ busyWait: BusyWait = BusyWait()) -> Configuration {
        var configuration = Configuration()
        configuration.label = "spool.catalog"
        configuration.busyMode = .callback { busyWait.wait(after: $0) }
        configuration.maximumReaderCount = 3
        configuration.prepareDatabase { db in
            // Keys are random, so a checkpoint with more changes writes fewer pages per change. The log is limited to
            // 16 MiB, and the page cache to 4 MiB.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -4096")
        }
        return configuration
    }

    /// Limits the size of the log to 1/64 of the capacity, but at least 1 MiB and at most 16 MiB.
    ///
    /// The log exceeds the limit only while a large transaction is written, or while a reader in another process needs
    /// the start of the log.
    ///
    /// - Parameter capacity: The capacity in bytes; `nil` if it is unlimited.
    func limitLog(toPartOf capacity: Int64?) throws {
        guard isWritable else { return }
        let bytes = min(max((capacity ?? .max) / 64, 1 << 20), 16 << 20)
        try writeAlone { db in
            try db.execute(
                sql: "PRAGMA wal_autocheckpoint = \(bytes / 4096); PRAGMA journal_size_limit = \(bytes)")
        }
    }

    // MARK: - The secret

    /// Returns the cache's secret.
    func secret() throws -> CacheSecret { try unlocked ?? CacheSecret(format: .plain, key: settings.sealKey()) }

    /// The block format for new versions.
    var format: BlockFormat { unlocked?.format ?? .plain }

    /// Returns a number that records the order of use. The number is the date. In an encrypted cache, which must not
    /// reveal dates, it is the next number in a sequence.
    func ordinal(at date: Date, _ db: Database) throws -> Int64 {
        guard !cipher.isPlain else { return date.microseconds }
        return try lastOrdinal.withLock { last in
            // Pinned and unpinned resources each have an index. Consecutive uses are 4 apart, so that a presentation
            // can be recorded just after the use of its part, as with dates in microseconds.
            let highest =
                try last
                ?? [0, 1].map {
                    try Int64.fetchOne(
                        db,
                        sql: """
                            SELECT MAX(lastUsedAt) FROM resource
                            WHERE pinned = \($0) AND typeof(lastUsedAt) = 'integer'
                            """) ?? 0
                }.max() ?? 0
            let next = highest.addingReportingOverflow(4)
            last = next.overflow ? highest : next.partialValue
            return last ?? highest
        }
    }

    // MARK: - Tables

    /// The table of settings.
    var settings: CatalogSettings { CatalogSettings(self) }
    /// The table of blocks.
    var blocks: CatalogBlocks { CatalogBlocks(self) }
    /// The byte counts of versions.
    var counts: CatalogCounts { CatalogCounts(self) }
    /// The tables of downloads and pins.
    var downloads: CatalogDownloads { CatalogDownloads(self) }
    /// The order of use, for eviction.
    var uses: CatalogUses { CatalogUses(self) }

    // MARK: - Transactions

    /// Whether the catalog is writable.
    var isWritable: Bool { marks != nil }

    /// Runs `body` on one snapshot of the database.
    func read<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.read(body) } }
    }

    /// Runs `body`, which executes a single statement. Such a statement reads a consistent state without a transaction.
    func readOnce<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.unsafeRead(body) } }
    }

    /// Runs `body` as the only writer, and commits its changes unless it throws.
    ///
    /// - Parameters:
    ///   - committed: A function that is called after the commit, before any other write.
    ///   - failed: A function that is called if nothing was committed, before any other write.
    func transaction<R>(
        _ body: (CatalogTransaction) throws -> R, committed: (R) -> Void = { _ in }, failed: () -> Void = {}
    ) throws -> R {
        try writeAlone { db in
            var result: R?
            do {
                try db.inTransaction(.immediate) {
                    result = try body(CatalogTransaction(db: db, catalog: self))
                    return .commit
                }
            } catch {
                failed()
                throw error
            }
            guard let result else { throw CacheError(.storage, "a transaction in “\(path)” has no result") }
            committed(result)
            return result
        }
    }

    /// Runs `body` in one transaction: either all of its changes are written or none.
    func write<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.write(body) } }
    }

    /// Allows `body` to write in separate transactions. No other write takes place in the meantime.
    func writeAlone<R>(_ body: (Database) throws -> R) throws -> R {
        try marking { try Self.translating(path) { try database.writeWithoutTransaction(body) } }
    }

    private func marking<R>(_ body: () throws -> R) throws -> R {
        #if DEBUG
        HeldLocks.checkWait(.mayWaitForCatalog)
        #endif
        guard !isClosed.load(ordering: .relaxed) else { throw CacheError(.closed, "“\(path)” has been closed") }
        do {
            return try body()
        } catch let error as CacheError where error.code == .catalogDamaged {
            // If the mark can't be created, the damage is detected again when the catalog is next opened.
            _ = try? marks?.openFile(path + Self.damageMark, .create)
            throw error
        }
    }

    // MARK: - Damage

    private static let damageMark = ".damaged"

    /// Renames a damaged catalog and its other files.
    private static func setAside(_ path: String, fileSystem: any FileSystem, now: Date) throws -> String {
        let stem = stem(of: path)
        let stamp = now.microseconds / 1000
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

    /// Removes catalogs that were set aside, except for the newest one if it is small enough, until media is used more
    /// than 30 days later. The clock alone does not determine its age, because the clock may be wrong.
    ///
    /// - Parameters:
    ///   - limit: The maximum size of the remaining catalog, in bytes.
    ///   - lastUse: The newest date of use in the current catalog; `nil` if nothing is stored.
    /// - Returns: The size of the remaining catalog, in bytes; 0 if there is none.
    static func removeSetAside(
        of path: String, limit: Int64, fileSystem: any FileSystem, lastUse: Date?
    ) throws(CacheError) -> Int64 {
        let folder = (path as NSString).deletingLastPathComponent
        let prefix = stem(of: (path as NSString).lastPathComponent) + "-damaged-"
        var copies: [Int64: [String]] = [:]
        for name in try fileSystem.list(folder) where name.hasPrefix(prefix) {
            let digits = name.dropFirst(prefix.count).prefix { $0.isASCII && $0.isNumber }
            // Files with other names are not from Spool.
            guard let stamp = Int64(digits), name.dropFirst(prefix.count + digits.count).hasPrefix(".sqlite") else {
                continue
            }
            copies[stamp, default: []].append("\(folder)/\(name)")
        }
        guard let newest = copies.keys.max() else { return 0 }
        let age = lastUse.map { $0.timeIntervalSince1970 - Double(newest) / 1000 } ?? 0
        var kept: Int64 = 0
        for (stamp, paths) in copies {
            var size: Int64 = 0
            for path in paths { size += try fileSystem.openFile(path, .read).size() }
            if stamp == newest, age <= 30 * 86400, size <= limit {
                kept = size
            } else {
                for path in paths { try fileSystem.remove(path) }
            }
        }
        return kept
    }

    private static func stem(of path: String) -> String {
        path.hasSuffix(".sqlite") ? String(path.dropLast(".sqlite".count)) : path
    }

    /// Runs a database operation, and rethrows its errors as ``CacheError``.
    ///
    /// The file counts as damaged only if SQLite itself reports damage. A row that can't be read counts as missing
    /// instead.
    static func translating<R>(_ path: String, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch is RowDecodingError {
            // The original message would show the row. One invalid value does not affect the other rows.
            throw CacheError(.storage, "“\(path)” contains a value whose type does not match its column")
        } catch let error as DatabaseError {
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                throw CacheError(.catalogDamaged, "“\(path)” is damaged: \(Self.cause(error))", underlying: error)
            default:
                throw CacheError(.storage, "“\(path)” could not be accessed: \(Self.cause(error))", underlying: error)
            }
        }
    }

    /// Returns SQLite's message, without the statement or its arguments.
    private static func cause(_ error: DatabaseError) -> String {
        "\(error.message ?? "unknown cause") (SQLite code \(error.extendedResultCode.rawValue))"
    }
}

/// The waits for SQLite's lock while another program holds it. A wait lasts up to five seconds, or 0.2 seconds once the
/// catalog is being closed.
final class BusyWait: Sendable {
    /// The time between two attempts, in milliseconds.
    static let interval: Int32 = 5
    private let isShort = Atomic(false)

    /// Ends long waits, including those that have started.
    func shorten() { isShort.store(true, ordering: .relaxed) }

    /// Returns whether another attempt is allowed after `count` attempts.
    func allowsAttempt(after count: Int) -> Bool { count < (isShort.load(ordering: .relaxed) ? 40 : 1000) }

    /// Blocks until the next attempt, and returns `false` if no further attempt is allowed.
    func wait(after count: Int) -> Bool {
        guard allowsAttempt(after: count) else { return false }
        // SQLite sleeps through its file layer, which simulations replace.
        sqlite3_sleep(Self.interval)
        return true
    }
}

extension CacheError {
    /// Whether SQLite reports that writing is impossible: the disk is full, read-only or failing, or files can't be
    /// created.
    var isDatabaseRefusal: Bool {
        guard let error = underlying as? DatabaseError else { return false }
        return [.SQLITE_FULL, .SQLITE_READONLY, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_PERM].contains(
            error.resultCode)
    }
}
