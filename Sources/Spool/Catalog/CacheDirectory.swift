import Crypto
package import Foundation
import Synchronization

/// The folder in which a cache lives: who may write it, where each file is, and what an unclean end left behind.
///
/// ```
/// <path>/CACHEDIR.TAG          tells backup programs to pass over
///        lock                  locked while a process writes; holds its id and name, and is empty after a clean end
///        catalog.sqlite        see Catalog
///        media/ab/ab…cd.media  one file for each generation, named at random
/// ```
///
/// Methods block and belong on a ``BlockingExecutor``; any thread may call. A media file that is missing or too short
/// is no error: what it should hold are holes.
package final class CacheDirectory: Sendable {
    /// The folder.
    package let path: String
    /// What is in it.
    package let catalog: Catalog
    /// Whether this process may write.
    package let isWritable: Bool
    /// What opening found.
    package let recovery: Recovery
    private let fileSystem: any FileSystem
    private let random: @Sendable () -> UInt64
    private let sealKey: SymmetricKey
    private let lock: Mutex<(any StoredFile)?>
    /// See ``prepareFile()``.
    private let prepared = Mutex(Prepared.none)

    /// What opening a directory found.
    package struct Recovery: Hashable, Sendable {
        /// Whether the last process that wrote here did not end as it should.
        package var wasUnclean = false
        /// Where a damaged catalog was put; the cache goes on empty.
        package var damagedCatalog: String?
        /// Media files that no record named; they are removed.
        package var orphansRemoved = 0

        /// A clean start.
        package init() {}
    }

    /// Opens a cache to read and write; begins it, readable by its owner only, if there is none.
    ///
    /// After an unclean end, files that no record names are removed here, and each file's unclaimed bytes when it is
    /// next opened.
    ///
    /// - Throws: ``CacheError``: `directoryInUse`, which names the process that has it; `catalogTooNew`; `storage`.
    package init(
        opening path: String, fileSystem: any FileSystem = SystemFileSystem(), now: Date = Date(),
        random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    ) throws {
        try fileSystem.createDirectory(path)
        let lock = try Self.takeLock(path, fileSystem)
        var recovery = Recovery()
        recovery.wasUnclean = try lock.size() > 0
        try Self.sign(lock)
        try Self.writeTag(path, fileSystem)
        let catalog = try Catalog(path: path + "/catalog.sqlite", fileSystem: fileSystem, now: now)
        recovery.damagedCatalog = catalog.setAside
        if recovery.wasUnclean || recovery.damagedCatalog != nil {
            try catalog.advanceTidyEpoch()
            recovery.orphansRemoved = try Self.sweep(path, keeping: catalog.generations(), fileSystem)
        }
        self.sealKey = try catalog.sealKey()
        self.path = path
        self.catalog = catalog
        self.isWritable = true
        self.recovery = recovery
        self.fileSystem = fileSystem
        self.random = random
        self.lock = Mutex(lock)
    }

    /// Opens a cache to look at, which another process may be using.
    ///
    /// - Throws: ``CacheError``: `notStored` if there is no cache; `catalogTooNew`, `catalogDamaged`, `storage`.
    package init(inspecting path: String, fileSystem: any FileSystem = SystemFileSystem()) throws {
        let catalogPath = path + "/catalog.sqlite"
        do {
            _ = try fileSystem.openFile(catalogPath, .read)
        } catch {
            guard error.posixCode == .ENOENT || error.posixCode == .ENOTDIR else { throw error }
            throw CacheError(.notStored, "“\(path)” holds no cache.", underlying: error)
        }
        self.path = path
        self.catalog = try Catalog(inspecting: catalogPath)
        self.sealKey = try catalog.sealKey()
        self.isWritable = false
        self.recovery = Recovery()
        self.fileSystem = fileSystem
        self.random = { UInt64.random(in: .min ... .max) }
        self.lock = Mutex(nil)
    }

    /// Ends the use of the cache: closes the catalog and gives up the lock. Media files that are open stay open.
    ///
    /// What is not closed counts as an unclean end.
    package func close() throws {
        if let (unused, _) = prepared.withLock({ $0.take(closing: true) }) { try? removeMedia([unused]) }
        try catalog.close()
        try lock.withLock { lock in
            guard let file = lock else { return }
            lock = nil
            // Shortened to nothing: the mark of a clean end.
            try file.punchHole(0..<Int64.max)
            try file.synchronize()
        }
    }

    // MARK: - Media files

    /// Opens a generation's bytes; its blocks are claims, checked at first read.
    ///
    /// Records of blocks that the file is too short to hold are dropped from the catalog.
    ///
    /// - Parameter key: The resource's key, which its seals cover.
    /// - Throws: ``CacheError`` with code `storage`, as when too many files are open.
    package func openMedia(_ generation: GenerationRecord, key: String) throws -> MediaFile {
        let sealer = BlockSealer(secret: sealKey, resource: key, generation: generation.identifier)
        guard let file = try openFile(generation.identifier) else {
            return MediaFile(file: EmptyFile(), sealer: sealer, length: generation.length)
        }
        let size = try file.size()
        var blocks = generation.storedBytes == 0 ? [] : try catalog.blocks(of: generation.id)
        let lost = blocks.filter { $0.range.upperBound > size }.map(\.index)
        blocks.removeAll { $0.range.upperBound > size }
        if isWritable, !lost.isEmpty { try catalog.dropBlocks(generation.id, indices: lost) }
        let media = MediaFile(file: file, sealer: sealer, blocks: blocks, length: generation.length)
        // A file that has just been made holds nothing to tidy, and a player waits for it.
        if isWritable, size > 0, try catalog.needsTidying(generation.id) {
            try media.freeUnclaimed()
            try catalog.noteTidied(generation.id)
        }
        return media
    }

    /// The file of a generation that begins, under the name that it shall have.
    ///
    /// - Throws: ``CacheError`` with code `storage`.
    package func makeMedia(key: String) throws -> (GenerationIdentifier, MediaFile) {
        let (identifier, file) = try prepared.withLock { $0.take() } ?? makeFile()
        let sealer = BlockSealer(secret: sealKey, resource: key, generation: identifier)
        return (identifier, MediaFile(file: file, sealer: sealer))
    }

    /// Makes the file of the next generation ahead, since a player would wait for it. Blocks.
    ///
    /// One that can't be made is no error here: whoever needs it tries again, and says why not.
    package func prepareFile() {
        guard prepared.withLock({ $0.isWanted }), let made = try? makeFile() else { return }
        if !prepared.withLock({ $0.keep(made) }) { try? removeMedia([made.0]) }
    }

    private func makeFile() throws -> (GenerationIdentifier, any StoredFile) {
        let identifier = GenerationIdentifier(random: random)
        guard let file = try openFile(identifier) else {
            throw CacheError(.storage, "The cache was opened to look at, not to write.")
        }
        return (identifier, file)
    }

    private func openFile(_ identifier: GenerationIdentifier) throws -> (any StoredFile)? {
        let path = mediaPath(identifier)
        do {
            return try fileSystem.openFile(path, isWritable ? .create : .read)
        } catch {
            guard error.posixCode == .ENOENT else { throw error }
            guard isWritable else { return nil }
            try fileSystem.createDirectory((path as NSString).deletingLastPathComponent)
            return try fileSystem.openFile(path, .create)
        }
    }

    /// Removes the files of generations that are gone from the catalog; readers that have one open keep its bytes.
    package func removeMedia(_ identifiers: some Sequence<GenerationIdentifier>) throws {
        for identifier in identifiers { try fileSystem.remove(mediaPath(identifier)) }
    }

    /// Where a generation's bytes are.
    package func mediaPath(_ identifier: GenerationIdentifier) -> String {
        "\(path)/media/\(identifier.hex.prefix(2))/\(identifier.hex).media"
    }

    /// Bytes that may still be written on the volume.
    package func availableBytes() throws -> Int64 { try fileSystem.availableBytes(at: path) }

    private static func sweep(
        _ path: String, keeping kept: Set<GenerationIdentifier>, _ fileSystem: any FileSystem
    ) throws -> Int {
        var removed = 0
        for shard in try fileSystem.list(path + "/media").sorted() {
            let folder = "\(path)/media/\(shard)"
            for name in ((try? fileSystem.list(folder)) ?? []).sorted() where name.hasSuffix(".media") {
                // A file with a name of ours and no record; whatever else somebody put here is not ours to remove.
                guard let identifier = GenerationIdentifier(hex: name.dropLast(".media".count)),
                    !kept.contains(identifier)
                else { continue }
                if try fileSystem.remove("\(folder)/\(name)") { removed += 1 }
            }
        }
        return removed
    }

    // MARK: - The lock

    private static func takeLock(_ path: String, _ fileSystem: any FileSystem) throws -> any StoredFile {
        let lockPath = path + "/lock"
        if let lock = try fileSystem.lockFile(lockPath) { return lock }
        let holder = (try? fileSystem.openFile(lockPath, .read)).flatMap(content) ?? "another process"
        throw CacheError(.directoryInUse, "“\(path)” is in use by \(holder).")
    }

    private static func content(_ file: any StoredFile) -> String? {
        var bytes = [UInt8](repeating: 0, count: 256)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(into: $0, at: 0) }), count > 0 else {
            return nil
        }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        return String(text.prefix { !$0.isNewline })
    }

    private static func sign(_ lock: any StoredFile) throws {
        let process = ProcessInfo.processInfo
        try lock.punchHole(0..<Int64.max)
        try write("process \(process.processIdentifier) (\(process.processName))\n", to: lock)
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

/// The file that has been made for the next generation.
private enum Prepared {
    case none
    case file((GenerationIdentifier, any StoredFile))
    /// The directory is closed, and none is wanted any more.
    case closed

    var isWanted: Bool { if case .none = self { true } else { false } }

    /// Keeps a file unless there is one already, or none is wanted any more; whether it did.
    mutating func keep(_ file: (GenerationIdentifier, any StoredFile)) -> Bool {
        guard isWanted else { return false }
        self = .file(file)
        return true
    }

    /// The file, from now on the caller's.
    mutating func take(closing: Bool = false) -> (GenerationIdentifier, any StoredFile)? {
        let former = self
        if case .closed = former { return nil }
        self = closing ? .closed : .none
        if case .file(let file) = former { return file }
        return nil
    }
}

/// Stands for a media file that is missing where none may be made.
private final class EmptyFile: StoredFile {
    let fileDescriptor: Int32? = nil
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int { 0 }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        throw CacheError(.storage, "The cache was opened to look at, not to write.")
    }
    func punchHole(_ range: Range<Int64>) {}
    func size() -> Int64 { 0 }
    func synchronize() {}
}
