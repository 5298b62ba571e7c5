import Crypto
import Foundation
import Synchronization

/// Where a cache lives, a folder or memory: who may write it, its media files, and what an unclean end left behind.
///
/// ```
/// <path>/CACHEDIR.TAG          tells backup programs to pass over
///        lock                  locked while a process writes; holds its id and name, and is empty after a clean end
///        catalog.sqlite        see Catalog
///        media/ab/ab…cd.media  one file for each generation, named at random; see ``ByteStore``
/// ```
///
/// Methods block and belong on a ``BlockingExecutor``; any thread may call.
final class CacheDirectory: Sendable {
    /// What this process may do in the folder.
    enum Access: Sendable {
        case readWrite
        /// The disk is full or read-only, and says so; what is there can be read.
        case read(CacheError)
        /// It is only read, beside another process that may have it; what is there can go or be replaced at any moment.
        case beside(CacheError)
        /// There is nothing to read, either.
        case none(CacheError)

        var isWritable: Bool { if case .readWrite = self { true } else { false } }
        var isShared: Bool { if case .beside = self { true } else { false } }
    }

    /// The folder.
    let path: String
    /// What is in it.
    let catalog: Catalog
    let access: Access
    /// What was found wrong and mended, as sentences.
    let notices: [String]
    let fileSystem: any FileSystem
    /// Where the media files are.
    let bytes: any ByteStore
    private let secret: CacheSecret
    private let lock: Mutex<(any StoredFile)?>
    /// What the lock file says: if it says something else, the folder is no longer ours. Empty where there is none.
    private let signature: String
    /// See ``prepareFile(_:)``.
    private let prepared = Mutex(Prepared.none)
    /// Whether a file could not be removed, and the catalog not be told.
    private let isSweepUnnoted = Atomic(false)
    /// How many files could not be removed.
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
    }

    /// Ends the use of the folder: closes the catalog and gives up the lock. Media files that are open stay open.
    ///
    /// What is not closed counts as an unclean end.
    func close() throws {
        // One that can't be removed is an orphan, which the next opening is told of.
        if let (unused, _) = prepared.withLock({ $0.take(closing: true) }) { removeMedia(unused) }
        try catalog.close()
        try lock.withLock { lock in
            guard let file = lock else { return }
            lock = nil
            // By word rather than by closing it: a process that is just being started has the descriptor, too.
            defer { _ = try? file.setMark(.none) }  // Closing it, a moment later, does the same.
            // What has to be swept and could not be noted as such is found after an unclean end.
            guard access.isWritable, !isSweepUnnoted.load(ordering: .relaxed) else { return }
            // Shortened to nothing: the mark of a clean end.
            try file.punchHole(0..<Int64.max)
            try file.synchronize()
        }
    }

    /// Notes in the lock file how others may ask this process, until the folder is closed. Blocks.
    ///
    /// - Parameter text: One line, of which there are at most 128 bytes; nil: not at all.
    func announce(_ text: String?) throws {
        try lock.withLock { lock in
            guard let lock, access.isWritable else { return }
            let start = Int64(signature.utf8.count)
            let line = text.map { Array(($0.prefix { !$0.isNewline } + "\n").utf8) } ?? []
            try line.withUnsafeBytes { try lock.write($0, at: start) }
            try lock.punchHole(start + Int64(line.count)..<Int64.max)
        }
    }

    /// What the process that has the folder at `path` has noted there; nil if nothing. Blocks.
    static func announcement(path: String, fileSystem: any FileSystem) -> String? {
        // What can't be read says nothing.
        guard let text = try? text(of: fileSystem.openFile(path + "/lock", .read)) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count >= 4 ? String(lines[2]) : nil
    }

    // MARK: - Media files

    /// The sealer of a generation that begins.
    func sealer(_ identifier: GenerationIdentifier, key: CacheKey) -> BlockSealer {
        secret.sealer(of: identifier, key: key)
    }

    /// The sealer of a stored generation; `nil` if its blocks are in an unknown format.
    func sealer(of stored: GenerationRecord, key: CacheKey) -> BlockSealer? {
        guard stored.format == secret.format.rawValue else { return nil }
        return secret.sealer(of: stored.identifier, key: key)
    }

    /// The file of a generation, opened when it is wanted.
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

    /// Makes the file of a generation.
    ///
    /// Not where the folder was deleted, or deleted and begun by somebody else: what is made there nobody would remove.
    func makeFile(_ identifier: GenerationIdentifier) throws(CacheError) -> any StoredFile {
        guard access.isWritable else {
            throw CacheError(
                .storage, "a media file can't be made in “\(path)”: the cache was opened to read only")
        }
        guard try isOurs() else {
            throw .system("was deleted: no media file can be made there", path: path, errno: ENOENT)
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

    /// Makes the file of a coming generation, since a player would wait for it. Blocks.
    ///
    /// One that can't be made is no error here: whoever needs it tries again, and says why not.
    ///
    /// - Parameter identifier: Its name, which must count as live already.
    /// - Returns: Whether it was made, and the name is taken.
    func prepareFile(_ identifier: GenerationIdentifier) -> Bool {
        guard access.isWritable, prepared.withLock({ $0.beginMaking() }) else { return false }
        guard let file = try? makeFile(identifier) else {  // Whoever needs it tries again, and says why not.
            prepared.withLock { $0.endMaking() }
            return false
        }
        if prepared.withLock({ $0.keep((identifier, file)) }) { return true }
        removeMedia(identifier)
        return false
    }

    /// Whether the file that was made ahead has been taken.
    var wantsPreparedFile: Bool { access.isWritable && prepared.withLock { $0.isWanted } }

    /// The file that was made ahead, if there is one: from now on the caller's.
    func takePrepared() -> (GenerationIdentifier, any StoredFile)? { prepared.withLock { $0.take() } }

    /// Removes the file of a generation that is gone from the catalog; who has it open keeps its bytes.
    ///
    /// - Returns: Why it could not be removed: then the next opening looks for it.
    @discardableResult
    func removeMedia(_ identifier: GenerationIdentifier) -> CacheError? {
        do throws(CacheError) {
            try bytes.remove(identifier.hex)
            return nil
        } catch {
            // In this order: see ``noteSwept(since:)``.
            failedRemovals.add(1, ordering: .sequentiallyConsistent)
            do { try catalog.settings.setSweepPending(true) } catch { isSweepUnnoted.store(true, ordering: .relaxed) }
            return error
        }
    }

    /// What a sweep hands to ``noteSwept(since:)`` in the end.
    var removalsFailed: Int { failedRemovals.load(ordering: .sequentiallyConsistent) }

    /// Notes that a sweep has looked at all files; but not where one that it may have passed could not be removed since.
    func noteSwept(since failed: Int) throws {
        guard removalsFailed == failed else { return }
        try catalog.settings.setSweepPending(false)
        // One that failed between these lines was noted before or after; before, it is noted again.
        if removalsFailed != failed { try catalog.settings.setSweepPending(true) }
    }

    /// Calls `body` with the names of all media files until it returns false.
    func forEachMediaFile(_ body: (GenerationIdentifier) throws -> Bool) throws {
        try bytes.forEachName { name in
            guard let identifier = GenerationIdentifier(hex: name) else { return true }
            return try body(identifier)
        }
    }

    /// The room where the media lies.
    ///
    /// - Throws: ``CacheError``: `storage` when it can't be asked; `invalidArgument` where none can be told.
    func space() throws(CacheError) -> VolumeSpace {
        if let space = try bytes.space() { return space }
        throw CacheError(
            .invalidArgument, "the room for media in “\(path)” can't be told: a capacity has to be in bytes")
    }

    static func text(of file: any StoredFile) throws(CacheError) -> String {
        var bytes = [UInt8](repeating: 0, count: 256)
        var count = 0
        // A closure would lose the type of the error.
        var failure: CacheError?
        bytes.withUnsafeMutableBytes { buffer in
            do throws(CacheError) { count = try file.read(into: buffer, at: 0) } catch { failure = error }
        }
        if let failure { throw failure }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// The file that has been made for the next generation.
private enum Prepared {
    case none
    /// One is being made: no second one beside it.
    case making
    case file((GenerationIdentifier, any StoredFile))
    /// The directory is closed, and none is wanted any more.
    case closed

    var isWanted: Bool { if case .none = self { true } else { false } }

    /// Whether the caller is to make one.
    mutating func beginMaking() -> Bool {
        guard isWanted else { return false }
        self = .making
        return true
    }

    /// It could not be made.
    mutating func endMaking() {
        if case .making = self { self = .none }
    }

    /// Keeps the file that was made unless none is wanted any more; whether it did.
    mutating func keep(_ file: (GenerationIdentifier, any StoredFile)) -> Bool {
        guard case .making = self else { return false }
        self = .file(file)
        return true
    }

    /// The file, from now on the caller's.
    mutating func take(closing: Bool = false) -> (GenerationIdentifier, any StoredFile)? {
        defer { if closing { self = .closed } }
        guard case .file(let file) = self else { return nil }
        self = .none
        return file
    }
}
