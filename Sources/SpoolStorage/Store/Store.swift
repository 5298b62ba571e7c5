package import Foundation
import Synchronization

/// The owner of a cache's media: the only type that opens, creates and removes media files.
///
/// It consists of the table of versions, the turns of keys and the leases. Other types do the rest as values that
/// operate on a store: ``VersionOpener``, ``CatalogWriter``, ``Evictor``, ``ResourceRemover``, ``StoredDownloads``,
/// ``Verifier`` and ``Exporter``.
///
/// A process has one ``Generation`` for each version. Readers, transfers, slices, checks, exports, eviction and a late
/// close share it and hold leases on it. The life of a key is serialized: a task that opens, removes, evicts or pins it
/// takes the key's turn (``KeyTurns``). A task that waits for a turn holds no thread, and turns of different keys are
/// independent.
///
/// **Space.** `usedBytes` is the sum of the claims of all versions on disk, and of reservations for bytes that are
/// being received. The stored bytes of an open version are its claim (``MediaFile`` returns removed bytes, in one
/// place). The claim of a version that is not open is the number in the catalog. Each claim ends once. The claim of a
/// block ends when the disk has freed its space, and the claim of a version when its file is removed (``FileRemover``).
/// A file that can't be removed keeps its claim. ``checkLedger()`` compares all of them.
///
/// **Locks**, outermost first. None is held over another key's I/O, and nothing is called back under any. Debug builds
/// check the rule of ``LockClass``.
/// 1. a key's turn, or the turn of eviction, then the turn of changes of the catalog (asynchronous: no thread is held);
/// 2. a media file's writer, held while that file stores and evicts (its descriptor is opened inside). Work for all
///    keys only tries to take it;
/// 3. the rounds of writing, then the catalog's one writer (a change of the catalog and of the table happen together);
/// 4. locks that are held for the time of a lookup, such as `table`, a media file's map, the order of eviction and the
///    file pool. A ``Ledger`` is innermost.
package final class Store: Sendable {
    /// The configuration of a store.
    package struct Configuration: Sendable {
        /// The maximum size of the cache.
        package var capacity: CacheCapacity
        /// The order in which media is evicted when space is needed.
        package var eviction: EvictionPolicy
        /// The time for which unused media stays in the cache; `nil` if only space limits it. A sudden change of the
        /// wall clock restarts all ages.
        package var maximumAge: Duration?
        /// The maximum sizes of some of the media.
        package var quotas: [EvictionQuota] = []
        /// The free space to leave on the volume, in bytes; `nil` for the standard, which depends on the size of the
        /// volume. The default, 0, disables it.
        package var minimumFreeSpace: Int64? = 0
        /// The bytes of memory for media that can't be stored, of all resources together; at least 1 MiB.
        package var memoryLimit: Int64
        /// The time for which a player waits for space on disk. The wait occurs if the disk is slow, or if another
        /// program has locked the catalog. It is short, because it delays playback.
        ///
        /// With a limit of 50 ms, blocks were not stored on a machine that was merely busy with other work.
        package var spaceTimeout = Duration.milliseconds(200)
        /// The number of media files that may be open concurrently; at least 8.
        package var openFileLimit: Int
        /// Whether the directory is only read, while another process may use it.
        package var isReadOnly = false
        /// The key of an encrypted cache; `nil` if it is unencrypted.
        package var key: EncryptionKey?
        /// The storage of media bytes; `nil` for files in the directory, or for memory if there is no directory.
        package var byteStore: (any ByteStore)?

        /// Creates a configuration.
        package init(
            capacity: CacheCapacity = .remembered, eviction: EvictionPolicy = .standard, quotas: [EvictionQuota] = [],
            minimumFreeSpace: Int64? = 0, maximumAge: Duration? = nil, memoryLimit: Int64 = 16 << 20,
            openFileLimit: Int = 256,
            isReadOnly: Bool = false, key: EncryptionKey? = nil, byteStore: (any ByteStore)? = nil
        ) {
            self.capacity = capacity
            self.eviction = eviction
            self.quotas = quotas
            self.minimumFreeSpace = minimumFreeSpace
            self.maximumAge = maximumAge
            self.memoryLimit = memoryLimit
            self.openFileLimit = openFileLimit
            self.isReadOnly = isReadOnly
            self.key = key
            self.byteStore = byteStore
        }
    }

    /// The executor of all blocking work.
    package let executor: BlockingExecutor
    let directory: CacheDirectory
    let pool: FilePool
    let ledger: Ledger
    /// The account of memory for media that can't be stored.
    let memoryLedger: Ledger
    let clock: CacheClock
    let table = ClassedMutex(GenerationTable(), .neverWaits)
    let turns = KeyTurns<CacheKey>(.file)
    let work: BackgroundWork
    let reporter: StoreReporter
    let remover: FileRemover
    /// The state of ``evictor``.
    let eviction: Evictor.State
    /// The state of ``writer``.
    let writing: CatalogWriter.State

    init(
        directory: CacheDirectory, configuration: Configuration, capacity: Int64?, used: Int64, rowBytes: Int64,
        pool: FilePool? = nil, executor: BlockingExecutor, clock: CacheClock,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.executor = executor
        self.directory = directory
        // Two more may be open for a moment: the file that was created for the next version, and the one after it.
        self.pool = pool ?? FilePool(limit: configuration.openFileLimit - 2)
        ledger = Ledger(limit: capacity, used: used, rowBytes: rowBytes)
        memoryLedger = Ledger(limit: configuration.memoryLimit, used: 0)
        self.clock = clock
        work = BackgroundWork(executor: executor)
        reporter = StoreReporter(report)
        remover = FileRemover(directory: directory, ledger: ledger, reporter: reporter)
        let rounds = CatalogRounds()
        writing = CatalogWriter.State(flusher: Flusher(executor: executor, clock: clock), rounds: rounds)
        eviction = Evictor.State(
            patience: configuration.spaceTimeout,
            queue: EvictionQueue(
                policy: configuration.eviction, quotas: configuration.quotas, catalog: directory.catalog,
                rounds: rounds, clock: clock),
            limit: SpaceLimit(
                capacity: capacity, minimumFreeSpace: configuration.minimumFreeSpace ?? 0, ledger: ledger,
                reporter: reporter),
            ages: AgeLimit(configuration.maximumAge, catalog: directory.catalog, clock: clock))
    }

    // A store that is released without a close is in the state of an unclean shutdown. Leases do not retain it.
    deinit {
        writing.stop()
        eviction.stop()
    }

    var catalog: Catalog { directory.catalog }
    var versions: VersionOpener { VersionOpener(self) }
    var writer: CatalogWriter { CatalogWriter(self) }
    var evictor: Evictor { Evictor(self) }
    var resourceRemover: ResourceRemover { ResourceRemover(self) }

    /// The sets of resources to store offline.
    package var downloads: StoredDownloads { StoredDownloads(self) }

    /// Sentences about problems that the opening found, and repaired or could not repair.
    package var notices: [String] { directory.notices }

    /// The reason why nothing new is stored; `nil` if the directory could be opened for writing.
    package var readOnlyReason: CacheError? {
        switch directory.access {
        case .readWrite: nil
        case .read(let cause), .none(let cause): cause
        }
    }

    /// The maximum number of stored bytes; `nil` if there is no limit.
    package var capacity: Int64? { eviction.limit.capacity }

    /// The bytes that are stored or reserved.
    package var usedBytes: Int64 { ledger.used }

    /// The bytes of memory for media that can't be stored.
    package var usedMemory: Int64 { memoryLedger.used }

    /// The number of leases that have not ended, including those of slices.
    package var leaseCount: Int { table.withLock { $0.leaseCount } }

    /// The number of open descriptors of media files.
    package var openFileCount: Int { pool.openCount }

    var isOpen: Bool { !table.withLock { $0.isClosed } }

    func checkOpen() throws { try table.withLock { try $0.checkOpen() } }

    func checkWritable() throws {
        try checkOpen()
        if let readOnlyReason {
            throw CacheError(
                .storage, "the cache in “\(directory.path)” is read-only: \(readOnlyReason.message)",
                underlying: readOnlyReason.underlying)
        }
    }

    package func report(_ event: StoreEvent) { reporter.report(event) }

    // MARK: - The catalog

    /// Writes all changes to the catalog.
    ///
    /// - Throws: ``CacheError`` if the catalog can't be written. The write is tried again in the background.
    package func flush() async throws {
        try checkOpen()
        try await writer.write()
    }

    /// Does the work that waits for a timer, and waits for all work in the background.
    package func waitUntilIdle() async {
        repeat {
            guard (try? await flush()) != nil else { break }  // A failure is reported as a warning if it matters.
            await work.waitUntilIdle()
        } while writer.isPending
        await work.waitUntilIdle()
    }

    /// Reads from the catalog after all changes were written to it.
    func readCatalog<Value: Sendable>(
        in lane: BlockingExecutor.Lane = .background, _ body: @escaping @Sendable (Catalog) throws -> Value
    ) async throws -> Value {
        try checkOpen()
        if directory.access.isWritable { try await writer.write() }
        return try await executor.run(in: lane) { try body(self.catalog) }
    }

    /// Records that the resource is used now.
    ///
    /// - Parameters:
    ///   - presentation: The presentation that it belongs to from now on, if that is stored; `nil` if that is
    ///     unchanged.
    ///   - tag: The app's tag from now on; `nil` if that is unchanged.
    package func recordUse(of key: CacheKey, in presentation: CacheKey? = nil, tag: String? = nil) {
        writer.recordUse(of: key, in: presentation, tag: tag)
    }

    /// Records that playback of the resource has stopped at `offset`, or at its end if that is `nil`.
    ///
    /// - Parameter isConsumed: Whether the media is to be played once and was played to its end. Such media is evicted
    ///   first.
    package func recordStop(_ offset: Int64?, isConsumed: Bool = false, of key: CacheKey) {
        writer.recordStop(offset, isConsumed: isConsumed, of: key)
    }

    // MARK: - Removal and eviction

    /// Removes the version that is stored under the key, pinned or not, and those that are being received.
    ///
    /// Users of an open version are informed, and their leases stay valid. The file is removed, and its claim returned,
    /// when the last lease has ended.
    ///
    /// - Returns: Whether anything was stored.
    /// - Throws: ``CacheError`` if the catalog can't be written. Then nothing has changed.
    package func remove(_ key: CacheKey) async throws -> Bool { try await resourceRemover.remove(key) }

    /// Removes all resources, including pinned ones.
    ///
    /// - Throws: ``CacheError`` if the catalog can't be written. Resources that were removed before the error stay
    ///   removed.
    package func removeAll() async throws { try await resourceRemover.removeAll() }

    /// Excludes a stored resource from eviction, or includes it again.
    ///
    /// - Returns: `false` if nothing is stored under the key.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws -> Bool {
        try await resourceRemover.setPinned(isPinned, key)
    }

    /// Evicts until at most `size` bytes are stored, as far as pins and readers allow.
    ///
    /// - Returns: The number of bytes that were evicted.
    /// - Throws: ``CacheError`` with code `invalidArgument` if `size` is negative.
    @discardableResult
    package func evict(to size: Int64) async throws -> Int64 { try await evictor.evict(to: size) }

    /// Changes the capacity, and evicts media that exceeds it.
    ///
    /// - Parameter isRemembered: Whether it is recorded for openings with ``CacheCapacity/remembered``.
    /// - Throws: ``CacheError`` with code `invalidArgument` for an invalid capacity, or `storage` if the catalog can't
    ///   be written or the size of the volume can't be read.
    package func setCapacity(_ capacity: CacheCapacity, isRemembered: Bool = false) async throws {
        try await evictor.setCapacity(capacity, isRemembered: isRemembered)
    }

    // MARK: - Checks and copies

    /// Checks stored blocks against their checksums. If it checks and repairs all of them, it also repairs the sums of
    /// the catalog.
    ///
    /// If another kind of file has the name of a media file, all of its blocks are bad, and repairing removes the
    /// resource. A file that can't be opened this time is reported and skipped.
    ///
    /// - Parameters:
    ///   - key: The key of one resource; `nil` for all.
    ///   - repairing: Whether bad blocks are discarded, to be fetched again. If not, they stay recorded until they are
    ///     read.
    ///   - progress: Called on any thread with the number of checked blocks and of all blocks.
    /// - Throws: ``CacheError`` if the catalog can't be read.
    package func verify(
        _ key: CacheKey? = nil, repairing: Bool, progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) async throws -> VerificationReport {
        try await Verifier(self, isRepairing: repairing).run(key, progress)
    }

    /// Copies a complete resource into a file. Every byte is checked against its checksum as it is copied.
    ///
    /// The file is written under another name in the same folder, and renamed when it is complete. An existing file is
    /// replaced, and its mode is preserved.
    ///
    /// - Throws: ``CacheError``: `notStored`, `incomplete` with the first missing range, or `storage` if the file can't
    ///   be written.
    package func export(_ key: CacheKey, to file: URL) async throws { try await Exporter(self).export(key, to: file) }

    /// Passes the bytes of a complete resource, or a range of them, to `write`, in order. Every byte is checked first.
    ///
    /// - Throws: ``CacheError``: `notStored`, or `incomplete` with the first missing range. The errors of `write`.
    package func export(_ key: CacheKey, range: Range<Int64>? = nil, writing write: BytesWriter) async throws {
        try await Exporter(self).export(key, range, writing: write)
    }

    /// Compares the claims of all versions, the sums of the catalog and the blocks on disk, and finds files without a
    /// record. For a cache at rest, in tests and simulations.
    ///
    /// Damage on disk that was not read yet counts as a difference, so repair first.
    ///
    /// - Throws: ``CacheError`` with a message that names the first difference.
    package func checkLedger() async throws {
        try checkOpen()
        if directory.access.isWritable { await waitUntilIdle() }
        try await executor.run(in: .maintenance) { try LedgerCheck(self).run() }
    }
}

/// A function that receives the next bytes of an export.
package typealias BytesWriter = (Data) async throws -> Void
