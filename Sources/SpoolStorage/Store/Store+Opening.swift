import ByteRanges
import Foundation
import Synchronization

extension Store {
    /// Opens, or begins, the cache in the directory at `path`, or with nil begins one in memory.
    ///
    /// Nothing that is kept is looked at: what an unclean end left is swept and tidied in the background. Where the disk
    /// is full or read-only, what is there can be played and nothing new is kept; see ``readOnlyReason``.
    ///
    /// - Throws: ``CacheError``: `invalidArgument` for a configuration that can't be; `directoryInUse`, which names the
    ///   process; `catalogTooNew`; `keyRequired`, `keyRefused`, within the time that it takes to look, and nothing is
    ///   changed; `storage` when the directory can't be used, also since others may write to it.
    package static func open(
        path: String?, configuration: Configuration = Configuration(),
        fileSystem: any FileSystem = SystemFileSystem(), executor: BlockingExecutor = BlockingExecutor(),
        clock: CacheClock, report: @escaping @Sendable (StoreEvent) -> Void
    ) async throws -> Store {
        try configuration.validate()
        let store = try await executor.run {
            guard !configuration.isReadOnly else {
                let cause = CacheError(.storage, "it was opened to be read")
                guard let path else {
                    throw CacheError(.invalidArgument, "a cache in memory can't only be read: it begins empty")
                }
                let directory = try CacheDirectory(
                    beside: path, key: configuration.key, fileSystem: fileSystem, bytes: configuration.byteStore,
                    because: cause)
                return try Store(
                    reading: directory, configuration: configuration, executor: executor, clock: clock, report: report)
            }
            let directory =
                if let path {
                    try CacheDirectory(
                        opening: path, key: configuration.key, fileSystem: fileSystem, bytes: configuration.byteStore,
                        now: clock.now())
                } else {
                    try CacheDirectory(inMemory: configuration.byteStore ?? MemoryByteStore(), fileSystem: fileSystem)
                }
            let capacity = try configuration.capacity.limit(in: directory)
            try configuration.checkFreeSpace(in: directory)
            let store = Store(
                directory: directory, configuration: configuration, capacity: capacity,
                used: try directory.catalog.storedBytes(), rowBytes: try directory.catalog.rowBytes(),
                executor: executor, clock: clock, report: report)
            try store.readAgeStart()
            return store
        }
        store.begin()
        return store
    }

