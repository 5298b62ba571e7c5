import ByteRanges
import Foundation
import Synchronization

/// The size of the copy that is made to change the key of a cache.
package struct RekeyingPlan: Hashable, Sendable {
    /// The number of media files to copy.
    package var resources: Int
    /// The number of stored bytes in these files.
    package var bytes: Int64
    /// The free space that the copy needs, in bytes.
    package var neededSpace: Int64
    /// The free space in bytes; `nil` if it is unknown.
    package var freeSpace: Int64?
}

extension Store {
    /// Changes the key of the closed cache in a directory. The method encrypts an unencrypted cache, and decrypts the
    /// cache if the new key is `nil`.
    ///
    /// - Parameters:
    ///   - byteStore: The storage of media bytes; `nil` for files in the directory.
    ///   - willCopy: A function that is called before the copy starts.
    /// - Throws: ``CacheError``, in which case the cache keeps its previous key:
    ///   - `notStored` if there is no cache
    ///   - `directoryInUse` if a process has the cache open, even if only for reading
    ///   - `keyRequired` or `wrongEncryptionKey` for the previous key
    ///   - `invalidArgument` for an invalid key, or if the cache is unencrypted and would stay unencrypted
    ///   - `storage`, including if there is too little free space
    ///
    ///   Also throws `CancellationError`, and errors from the key derivation.
    @discardableResult
    package static func rekey(
        path: String, from previous: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil,
        fileSystem: any FileSystem = SystemFileSystem(), clock: CacheClock,
        willCopy: @Sendable (RekeyingPlan) -> Void = { _ in }
    ) async throws -> RekeyingPlan {
        let executor = BlockingExecutor(threadLimit: 1)
        let rekeyer = try await executor.run {
            // Opening the directory would create a missing cache, so the catalog is inspected first.
            try CacheDirectory.catalog(inspecting: path, key: previous, fileSystem: fileSystem).close()
            let directory = try CacheDirectory(
                opening: path, key: previous, fileSystem: fileSystem, bytes: byteStore, now: clock.now())
            do {
                return try Rekeyer(directory, from: previous, to: key, random: clock.random)
            } catch {
                try? directory.close()  // The error that is thrown states the cause.
                throw error
            }
        }
        let plan: RekeyingPlan
        let isDurable: Bool
        do {
            plan = try await executor.run { try rekeyer.plan() }
            willCopy(plan)
            try rekeyer.checkSpace(plan)
            try await rekeyer.copyVersions(executor)
            isDurable = try await executor.run { try rekeyer.finish() }
        } catch {
            await executor.run { rekeyer.discard() }
            throw error
        }
        await executor.run {
            // Otherwise, the previous catalog could reappear after a loss of power, and its media files would be
            // missing.
            guard isDurable else { return }
            // Opening the directory removes the previous media files. If this fails, they are removed the next time it
            // is opened.
            _ = try? CacheDirectory(opening: path, key: key, fileSystem: fileSystem, bytes: byteStore, now: clock.now())
                .sweep().close()
        }
        return plan
    }
}

/// An operation that copies a closed cache, encrypts the copy with a different key, and replaces the cache with the
/// copy.
///
/// Each media file is copied to a new name in the same directory, and a second catalog refers to the copies. At the
/// end, the second catalog is renamed over the first one, and the previous media files are removed.
///
/// Until the rename, the cache is unchanged. If the process is killed before the rename, no record names the copied
/// files. They and the second catalog are removed the next time the cache is opened.
///
/// The copy is not created in a second directory next to the first one. A cache directory may be the root of a volume,
/// or in a directory that its owner may not write to.
private struct Rekeyer: Sendable {
    private let directory: CacheDirectory
    /// The previous catalog, which is opened read-only.
    private let catalog: Catalog
    private let copy: CatalogCopy
    private let random: @Sendable () -> UInt64
    private let created = CreatedFiles()

    private final class CreatedFiles: Sendable {
        let names = Mutex<[GenerationIdentifier]>([])
    }

    init(
        _ directory: CacheDirectory, from previous: EncryptionKey?, to key: EncryptionKey?,
        random: @escaping @Sendable () -> UInt64
    ) throws {
        switch directory.access {
        case .readWrite: break
        case .read(let cause), .none(let cause): throw cause
        }
        guard key != nil || directory.catalog.format.isEncrypted else {
            throw CacheError(.invalidArgument, "“\(directory.path)” is not encrypted, and no new key was given")
        }
        // An interrupted run may have left files that occupy as much space as this run needs.
        directory.sweep()
        try directory.catalog.close()
        try Catalog.endLog(of: directory.catalog.path)
        catalog = try Catalog(inspecting: directory.catalog.path, key: previous)
        do {
            copy = try CatalogCopy(of: catalog, for: key, fileSystem: directory.fileSystem)
        } catch {
            try? catalog.close()  // The error that is thrown states the cause.
            throw error
        }
        self.directory = directory
        self.random = random
    }

    // MARK: - Space

    /// Returns the size of the copy. Each file may use part of a page in addition to its bytes, and the second catalog
    /// is rewritten once.
    func plan() throws -> RekeyingPlan {
        let count = try catalog.generationCount()
        // The recorded sum may be wrong.
        let bytes = try catalog.blocks.countedBytes().bytes.values.reduce(0) { Catalog.byteCount($0 + $1) }
        return RekeyingPlan(
            resources: count, bytes: bytes, neededSpace: bytes + Int64(count) * 4096 + 2 * (try catalog.byteCount()),
            freeSpace: try directory.bytes.volumeSpace()?.free)
    }

