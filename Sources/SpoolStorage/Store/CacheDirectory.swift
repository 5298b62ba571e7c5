import Crypto
import Foundation
import Synchronization

/// The directory of a cache, or its equivalent in memory. This type manages the lock, the media files, and the remains
/// of an unclean shutdown.
///
/// ```
/// <path>/CACHEDIR.TAG          tells backup programs to skip the directory
///        lock                  locked while a process writes; contains its ID and name; empty after a clean shutdown
///        catalog.sqlite        see Catalog
///        media/ab/ab…cd.media  one file for each generation, with a random name; see ``ByteStore``
/// ```
///
/// Methods block, and should run on a ``BlockingExecutor``. They may be called from any thread.
final class CacheDirectory: Sendable {
    /// The access of this process to the folder.
    enum Access: Sendable {
        case readWrite
        /// The folder is only read, and this process does not hold its lock. The disk is full or read-only, or another
        /// process may have the folder open. Its files can be removed or replaced at any time, even by this process if
        /// it opens the folder again.
        case read(CacheError)
        /// The folder can't be written to, and contains nothing to read.
        case none(CacheError)

        var isWritable: Bool { if case .readWrite = self { true } else { false } }
        var isShared: Bool { if case .read = self { true } else { false } }
    }

    /// The path of the folder.
    let path: String
    /// The catalog of the folder's content.
    let catalog: Catalog
    let access: Access
    /// The problems that were found when the folder was opened, as sentences.
    let notices: [String]
    let fileSystem: any FileSystem
    /// The store of the media files.
    let bytes: any ByteStore
    private let secret: CacheSecret
    private let lock: Mutex<(any StoredFile)?>
    /// The content of the lock file. If the file has different content, the folder no longer belongs to this process.
    /// The value is empty if there is no lock file.
    private let signature: String
    /// See ``prepareFile(_:)``.
    private let prepared = Mutex(Prepared.none)
    /// Whether a file could not be removed and the catalog could not record this.
    private let isSweepUnrecorded = Atomic(false)
    /// Whether the catalog has recorded since the last sweep that a file could not be removed.
    private let isSweepRecorded = Atomic(false)
    /// The number of files that could not be removed.
    private let failedRemovals = Atomic(0)

    init(
        path: String, catalog: Catalog, access: Access, notices: [String], fileSystem: any FileSystem,
        bytes: (any ByteStore)?, lock: (any StoredFile)?, signature: String
    ) throws {
        self.path = path
        self.catalog = catalog
        self.access = access
        self.notices = notices
        self.fileSystem = fileSystem
        self.bytes = bytes ?? FileByteStore(folder: path + "/media", fileSystem: fileSystem)
        self.lock = Mutex(lock)
        self.signature = signature
        self.secret = try catalog.secret()
        // The block size is read now, because a player would otherwise wait for it.
        _ = blockSize
    }

    deinit {
        // If the store could not be opened, the next attempt needs the lock; see `close()`.
        lock.withLock { _ = try? $0?.lock(.none) }  // Closing the file also releases the lock.
    }

    /// Ends the use of the folder: closes the catalog and releases the lock. Open media files stay open.
    ///
    /// If a process ends without this call, the shutdown counts as unclean.
    func close() throws {
        // If the unused file can't be removed, the cache searches for it the next time the folder is opened.
        if let (unused, _) = prepared.withLock({ $0.take(closing: true) }) { removeMedia(unused) }
        try catalog.close()
        try lock.withLock { lock in
            guard let file = lock else { return }
            lock = nil
            // The lock is released explicitly rather than by closing the file, because a child process that is being
            // started also has the descriptor.
            defer { _ = try? file.lock(.none) }  // Closing the file, shortly afterwards, also releases the lock.
            // If the catalog could not record that a sweep is pending, the shutdown counts as unclean. A sweep then
            // runs the next time the folder is opened.
            guard access.isWritable, !isSweepUnrecorded.load(ordering: .relaxed) else { return }
            // An empty lock file marks a clean shutdown.
            try file.punchHole(0..<Int64.max)
            try file.synchronize()
        }
    }

    /// Publishes in the lock file how other processes can send requests to this one. The text stays until the folder is
    /// closed. The method blocks.
    ///
    /// - Parameter text: One line of at most 128 bytes; `nil` if other processes can't send requests.
    func announce(_ text: String?) throws {
        try lock.withLock { lock in
            guard let lock, access.isWritable else { return }
            let start = Int64(signature.utf8.count)
            let line = text.map { Array(($0.prefix { !$0.isNewline } + "\n").utf8) } ?? []
            try line.withUnsafeBytes { try lock.write($0, at: start) }
            try lock.punchHole(start + Int64(line.count)..<Int64.max)
        }
    }

