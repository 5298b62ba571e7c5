import ByteRanges
import Foundation
import Synchronization

extension Store {
    /// Opens the cache in the directory at `path`, or creates it. If `path` is `nil`, creates a cache in memory.
    ///
    /// The method does not examine any media. Files left behind by an unclean shutdown are removed in the background.
    /// If the disk is full or read-only, only stored media can be played, and nothing is stored; see
    /// ``readOnlyReason``.
    ///
    /// - Parameter previous: A read-only store to replace. Both stores share open files, and the disk must accept
    ///   writes.
    /// - Throws: ``CacheError``:
    ///   - `invalidArgument` for an invalid configuration
    ///   - `directoryInUse`, with a message that names the process
    ///   - `catalogTooNew`
    ///   - `keyRequired` or `wrongEncryptionKey`, in which case nothing is changed
    ///   - `storage` if the directory can't be used, for example because other users may write to it
    package static func open(
        path: String?, configuration: Configuration = Configuration(),
        fileSystem: any FileSystem = SystemFileSystem(), executor: BlockingExecutor = BlockingExecutor(),
        clock: CacheClock, replacing previous: Store? = nil, report: @escaping @Sendable (StoreEvent) -> Void
    ) async throws -> Store {
        try configuration.validate()
        let store = try await executor.run {
            guard !configuration.isReadOnly else {
                let cause = CacheError(.storage, "it was opened read-only")
                guard let path else {
                    throw CacheError(.invalidArgument, "a cache in memory can't be read-only, because it starts empty")
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
                        now: clock.now(), mustWrite: previous != nil)
                } else {
                    try CacheDirectory(inMemory: configuration.byteStore ?? MemoryByteStore(), fileSystem: fileSystem)
                }
            let capacity = try configuration.capacity.limit(in: directory)
            var configuration = configuration
            configuration.minimumFreeSpace = try configuration.freeSpaceToLeave(in: directory)
            try directory.catalog.limitLog(toPartOf: capacity)
            let setAside = directory.removeSetAside(limit: capacity.map(Ledger.allowance(of:)) ?? .max)
            let store = Store(
                directory: directory, configuration: configuration, capacity: capacity,
                used: try directory.catalog.settings.storedBytes(capacity: capacity),
                rowBytes: try directory.catalog.settings.rowBytes(capacity: capacity),
                pool: previous?.pool, executor: executor, clock: clock, report: report)
            // The catalog that was set aside occupies space until it is removed.
            store.ledger.setAsideByteCount = setAside
            if directory.access.isWritable { try store.eviction.ages.readStart() }
            return store
        }
        store.start()
        return store
    }

    private convenience init(
        reading directory: CacheDirectory, configuration: Configuration, executor: BlockingExecutor, clock: CacheClock,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws {
        self.init(
            directory: directory, configuration: configuration, capacity: nil,
            used: try directory.catalog.settings.storedBytes(), rowBytes: try directory.catalog.settings.rowBytes(),
            executor: executor, clock: clock, report: report)
    }

    /// Returns a store that does not store anything, as a replacement for one whose directory can't be used. Invalid
    /// values in the configuration are corrected. If another process uses the directory, its media can be read.
    ///
    /// - Throws: ``CacheError`` if memory can't be allocated.
    package static func fallback(
        at path: String, because cause: CacheError, configuration: Configuration, fileSystem: any FileSystem,
        executor: BlockingExecutor, clock: CacheClock, report: @escaping @Sendable (StoreEvent) -> Void
    ) throws -> Store {
        var configuration = configuration
        configuration.memoryLimit = max(configuration.memoryLimit, 1 << 20)
        configuration.openFileLimit = max(configuration.openFileLimit, 8)
        if cause.code == .directoryInUse,
            // If the directory can't be read either, the cache is treated as empty.
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

    private func start() {
        guard directory.access.isWritable else { return }
        writer.start()
        versions.prepareFile()
        warmUp()
        // Files without a record, left behind by an unclean shutdown, are removed.
        work.start(in: .maintenance) { [weak self] in self?.sweepNow() }
        evictor.start()
    }

    /// Runs one query and starts threads, because the first query takes ten times as long as later ones.
    private func warmUp() {
        // Playback needs one thread each for reading, storing and writing to the catalog.
        executor.prepareThreads(3)
        // A failure is reported by the first query that needs the catalog.
        work.start(in: .background) { [weak self] in _ = try? self?.catalog.resource(key: "") }
    }

    /// Removes files without a record, if there may be any. The method blocks.
    func sweepNow() {
        remover.sweep { identifier in table.withLock { $0.isClosed ? nil : $0.isLive(identifier) } }
    }

    /// Writes all changes to the catalog, releases all versions and closes the directory.
    ///
    /// Open versions can still be read through the remaining leases. Their files are marked, so that no other cache
    /// frees the bytes. Later calls throw `closed`.
    ///
    /// - Throws: ``CacheError`` if the catalog could not be written. The store is closed in any case.
    package func close() async throws {
        let isFirst = table.withLock { table in
            defer { table.closeAll() }
            return !table.isClosed
        }
        guard isFirst else { return }
        writing.stop()
        eviction.stop()
        catalog.beginClosing()
        await work.waitUntilIdle()
        try await executor.run(in: .background) { try self.closeNow() }
    }

    private func closeNow() throws {
        var failure: (any Error)?
        writer.sealUnfinished()
        do { try writer.writeChanges() } catch { failure = error }
        for life in table.withLock({ $0.lives.values.sorted { $0.sequence < $1.sequence } }) {
            guard let disk = life.generation.disk else { continue }
            if life.leases > 0 { disk.markAsInUse() } else { disk.file.close() }
            // A file without a record would otherwise never be found.
            if !life.isRecorded, directory.access.isWritable,
                let error = directory.removeMedia(life.generation.identifier)
            {
                reporter.warn(error.message)
            }
        }
        pool.close()
        table.withLock { $0.removeAll() }
        do { try directory.close() } catch { failure = failure ?? error }
        if let failure { throw failure }
    }

    /// Publishes in the lock file the address at which other processes can reach this one; `nil` removes the address.
    package func announce(_ text: String?) async throws {
        try await executor.run { [directory] in try directory.announce(text) }
    }

    /// Returns the address published by the process that has the directory open; `nil` if there is none. The method
    /// blocks.
    package static func announcement(path: String) -> String? {
        CacheDirectory.announcement(path: path, fileSystem: SystemFileSystem())
    }
}

extension Store.Configuration {
    func validate() throws {
        try capacity.validate()
        guard memoryLimit >= 1 << 20 else {
            throw CacheError(
                .invalidArgument,
                "a memory limit of \(memoryLimit.counted("byte")) is too small: the minimum is \((1 << 20).counted("byte"))"
            )
        }
        guard openFileLimit >= 8 else {
            throw CacheError(
                .invalidArgument, "a limit of \(openFileLimit.counted("open file")) is too small: the minimum is 8"
            )
        }
    }
}