    func checkSpace(_ plan: RekeyingPlan) throws {
        guard let free = plan.freeSpace, free < plan.neededSpace else { return }
        throw CacheError(
            .storage,
            "the key of “\(directory.path)” can't be changed: the copy needs \(plan.neededSpace.counted("byte")) of free "
                + "space, but only \(free.grouped) are free; free some space, or remove media from the cache")
    }

    // MARK: - Media

    func copyVersions(_ executor: BlockingExecutor) async throws {
        var last = ""
        while true {
            let after = last
            let keys = try await executor.run { try catalog.keys(after: after, limit: 64) }
            guard let next = keys.last else { return }
            for key in keys { try await copyVersion(of: key, executor) }
            last = next
        }
    }

    /// A version whose blocks are being copied to a different file.
    private struct VersionCopy: Sendable {
        let stored: GenerationRecord
        let source: any StoredFile
        let target: any StoredFile
        let identifier: GenerationIdentifier
        let previousSealer: BlockSealer
        let sealer: BlockSealer

        /// Copies a block; returns `nil` if the file does not contain the bytes that were received.
        func copy(_ block: BlockRecord) throws -> BlockRecord? {
            var bytes = Data(count: Int(block.length))
            let start = block.range.lowerBound
            let count = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: start) }
            guard count == bytes.count,
                let received = bytes.withUnsafeBytes({ previousSealer.open($0, as: block) })
            else { return nil }
            return try received.withUnsafeBytes { bytes in
                try sealer.encrypt(bytes, index: block.index) { try target.write($0, at: start) }
            }
        }
    }

    private func copyVersion(of key: String, _ executor: BlockingExecutor) async throws {
        guard let version = try await executor.run({ try begin(key) }) else { return }
        var copied = ByteRangeSet()
        var next: Int64? = 0
        // A few blocks are copied at a time, so that a cancellation takes effect soon. Only the rows of blocks are
        // used, because the recorded ranges may be wrong.
        while let first = next {
            try Task.checkCancellation()
            let (blocks, last) = try await executor.run { () throws -> ([BlockRecord], Int64?) in
                let recorded = try catalog.blocks.records(of: version.stored.id, in: first..<Int64.max, limit: 64)
                let blocks = try recorded.compactMap { try version.copy($0) }
                try copy.add(blocks, to: version.stored.id)
                return (blocks, recorded.last?.index)
            }
            for block in blocks { copied.insert(block.range) }
            next = last.map { $0 + 1 }
        }
        let storedRanges = copied
        try await executor.run {
            try version.target.synchronize()
            try copy.move(version.stored, of: key, to: version.identifier, storedRanges: storedRanges)
        }
    }

    /// Creates the file for the copy of a resource's version.
    ///
    /// - Returns: `nil` if there are no bytes to copy.
    private func begin(_ key: String) throws -> VersionCopy? {
        guard let record = try catalog.resource(key: key), !record.isUnreadable else {
            try copy.remove(key)
            return nil
        }
        guard let stored = record.generation else { return nil }
        let cacheKey = CacheKey(hash: key)
        guard let previousSealer = directory.sealer(of: stored, key: cacheKey) else {
            try copy.remove(key)
            return nil
        }
        let identifier = GenerationIdentifier(random: random)
        guard let source = try source(stored) else {
            try copy.move(stored, of: key, to: identifier, storedRanges: [])
            return nil
        }
        created.names.withLock { $0.append(identifier) }
        return VersionCopy(
            stored: stored, source: source,
            target: try directory.makeFile(identifier), identifier: identifier, previousSealer: previousSealer,
            sealer: copy.secret.sealer(of: identifier, key: cacheKey))
    }

    /// Returns the file of a version; `nil` if it no longer exists, or if something other than a file has its name.
    private func source(_ stored: GenerationRecord) throws -> (any StoredFile)? {
        do throws(CacheError) {
            return try directory.bytes.open(stored.identifier.hex, isWritable: false)
        } catch {
            guard error.isNotRegularFile else { throw error }
            return nil
        }
    }

    // MARK: - Finishing

    /// Writes the second catalog to the device, and replaces the first one with it. The contents of the copied media
    /// files are already on the device, but their names may not be.
    ///
    /// - Returns: Whether the replacement is on the device, so that the previous media files may be removed.
    func finish() throws -> Bool {
        let fileSystem = directory.fileSystem
        if let files = directory.bytes as? FileByteStore {
            try files.synchronizeFolders(of: created.names.withLock { $0 }.map(\.hex))
        }
        try copy.finish(fileSystem)
        try catalog.close()
        try fileSystem.rename(copy.path, to: catalog.path)
        // If this fails, the previous media files are removed the next time the directory is opened.
        let isDurable = (try? fileSystem.synchronizeDirectory(directory.path)) != nil
        try? directory.close()  // The files are checked when the cache is next opened, as after an unclean shutdown.
        return isDurable
    }

    /// Removes the copy.
    func discard() {
        copy.discard(directory.fileSystem)
        try? catalog.close()  // The catalog was opened read-only.
        for name in created.names.withLock({ $0 }) { directory.removeMedia(name) }
        try? directory.close()  // Files without a record are removed when the cache is next opened.
    }
}

extension CacheDirectory {
    /// Removes media files that no record names, if there may be any, while no store has the directory open.
    @discardableResult
    fileprivate func sweep() -> CacheDirectory {
        FileRemover(directory: self, ledger: Ledger(limit: nil, used: 0), reporter: StoreReporter { _ in })
            .sweep { _ in false }
        return self
    }
}