    /// Returns the text published by the process that has the folder at `path` open, or `nil` if there is none. The
    /// method blocks.
    static func announcement(path: String, fileSystem: any FileSystem) -> String? {
        // A file that can't be read counts as empty.
        guard let text = try? text(of: fileSystem.openFile(path + "/lock", .read)) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count >= 4 ? String(lines[2]) : nil
    }

    // MARK: - Media files

    /// The unit in bytes in which the volume allocates space to media files; 1 if it is unknown. Reading the property
    /// blocks while the unit is unknown.
    var blockSize: Int64 {
        let known = catalog.volumeBlockSize.load(ordering: .relaxed)
        guard known == 0, access.isWritable else { return max(known, 1) }
        guard let space = try? bytes.volumeSpace() else { return 1 }  // The next call tries again.
        catalog.volumeBlockSize.store(max(space.blockSize, 1), ordering: .relaxed)
        return max(space.blockSize, 1)
    }

    /// Returns the sealer for a new generation.
    func sealer(_ identifier: GenerationIdentifier, key: CacheKey) -> BlockSealer {
        secret.sealer(of: identifier, key: key)
    }

    /// Returns the sealer for a stored generation; `nil` if its blocks are in an unknown format.
    func sealer(of stored: GenerationRecord, key: CacheKey) -> BlockSealer? {
        guard stored.format == secret.format.rawValue else { return nil }
        return secret.sealer(of: stored.identifier, key: key)
    }

    /// Returns the file of a generation, which is opened when it is needed.
    func pooledFile(_ identifier: GenerationIdentifier, in pool: FilePool) -> PooledFile {
        let (bytes, name, isWritable) = (bytes, identifier.hex, access.isWritable)
        return PooledFile(
            pool: pool,
            openExisting: { () throws(CacheError) in try bytes.open(name, isWritable: isWritable) },
            create: { [weak self] () throws(CacheError) in
                guard let self else { throw CacheError(.closed, "the cache has been closed") }
                return try makeFile(identifier)
            })
    }

    /// Creates the file of a generation.
    ///
    /// The method throws if the folder was deleted, even if another process has created it again, because no process
    /// would remove the file.
    func makeFile(_ identifier: GenerationIdentifier) throws(CacheError) -> any StoredFile {
        guard access.isWritable else {
            throw CacheError(
                .storage, "a media file can't be created in “\(path)”: the cache is read-only")
        }
        guard try isOurs() else {
            throw .system("was deleted, so media files can't be created", path: path, errno: ENOENT)
        }
        return try bytes.create(identifier.hex)
    }

    private func isOurs() throws(CacheError) -> Bool {
        guard !signature.isEmpty else { return true }
        do {
            return try Self.text(of: fileSystem.openFile(path + "/lock", .read)).hasPrefix(signature)
        } catch {
            guard error.posixCode == .ENOENT || error.posixCode == .ENOTDIR else { throw error }
            return false
        }
    }

    /// Creates the file of the next generation in advance, because a player would otherwise wait for it. The method
    /// blocks.
    ///
    /// A failure is not reported here. The caller that needs the file tries again, and reports the error.
    ///
    /// - Parameter identifier: The name of the file, which must already count as in use.
    /// - Returns: Whether the file was created, in which case the name is in use.
    func prepareFile(_ identifier: GenerationIdentifier) -> Bool {
        guard access.isWritable, prepared.withLock({ $0.beginCreating() }) else { return false }
        guard let file = try? makeFile(identifier) else {  // The caller tries again and reports the error.
            prepared.withLock { $0.recordCreationFailure() }
            return false
        }
        if prepared.withLock({ $0.keep((identifier, file)) }) { return true }
        removeMedia(identifier)
        return false
    }

    /// Whether the file of the next generation has to be created in advance. The value is `false` if that file exists
    /// or is being created.
    var wantsPreparedFile: Bool { access.isWritable && prepared.withLock { $0.isWanted } }

    /// Returns the file that was created in advance, if there is one. It then belongs to the caller.
    func takePrepared() -> (GenerationIdentifier, any StoredFile)? { prepared.withLock { $0.take() } }

