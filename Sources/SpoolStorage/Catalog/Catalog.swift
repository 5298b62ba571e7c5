package import Foundation
import GRDB
import Synchronization

/// The database of what is kept: resources, their current version, its sealed blocks, and when each was used.
///
/// SQLite in WAL mode, synchronous NORMAL: a crash of the machine may lose the last transactions, never the order of
/// them, and what is lost is only fetched again. It holds no bytes of media and no query value, header or credential.
/// Opening reads nothing but the schema, however much is kept.
///
/// In an encrypted cache all of that is enciphered, by a ``CatalogCipher``: what calls here hands and is handed plain keys
/// and addresses.
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
    /// How it writes what says what is kept.
    let cipher: CatalogCipher
    /// The secret of an encrypted cache.
    private let unlocked: CacheSecret?
    /// Which secret is the present one.
    private let secretNumber: Int64
    /// The last number by which resources of an encrypted cache are put in the order of their use.
    private let lastOrdinal = Mutex<Int64?>(nil)

    /// Opens a catalog to read and write, and begins it if there is none. One process at a time: the cache directory's
    /// lock sees to that.
    ///
    /// A damaged one is renamed to `catalog-damaged-<time>.sqlite`, with what belongs to it, and an empty one begun;
    /// see ``setAside``.
    ///
    /// - Parameter key: The key of an encrypted cache; one that is begun is encrypted with it.
    /// - Throws: ``CacheError``: `catalogTooNew` if a newer version of Spool wrote it; `keyRequired`, `keyRefused`. Then it
    ///   is left as it is.
    package convenience init(
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

    /// Opens a catalog that is there, to read only, while another process may be writing it.
    ///
    /// - Parameter isFrozen: Nobody can write it, not even the file beside it by which readers tell writers of
    ///   themselves, as on a disk that is full or read-only. What was committed last may be missing.
    /// - Throws: ``CacheError``: `storage` if there is none, or a frozen one is not whole; `catalogTooNew`, `catalogDamaged`;
    ///   `keyRequired`, `keyRefused`.
    package init(inspecting path: String, key: EncryptionKey? = nil, isFrozen: Bool = false) throws {
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
            let lock: Lock
            (self.database, self.version, lock) = try Self.translating(path) {
                let queue = try DatabaseQueue(
                    path: isFrozen ? Self.immutableURI(path) : path, configuration: configuration)
                let (version, lock) = try queue.read { db in
                    try Self.refuseNewer(db, path: path)
                    let applied = try CatalogSchema.migrator.appliedIdentifiers(db)
                    guard applied.contains("1") else {
                        throw CacheError(.storage, "“\(path)” holds no tables")
                    }
                    let version = (2...6).last { applied.contains("\($0)") } ?? 1
                    return (version, try Lock(db, key, path: path, isWritable: false))
                }
                return (queue, version, lock)
            }
            (cipher, unlocked, secretNumber) = (lock.cipher, lock.secret, lock.number)
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
        self.version = 6
        self.isNew = true
        (cipher, unlocked, secretNumber) = (.plain, nil, 0)
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

    private init(opening path: String, _ key: EncryptionKey?, fileSystem: any FileSystem, setAside: String?) throws {
        self.path = path
        self.setAside = setAside
        self.marks = fileSystem
        self.version = 6
        // Made here first for its mode, 0600, which SQLite gives to the files beside it as well.
        _ = try fileSystem.openFile(path, .create)
        let lock: Lock
        (self.database, self.isNew, lock) = try Self.translating(path) {
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
            return (pool, isNew, try pool.write { db in try Lock(db, key, path: path, isWritable: true) })
        }
        (cipher, unlocked, secretNumber) = (lock.cipher, lock.secret, lock.number)
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

    // MARK: - Secrets

    /// What opens a catalog.
    private struct Lock {
        var cipher = CatalogCipher.plain
        var secret: CacheSecret?
        var number: Int64 = 0

        init(_ db: Database, _ key: EncryptionKey?, path: String, isWritable: Bool) throws {
            number = try Catalog.setting("secretNumber", db) ?? 0
            let mark: Data? = try Catalog.setting("encryption", db)
            switch (mark, key) {
            case (nil, nil): return
            case (_?, nil):
                throw CacheError(.keyRequired, "“\(path)” is encrypted, and no key was given")
            case (let mark?, let key?):
                let secret = try EncryptionMark(mark).secret(key, path: path)
                (self.secret, number) = (secret, secret.number)
            case (nil, let key?):
                // What nobody has used yet has no secret.
                guard try Catalog.setting("sealKey", db) as Data? == nil,
                    try Int.fetchOne(db, sql: "SELECT 1 FROM resource LIMIT 1") == nil
                else {
                    throw CacheError(
                        .keyRefused,
                        "“\(path)” is not encrypted, and a key was given; a cache is encrypted by giving it a new key, never "
                            + "by opening it")
                }
                guard isWritable else { return }
                let secret = CacheSecret(number: number, format: .encrypted)
                try Catalog.set("encryption", to: EncryptionMark(secret, for: key).data.databaseValue, db)
                self.secret = secret
            }
            if let secret { cipher = CatalogCipher(secret) }
        }
    }

    /// Looks whether a catalog that is there opens with a key, and changes nothing, as opening it to write would.
    ///
    /// - Throws: ``CacheError``: `keyRequired`, `keyRefused`, `invalidArgument` for a key that is none; what deriving it
    ///   throws. What else is wrong with it whoever opens it is told.
    static func checkKey(_ key: EncryptionKey?, path: String, fileSystem: any FileSystem) throws {
        guard try fileSystem.attributes(path) != nil else { return }
        do {
            try Catalog(inspecting: path, key: key).close()
        } catch let error as CacheError
            where ![.keyRequired, .keyRefused, .invalidArgument].contains(error.code)
        {
            return
        }
    }

    /// The cache's secret, and while it is given another one, the one before.
    package func secrets() throws -> CacheSecrets {
        let current = try unlocked ?? CacheSecret(number: secretNumber, format: .plain, key: sealKey())
        let former: Data? = try read { db in try Self.setting("formerSecret", db) }
        return CacheSecrets(
            current, former: former.flatMap { CacheSecret(opening: $0, with: current.derive(Self.formerPurpose)) })
    }

    static let formerPurpose = "spool.former"

    /// The secret that is used for what begins now: its number, and how blocks lie.
    var writing: (secret: Int64, format: BlockFormat) { (secretNumber, unlocked?.format ?? .plain) }

    /// By what resources are put in the order of their use: when that was, or in an encrypted cache, which does not tell,
    /// the next number.
    func ordinal(at date: Date, _ db: Database) throws -> Int64 {
        guard !cipher.isPlain else { return date.microseconds }
        return try lastOrdinal.withLock { last in
            // Each of them has an index. Some are left between two, as between two dates.
            let highest =
                try last
                ?? [0, 1].map {
                    try Int64.fetchOne(db, sql: "SELECT MAX(lastUsedAt) FROM resource WHERE pinned = \($0)") ?? 0
                }.max() ?? 0
            let next = highest.addingReportingOverflow(4)
            last = next.overflow ? highest : next.partialValue
            return last ?? highest
        }
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
