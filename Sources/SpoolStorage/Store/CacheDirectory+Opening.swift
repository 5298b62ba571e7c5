import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension CacheDirectory {
    /// Opens a cache for reading and writing, or creates one that only its owner can read.
    ///
    /// If the disk is full or read-only, the stored media is opened for reading. If no media is stored, a cache without
    /// a directory is created. After an unclean shutdown, no files are examined here. The catalog records that they
    /// must be cleaned up, and each file is repaired when it is opened.
    ///
    /// - Parameters:
    ///   - key: The key of an encrypted cache. A new cache is encrypted with it.
    ///   - mustWrite: Whether to throw an error if the disk is full or read-only.
    /// - Throws: ``CacheError``. `directoryInUse` names the process that has the directory open. Other codes are
    ///   `catalogTooNew`, `keyRequired` and `wrongEncryptionKey`. `storage` is also thrown if other users can write to
    ///   the directory.
    convenience init(
        opening path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem, bytes: (any ByteStore)? = nil,
        now: Date, mustWrite: Bool = false
    ) throws {
        try Self.rejectUnsafeDirectory(path, fileSystem)
        var lock: (any StoredFile)?
        do {
            try self.init(writing: path, key, fileSystem: fileSystem, bytes: bytes, now: now, lock: &lock)
        } catch {
            // As soon as the disk accepts data again, another process may write, or this process may open the cache
            // again.
            _ = try? lock?.lock(.none)  // Closing the file also releases the lock.
            lock = nil
            guard let error = error as? CacheError, error.isRefusalToWrite, !mustWrite else { throw error }
            try self.init(reading: path, key, fileSystem: fileSystem, bytes: bytes, cause: error)
        }
    }

    private convenience init(
        writing path: String, _ key: EncryptionKey?, fileSystem: any FileSystem, bytes: (any ByteStore)?, now: Date,
        lock: inout (any StoredFile)?
    ) throws {
        try fileSystem.createDirectory(path)
        // Another user may have created the directory since the first check.
        try Self.rejectUnsafeDirectory(path, fileSystem)
        let held = try Self.takeLock(path, fileSystem)
        lock = held
        try Catalog.check(key, path: path + "/catalog.sqlite", fileSystem: fileSystem, isAlone: true)
        let wasUnclean = try held.size() > 0
        let signature = try Self.sign(held)
        try Self.writeTag(path, fileSystem)
        // Each time the cache is opened, the directory is protected again, because the app or an earlier version may
        // have created it. No other directory is changed.
        let failures = fileSystem.protectDirectory(path).map(\.message)
        try fileSystem.createDirectory(path + "/media")
        try Self.rejectUnsafeDirectory(path + "/media", fileSystem)
        let catalog = try Catalog(path: path + "/catalog.sqlite", key: key, fileSystem: fileSystem, now: now)
        // A new catalog, which replaces a damaged or missing one, does not list any of the media in the directory.
        let isForgotten = try catalog.isNew && (!fileSystem.list(path + "/media").isEmpty || bytes?.hasNames == true)
        if try catalog.settings.areRowNumbersUsedUp() { try catalog.settings.restoreRowNumbers() }
        let isEpochLost = try catalog.settings.isTidyEpochLost()
        if wasUnclean || isForgotten || isEpochLost { try catalog.settings.advanceTidyEpoch() }
        let notice = catalog.setAside.map { "the catalog was damaged and set aside as \($0); the cache starts empty" }
        try self.init(
            path: path, catalog: catalog, access: .readWrite, notices: failures + (notice.map { [$0] } ?? []),
            fileSystem: fileSystem, bytes: bytes, lock: held, signature: signature)
    }

    private convenience init(
        reading path: String, _ key: EncryptionKey?, fileSystem: any FileSystem, bytes: (any ByteStore)?,
        cause: CacheError
    ) throws {
        let catalogPath = path + "/catalog.sqlite"
        var catalog: Catalog?
        if case .success(let readable)? = try Self.readableCatalog(catalogPath, key, fileSystem) { catalog = readable }
        let notice =
            catalog == nil
            ? "nothing can be stored: \(cause.message)"
            : "the cache is read-only, so nothing new is stored: \(cause.message)"
        try self.init(
            path: path, catalog: catalog ?? Catalog(inMemory: catalogPath),
            access: catalog == nil ? .none(cause) : .read(cause), notices: [notice], fileSystem: fileSystem,
            bytes: bytes, lock: nil, signature: "")
    }

    /// Opens a cache read-only while another process has it open or may open it. The method does not take a lock or
    /// change files.
    ///
    /// - Parameter cause: The reason why the cache is read-only.
    /// - Throws: ``CacheError`` with code `notStored` if there is no cache, or `catalogTooNew`, `catalogDamaged`,
    ///   `storage`, `keyRequired` or `wrongEncryptionKey`.
    convenience init(
        beside path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem, bytes: (any ByteStore)? = nil,
        because cause: CacheError
    ) throws {
        let catalog = try Self.catalog(inspecting: path, key: key, fileSystem: fileSystem)
        try Self.rejectUnsafeDirectory(path, fileSystem)
        try Self.rejectUnsafeDirectory(path + "/media", fileSystem)
        try self.init(
            path: path, catalog: catalog, access: .read(cause), notices: [], fileSystem: fileSystem, bytes: bytes,
            lock: nil, signature: "")
    }

    /// Creates a cache whose media and catalog are in memory. The content is lost when the cache is released.
    convenience init(inMemory bytes: any ByteStore, fileSystem: any FileSystem) throws {
        try self.init(
            path: "memory", catalog: Catalog(inMemory: "memory"), access: .readWrite, notices: [],
            fileSystem: fileSystem, bytes: bytes, lock: nil, signature: "")
    }

    /// Returns the catalog, opened read-only, or the reason why the disk does not allow this; `nil` if there is no
    /// catalog.
    private static func readableCatalog(
        _ path: String, _ key: EncryptionKey?, _ fileSystem: any FileSystem
    ) throws -> Result<Catalog, CacheError>? {
        guard try fileSystem.attributes(path) != nil else { return nil }
        try Catalog.check(key, path: path, fileSystem: fileSystem, isAlone: false)
        do {
            return .success(try Catalog(inspecting: path, key: key))
        } catch let cause as CacheError where cause.code == .storage {
            // Without the journal, an interrupted change could not be distinguished from earlier content.
            guard try fileSystem.attributes(path + "-journal") == nil else { return .failure(cause) }
            // A reader of a live database writes files next to it, which this disk does not allow.
            do {
                return .success(try Catalog(inspecting: path, key: key, isFrozen: true))
            } catch let error as CacheError where error.code == .storage {
                return .failure(error.isDatabaseRefusal ? cause : error)
            }
        }
    }

    /// Opens the catalog of a cache that another process may be using, to inspect it.
    ///
    /// - Throws: ``CacheError`` with code `notStored` if there is no cache, or `catalogTooNew`, `catalogDamaged`,
    ///   `storage`, `keyRequired` or `wrongEncryptionKey`.
    static func catalog(
        inspecting path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem
    ) throws -> Catalog {
        let catalogPath = path + "/catalog.sqlite"
        try refuseFile(path, fileSystem)
        guard let catalog = try readableCatalog(catalogPath, key, fileSystem) else {
            throw CacheError(.notStored, "“\(path)” contains no cache")
        }
        return try catalog.get()
    }

    /// Throws an error if other users can put files or links in a directory, because it would not be safe to read media
    /// from it.
    static func rejectUnsafeDirectory(_ path: String, _ fileSystem: any FileSystem) throws {
        guard let attributes = try refuseFile(path, fileSystem) else { return }
        guard attributes.owner == geteuid() else {
            throw CacheError(
                .storage, "“\(path)” can't be used as a cache: it belongs to another user (UID \(attributes.owner))")
        }
        guard attributes.permissions & 0o022 == 0 else {
            let mode = String(attributes.permissions & 0o777, radix: 8)
            throw CacheError(
                .storage,
                "“\(path)” can't be used as a cache: other users may write to it (mode \(mode)), which “chmod go-w” "
                    + "fixes")
        }
    }

    @discardableResult
    private static func refuseFile(_ path: String, _ fileSystem: any FileSystem) throws -> FileAttributes? {
        let attributes = try fileSystem.attributes(path)
        guard attributes?.isDirectory ?? true else {
            throw CacheError(.storage, "“\(path)” can't be used as a cache: it is not a directory")
        }
        return attributes
    }

    // MARK: - The lock

    private static func takeLock(_ path: String, _ fileSystem: any FileSystem) throws -> any StoredFile {
        let lockPath = path + "/lock"
        if let lock = try fileSystem.lockFile(lockPath) { return lock }
        // Only the error message needs the holder, so it does not matter if the file is empty or was removed in the
        // meantime.
        let holder = (try? text(of: fileSystem.openFile(lockPath, .read)))?.prefix { !$0.isNewline } ?? ""
        throw CacheError(.directoryInUse, "“\(path)” is in use by \(holder.isEmpty ? "another process" : holder)")
    }

    /// Writes the identity of this process, and a random word that is different each time the directory is opened.
    private static func sign(_ lock: any StoredFile) throws -> String {
        let process = ProcessInfo.processInfo
        let name = process.processName.filter { !$0.isNewline }.prefix(60)
        let signature = "process \(process.processIdentifier) (\(name))\n\(GenerationIdentifier().hex)\n"
        // The signature overwrites the remains of an unclean shutdown before the file is shortened, so that the file is
        // never empty.
        try write(signature, to: lock)
        try lock.punchHole(Int64(signature.utf8.count)..<Int64.max)
        return signature
    }

    private static func writeTag(_ path: String, _ fileSystem: any FileSystem) throws {
        let tag = try fileSystem.openFile(path + "/CACHEDIR.TAG", .create)
        guard try tag.size() == 0 else { return }
        let text = """
            Signature: 8a477f597d28d172789f06886806bc55
            # A media cache created by Spool. Its contents can be fetched again. See https://bford.info/cachedir/

            """
        try write(text, to: tag)
    }

    private static func write(_ text: String, to file: any StoredFile) throws {
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }
}

extension CacheError {
    /// Whether the error means that the disk does not accept data, temporarily or permanently.
    fileprivate var isRefusalToWrite: Bool {
        if let posixCode {
            return [.EROFS, .ENOSPC, .EDQUOT, .EIO, .EACCES, .EPERM].contains(posixCode)
        }
        return isDatabaseRefusal
    }
}

extension ByteStore {
    fileprivate var hasNames: Bool {
        get throws {
            var hasNames = false
            try forEachName { _ in
                hasNames = true
                return false
            }
            return hasNames
        }
    }
}