    /// Removes the file of a generation that was removed from the catalog. Readers that have it open can still read its
    /// bytes.
    ///
    /// - Returns: The error if the file could not be removed, in which case the cache searches for it the next time the
    ///   folder is opened.
    @discardableResult
    func removeMedia(_ identifier: GenerationIdentifier) -> CacheError? {
        do throws(CacheError) {
            try bytes.remove(identifier.hex)
            return nil
        } catch {
            // The order matters; see ``recordSwept(since:)``.
            failedRemovals.add(1, ordering: .sequentiallyConsistent)
            // This is recorded only once, regardless of the number of files that can't be removed.
            guard !isSweepRecorded.exchange(true, ordering: .sequentiallyConsistent) else { return error }
            do {
                try catalog.settings.setSweepPending(true)
            } catch {
                isSweepRecorded.store(false, ordering: .sequentiallyConsistent)
                isSweepUnrecorded.store(true, ordering: .relaxed)
            }
            return error
        }
    }

    /// Removes catalogs that were set aside, except for one that is recent and small.
    ///
    /// - Parameter limit: The maximum size of the remaining catalog, in bytes.
    /// - Returns: The size of the remaining catalog, in bytes.
    func removeSetAside(limit: Int64) -> Int64 {
        guard access.isWritable, !signature.isEmpty else { return 0 }
        let removed = try? Catalog.removeSetAside(  // This is retried when the cache is next opened.
            of: catalog.path, limit: limit, fileSystem: fileSystem, lastUse: try catalog.uses.newestUse())
        return removed ?? 0
    }

    /// The number of failed removals, which a sweep reads at its start and passes to ``recordSwept(since:)``.
    var removalsFailed: Int { failedRemovals.load(ordering: .sequentiallyConsistent) }

    /// Records that a sweep has examined all files, unless the removal of a file that the sweep may already have passed
    /// has failed since.
    func recordSwept(since failed: Int) throws {
        guard removalsFailed == failed else { return }
        isSweepRecorded.store(false, ordering: .sequentiallyConsistent)
        try catalog.settings.setSweepPending(false)
        // A removal that failed between these lines was recorded either before or after this change. If it was recorded
        // before, it is recorded again.
        if removalsFailed != failed {
            try catalog.settings.setSweepPending(true)
            isSweepRecorded.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Calls `body` with the names of all media files until it returns `false`.
    func forEachMediaFile(_ body: (GenerationIdentifier) throws -> Bool) throws {
        try bytes.forEachName { name in
            guard let identifier = GenerationIdentifier(hex: name) else { return true }
            return try body(identifier)
        }
    }

    /// Returns the space on the volume of the media.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the space can't be read, or `invalidArgument` if it is unknown.
    func volumeSpace() throws(CacheError) -> VolumeSpace {
        if let space = try bytes.volumeSpace() { return space }
        throw CacheError(
            .invalidArgument, "the free space for media in “\(path)” is unknown: the capacity must be in bytes")
    }

    /// Returns the space that media may use, in bytes. It is the space offered by the system for content that can be
    /// fetched again. If that is unknown, it is all free space on the volume.
    ///
    /// - Throws: The same errors as ``volumeSpace()``.
    func spaceForMedia() throws(CacheError) -> Int64 {
        // A different byte store may be on another volume.
        if bytes is FileByteStore, let space = fileSystem.spaceForCaches(at: path) { return space }
        return try volumeSpace().free
    }

    static func text(of file: any StoredFile) throws(CacheError) -> String {
        var bytes = [UInt8](repeating: 0, count: 256)
        var count = 0
        // Throwing from the closure would lose the type of the error.
        var failure: CacheError?
        bytes.withUnsafeMutableBytes { buffer in
            do throws(CacheError) { count = try file.read(into: buffer, at: 0) } catch { failure = error }
        }
        if let failure { throw failure }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// The file that was created for the next generation.
private enum Prepared {
    case none
    /// A file is being created, so a second one is not started.
    case creating
    case file((GenerationIdentifier, any StoredFile))
    /// The directory is closed, and no file is needed anymore.
    case closed

    var isWanted: Bool { if case .none = self { true } else { false } }

    /// Returns whether the caller has to create a file. If so, other callers do not create one in the meantime.
    mutating func beginCreating() -> Bool {
        guard isWanted else { return false }
        self = .creating
        return true
    }

    /// Records that the file could not be created.
    mutating func recordCreationFailure() {
        if case .creating = self { self = .none }
    }

    /// Keeps the file that was created, unless no file is needed anymore. Returns `false` in that case.
    mutating func keep(_ file: (GenerationIdentifier, any StoredFile)) -> Bool {
        guard case .creating = self else { return false }
        self = .file(file)
        return true
    }

    /// Returns the file, which then belongs to the caller; `nil` if there is none.
    mutating func take(closing: Bool = false) -> (GenerationIdentifier, any StoredFile)? {
        defer { if closing { self = .closed } }
        guard case .file(let file) = self else { return nil }
        self = .none
        return file
    }
}