    private convenience init(
        reading directory: CacheDirectory, configuration: Configuration, executor: BlockingExecutor, clock: CacheClock,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws {
        self.init(
            directory: directory, configuration: configuration, capacity: nil,
            used: try directory.catalog.storedBytes(), rowBytes: try directory.catalog.rowBytes(), executor: executor,
            clock: clock, report: report)
    }

    /// A store that keeps nothing, in place of one whose directory can't be used; impossible values are made possible.
    /// Where another process has the directory, what is stored can be read beside it.
    ///
    /// - Throws: ``CacheError`` where not even memory can be had.
    package static func standIn(
        at path: String, because cause: CacheError, configuration: Configuration, fileSystem: any FileSystem,
        executor: BlockingExecutor, clock: CacheClock, report: @escaping @Sendable (StoreEvent) -> Void
    ) throws -> Store {
        var configuration = configuration
        configuration.memoryLimit = max(configuration.memoryLimit, 1 << 20)
        configuration.openFileLimit = max(configuration.openFileLimit, 8)
        if cause.code == .directoryInUse,
            // What can't be read, either, is as if it were not there.
            let directory = try? CacheDirectory(
                beside: path, key: configuration.key, fileSystem: fileSystem, bytes: configuration.byteStore,
                because: cause)
        {
            return try Store(
                reading: directory, configuration: configuration, executor: executor, clock: clock, report: report)
        }
        let directory = try CacheDirectory(
            path: path, catalog: Catalog(inMemory: path), access: .none(cause), notices: [], fileSystem: fileSystem,
            bytes: nil, lock: nil, signature: "")
        return Store(
            directory: directory, configuration: configuration, capacity: nil, used: 0, rowBytes: 0, executor: executor,
            clock: clock, report: report)
    }

    private func begin() {
        guard directory.access.isWritable else { return }
        flusher.start { [weak self] in
            // The failure has been reported, and its changes wait for the next round.
            try? self?.writeChanges()
        }
        pullBackUses(to: nextUse())
        prepareFile()
        warmUp()
        sweep()
        goOnRekeying()
        beginAging()
        readOrderAhead()
        beginWatchingSpace()
    }

    /// Threads that a play keeps busy at once: one reads, one lands, one writes down.
    private static let playThreads = 3

    /// Asks the catalog once for nothing: the first question takes ten times as long as those that follow. And has threads
    /// ready.
    private func warmUp() {
        executor.prepareThreads(Self.playThreads)
        // Whoever asks for something meets the failure, too.
        work.start(in: .background) { [weak self] in _ = try? self?.catalog.resource(key: "") }
    }

    /// Removes files that no record names, in the background, a folder at a time: what an unclean end left behind.
    private func sweep() {
        work.start(in: .maintenance) { [weak self] in
            do {
                guard let store = self, try store.catalog.isSweepPending() else { return }
                let failed = store.directory.removalsFailed
                guard try store.removeOrphans() else { return }
                try store.directory.noteSwept(since: failed)
            } catch {
                // Still noted as pending: the next opening tries again.
                self?.report(.warning("files left by an unclean end could not be removed: \(error)"))
            }
        }
    }

    /// - Returns: Whether all of them were looked at.
    private func removeOrphans() throws -> Bool {
        var isDone = true
        var failure: CacheError?
        try directory.forEachMediaFile { identifier in
            guard !table.withLock({ $0.isClosed }) else {
                isDone = false
                return false
            }
            // In this order: what is recorded was live until it was.
            guard !table.withLock({ $0.isLive(identifier) }), try !catalog.contains(identifier) else { return true }
            let count = allocatedBytes(of: identifier)
            guard let error = directory.removeMedia(identifier) else { return true }
            failure = error
            guard !unremoved.withLock({ $0.contains(identifier) }) else { return true }
            // No record counts it.
            ledger.correct(by: count)
            unremoved.withLock { $0.add(identifier, count, isEvicted: false) }
            return true
        }
        if let failure { throw failure }
        return isDone
    }

    /// Bytes that a file holds on disk; 0 if it can't be asked.
    private func allocatedBytes(of identifier: GenerationIdentifier) -> Int64 {
        // A file that can't be opened says nothing of its size.
        guard let file = try? directory.bytes.open(identifier.hex, isWritable: false) else { return 0 }
        var (count, offset): (Int64, Int64) = (0, 0)
        // If it can't be asked for more, that is all that is known.
        while let data = try? file.nextData(from: offset), data.upperBound > offset {
            count += data.upperBound - data.lowerBound
            offset = data.upperBound
        }
        return count
    }

    /// Writes down what has landed, lets go of everything and closes the directory.
    ///
    /// Leases that live on can read what is open: their bytes are marked, so that no other cache frees them. Later calls
    /// throw `closed`.
    ///
    /// - Throws: ``CacheError`` when the catalog could not be written; it is closed all the same.
    package func close() async throws {
        let isFirst = table.withLock { table in
            defer { table.closeAll() }
            return !table.isClosed
        }
        guard isFirst else { return }
        flusher.stop()
        aging.withLock { $0?.cancel() }
        watching.withLock { $0?.cancel() }
        await work.waitUntilIdle()
        try await executor.run(in: .background) { try self.closeNow() }
    }

    private func closeNow() throws {
        var failure: (any Error)?
        sealLanding()
        do { try writeChanges() } catch { failure = error }
        for life in table.withLock({ $0.lives.values.sorted { $0.sequence < $1.sequence } }) {
            guard let disk = life.generation.disk else { continue }
            if life.leases > 0 { disk.markAsRead() } else { disk.file.close() }
            // What no record names nobody would find.
            if !life.isRecorded, directory.access.isWritable,
                let error = directory.removeMedia(life.generation.identifier)
            {
                report(.warning(error.message))
            }
        }
        pool.close()
        table.withLock { $0.removeAll() }
        do { try directory.close() } catch { failure = failure ?? error }
        if let failure { throw failure }
    }
}

extension Store.Configuration {
    func validate() throws {
        try capacity.validate()
        guard memoryLimit >= 1 << 20 else {
            throw CacheError(
                .invalidArgument,
                "a memory limit of \(memoryLimit.counted("byte")) is too small: at least \((1 << 20).grouped) are needed"
            )
        }
        guard openFileLimit >= 8 else {
            throw CacheError(
                .invalidArgument, "a limit of \(openFileLimit.counted("open file")) is too small: at least 8 are needed"
            )
        }
    }
}
