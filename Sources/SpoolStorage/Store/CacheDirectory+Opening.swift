import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension CacheDirectory {
    /// Opens a cache to read and write; begins it, readable by its owner only, if there is none.
    ///
    /// Where the disk is full or read-only, what is there is opened to read, and if nothing is, a cache without a
    /// folder begun. After an unclean end nothing is looked at here: the catalog is told that files have to be swept,
    /// and each one tidied when it is opened.
    ///
    /// - Parameter key: The key of an encrypted cache; one that is begun is encrypted with it.
    /// - Throws: ``CacheError``: `directoryInUse`, which names the process that has it; `catalogTooNew`; `keyRequired`,
    ///   `keyRefused`; `storage`, also where others than its owner may write into the folder.
    convenience init(
        opening path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem, bytes: (any ByteStore)? = nil,
        now: Date
    ) throws {
        try Self.refuseForeign(path, fileSystem)
        var lock: (any StoredFile)?
        do {
            try self.init(writing: path, key, fileSystem: fileSystem, bytes: bytes, now: now, lock: &lock)
        } catch let error as CacheError where error.isRefusalToWrite {
            try self.init(reading: path, key, fileSystem: fileSystem, bytes: bytes, cause: error, lock: lock)
        }
    }

    private convenience init(
        writing path: String, _ key: EncryptionKey?, fileSystem: any FileSystem, bytes: (any ByteStore)?, now: Date,
        lock: inout (any StoredFile)?
    ) throws {
        try fileSystem.createDirectory(path)
        // Another account may have created it since the first check.
        try Self.refuseForeign(path, fileSystem)
        let held = try Self.takeLock(path, fileSystem)
        lock = held
        try Catalog.checkKey(key, path: path + "/catalog.sqlite", fileSystem: fileSystem)
        let wasUnclean = try held.size() > 0
        let signature = try Self.sign(held)
        try Self.writeTag(path, fileSystem)
        // Each opening protects this directory, and no other, because the app or an earlier version may have created
        // it.
        let failures = fileSystem.protectDirectory(path).map(\.message)
        try fileSystem.createDirectory(path + "/media")
        try Self.refuseForeign(path + "/media", fileSystem)
        let catalog = try Catalog(path: path + "/catalog.sqlite", key: key, fileSystem: fileSystem, now: now)
        // A catalog that is begun anew, since the former one was damaged or is gone, names none of the media there.
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
        cause: CacheError, lock: (any StoredFile)?
    ) throws {
        let catalogPath = path + "/catalog.sqlite"
        var catalog: Catalog?
        if case .success(let readable)? = try Self.readableCatalog(catalogPath, key, fileSystem) { catalog = readable }
        let notice =
            catalog == nil
            ? "nothing is stored: \(cause.message)" : "the cache is read-only, nothing new is stored: \(cause.message)"
        try self.init(
            path: path, catalog: catalog ?? Catalog(inMemory: catalogPath),
            access: catalog == nil ? .none(cause) : .read(cause), notices: [notice], fileSystem: fileSystem,
            bytes: bytes, lock: lock, signature: "")
    }

    /// Opens a cache that another process has, or may have at any moment, to read only; takes no lock and changes
    /// nothing.
    ///
    /// - Parameter cause: Why it is only read.
    /// - Throws: ``CacheError``: `notStored` if there is no cache; `catalogTooNew`, `catalogDamaged`, `storage`;
    ///   `keyRequired`, `keyRefused`.
    convenience init(
        beside path: String, key: EncryptionKey? = nil, fileSystem: any FileSystem, bytes: (any ByteStore)? = nil,
        because cause: CacheError
    ) throws {
        let catalog = try Self.catalog(inspecting: path, key: key, fileSystem: fileSystem)
        try Self.refuseForeign(path, fileSystem)
        try Self.refuseForeign(path + "/media", fileSystem)
        try self.init(
            path: path, catalog: catalog, access: .beside(cause), notices: [], fileSystem: fileSystem, bytes: bytes,
            lock: nil, signature: "")
    }

    /// Begins a cache in memory, with its catalog, which is gone when it is released.
    convenience init(inMemory bytes: any ByteStore, fileSystem: any FileSystem) throws {
        try self.init(
            path: "memory", catalog: Catalog(inMemory: "memory"), access: .readWrite, notices: [],
            fileSystem: fileSystem, bytes: bytes, lock: nil, signature: "")
    }

    /// The catalog to read only, or why the disk does not allow that; nil if there is none.
    private static func readableCatalog(
        _ path: String, _ key: EncryptionKey?, _ fileSystem: any FileSystem
    ) throws -> Result<Catalog, CacheError>? {
        guard try fileSystem.attributes(path) != nil else { return nil }
        do {
            return .success(try Catalog(inspecting: path, key: key))
        } catch let cause as CacheError where cause.code == .storage {
            // What a change that was broken off has left can't be told from what was there before.
            guard try fileSystem.attributes(path + "-journal") == nil else { return .failure(cause) }
            // Readers of a live database note themselves beside it, which this disk does not allow.
            do {
                return .success(try Catalog(inspecting: path, key: key, isFrozen: true))
            } catch let error as CacheError where error.code == .storage {
                return .failure(error.isDatabaseRefusal ? cause : error)
            }
        }
    }

    /// Opens a cache to look at, which another process may be using.
    ///
    /// - Throws: ``CacheError``: `notStored` if there is no cache; `catalogTooNew`, `catalogDamaged`, `storage`;
    ///   `keyRequired`, `keyRefused`.
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

    /// A folder in which others can put files or links is not one to read media from.
    static func refuseForeign(_ path: String, _ fileSystem: any FileSystem) throws {
        guard let attributes = try refuseFile(path, fileSystem) else { return }
        guard attributes.owner == geteuid() else {
            throw CacheError(
                .storage, "“\(path)” can't be used as a cache: it belongs to another user (number \(attributes.owner))")
        }
        guard attributes.permissions & 0o022 == 0 else {
            let mode = String(attributes.permissions & 0o777, radix: 8)
            throw CacheError(
                .storage, "“\(path)” can't be used as a cache: other users may write to it (mode \(mode))")
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
        // Only for the sentence: the file may be empty, or go away meanwhile.
        let holder = (try? text(of: fileSystem.openFile(lockPath, .read)))?.prefix { !$0.isNewline } ?? ""
        throw CacheError(.directoryInUse, "“\(path)” is in use by \(holder.isEmpty ? "another process" : holder)")
    }

    /// Writes who has the folder, and a random word by which it can be told from any other.
    private static func sign(_ lock: any StoredFile) throws -> String {
        let process = ProcessInfo.processInfo
        let name = process.processName.filter { !$0.isNewline }.prefix(60)
        let signature = "process \(process.processIdentifier) (\(name))\n\(GenerationIdentifier().hex)\n"
        // Written over what an unclean end left, then shortened: it is never empty in between.
        try write(signature, to: lock)
        try lock.punchHole(Int64(signature.utf8.count)..<Int64.max)
        return signature
    }

    private static func writeTag(_ path: String, _ fileSystem: any FileSystem) throws {
        let tag = try fileSystem.openFile(path + "/CACHEDIR.TAG", .create)
        guard try tag.size() == 0 else { return }
        let text = """
            Signature: 8a477f597d28d172789f06886806bc55
            # A cache of media made by Spool, which can be fetched again. See https://bford.info/cachedir/

            """
        try write(text, to: tag)
    }

    private static func write(_ text: String, to file: any StoredFile) throws {
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }
}

extension CacheError {
    /// Whether a disk says by this that it takes nothing, for now or for good.
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
