package import Foundation
import Synchronization

/// The owner of a cache's media: the only type that opens, creates and removes media files.
///
/// The store consists of the table of versions, the turns of keys and the leases. All other work is done by value types
/// that operate on a store: ``VersionOpener``, ``CatalogWriter``, ``Evictor``, ``ResourceRemover``,
/// ``StoredDownloads``, ``Verifier`` and ``Exporter``.
///
/// A process has one ``Generation`` for each version. Readers, transfers, slices, checks, exports, eviction and a late
/// close share it and hold leases on it. Operations on a key are serialized: a task that opens, removes, evicts or pins
/// it takes the key's turn (``KeyTurns``). A task that is waiting for a turn does not occupy a thread, and turns of
/// different keys are independent.
///
/// **Space.** `usedBytes` is the sum of the claims of all versions on disk, plus reservations for bytes that are being
/// received. The claim of an open version is its stored bytes (only ``MediaFile`` returns removed bytes). The claim of
/// a version that is not open is the number in the catalog. Each claim ends once. The claim of a block ends when the
/// disk has freed its space, and the claim of a version when its file is removed (``FileRemover``). A file that can't
/// be removed keeps its claim. ``checkLedger()`` compares all claims.
///
/// **Locks**, outermost first. No lock is held during another key's I/O, or while a callback runs (``LockClass``).
/// 1. a key's turn, or the turn of eviction, then the turn of changes to the catalog (asynchronous, so no thread is
///    occupied);
/// 2. a media file's writer, held while that file stores, evicts or is opened. Work for all keys only tries to take it;
/// 3. the rounds of writing, then the catalog's only writer (the catalog and the table are changed together);
/// 4. locks that are held only for a lookup, such as `table`, a media file's map, the order of eviction and the file
///    pool. The lock of a ``Ledger`` is innermost.
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
        /// The quotas, each of which limits the size of one part of the media.
        package var quotas: [EvictionQuota] = []
        /// The free space to leave on the volume, in bytes; `nil` for the standard, which depends on the size of the
        /// volume. The default, 0, disables this minimum.
        package var minimumFreeSpace: Int64? = 0
        /// The maximum memory for media that can't be stored, in bytes, for all resources. The minimum is 1 MiB.
        package var memoryLimit: Int64
        /// The maximum time that a player waits for space on disk. Players wait if the disk is slow, or if another
        /// program has locked the catalog. The time is short, because it delays playback.
        ///
        /// With a limit of 50 ms, some blocks were not stored on a machine that was merely busy with other work.
        package var spaceTimeout = Duration.milliseconds(200)
        /// The maximum number of media files that may be open concurrently, which must be at least 8.
        package var openFileLimit: Int
        /// Whether the directory is opened read-only, while another process may use it.
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

    /// The executor for all blocking work.
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
        // Two more files may be open briefly: the file that was created for the next version, and the one after it.
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
            timeout: configuration.spaceTimeout,
            queue: EvictionQueue(
                policy: configuration.eviction, quotas: configuration.quotas, catalog: directory.catalog,
                rounds: rounds, clock: clock),
            limit: SpaceLimit(
                capacity: capacity, minimumFreeSpace: configuration.minimumFreeSpace ?? 0, ledger: ledger,
                reporter: reporter),
            ages: AgeLimit(configuration.maximumAge, catalog: directory.catalog, clock: clock))
    }

    // If a store is released without being closed, its directory is in the state of an unclean shutdown. Leases do not
    // retain the store.
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

    /// Sentences about the problems that were found when the store was opened, whether they were repaired or not.
    package var notices: [String] { directory.notices }

    /// The reason why nothing new is stored; `nil` if the directory could be opened for writing.
    package var readOnlyReason: CacheError? {
        switch directory.access {
        case .readWrite: nil
        case .read(let cause), .none(let cause): cause
        }
    }

    /// The maximum number of stored bytes; `nil` if it is unlimited.
    package var capacity: Int64? { eviction.limit.capacity }

    /// The number of bytes that are stored or reserved.
    package var usedBytes: Int64 { ledger.used }

    /// The memory in use for media that can't be stored, in bytes.
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
    /// - Throws: ``CacheError`` if the catalog can't be written. The write is retried in the background.
    package func flush() async throws {
        try checkOpen()
        try await writer.write()
    }

    /// Performs all work that is scheduled by a timer, and waits for all background work.
    package func waitUntilIdle() async {
        repeat {
            guard (try? await flush()) != nil else { break }  // A failure is reported as a warning if it matters.
            await work.waitUntilIdle()
        } while writer.isPending
        await work.waitUntilIdle()
    }

    /// Reads from the catalog after all changes have been written to it.
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
    ///   - presentation: The presentation that the resource now belongs to, if the presentation is stored; `nil` if it
    ///     is unchanged.
    ///   - tag: The app's new tag; `nil` if it is unchanged.
    package func recordUse(of key: CacheKey, in presentation: CacheKey? = nil, tag: String? = nil) {
        writer.recordUse(of: key, in: presentation, tag: tag)
    }

    /// Records that playback of the resource stopped at `offset`, or at its end if `offset` is `nil`.
    ///
    /// - Parameter isConsumed: Whether the media is to be played only once, and was played to its end, so that it is
    ///   evicted first.
    package func recordStop(_ offset: Int64?, isConsumed: Bool = false, of key: CacheKey) {
        writer.recordStop(offset, isConsumed: isConsumed, of: key)
    }

    // MARK: - Removal and eviction

    /// Removes the version that is stored for the key, pinned or not, and versions that are being received.
    ///
    /// Users of an open version are notified, and their leases stay valid. When the last lease has ended, the file is
    /// removed and its claim returned.
    ///
    /// - Returns: Whether anything was stored.
    /// - Throws: ``CacheError`` if the catalog can't be written, in which case nothing has changed.
    package func remove(_ key: CacheKey) async throws -> Bool { try await resourceRemover.remove(key) }

    /// Removes all resources, including pinned ones.
    ///
    /// - Throws: ``CacheError`` if the catalog can't be written. Resources removed before the error stay removed.
    package func removeAll() async throws { try await resourceRemover.removeAll() }

    /// Excludes a stored resource from eviction, or includes it again.
    ///
    /// - Returns: `false` if nothing is stored under the key.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) async throws -> Bool {
        try await resourceRemover.setPinned(isPinned, key)
    }

    /// Evicts until at most `size` bytes are stored, as far as pins and readers allow.
    ///
    /// - Returns: The number of evicted bytes.
    /// - Throws: ``CacheError`` with code `invalidArgument` if `size` is negative.
    @discardableResult
    package func evict(to size: Int64) async throws -> Int64 { try await evictor.evict(to: size) }

    /// Changes the capacity, and evicts media that exceeds it.
    ///
    /// - Parameter isRemembered: Whether to record the capacity for stores that are opened with
    ///   ``CacheCapacity/remembered``.
    /// - Throws: ``CacheError`` with code `invalidArgument` for an invalid capacity, or `storage` if the catalog can't
    ///   be written or the size of the volume can't be read.
    package func setCapacity(_ capacity: CacheCapacity, isRemembered: Bool = false) async throws {
        try await evictor.setCapacity(capacity, isRemembered: isRemembered)
    }

    // MARK: - Checks and copies

    /// Checks stored blocks against their checksums. A repair of all resources also removes unreachable rows, and
    /// corrects the byte totals in the catalog.
    ///
    /// If something other than a regular file has the name of a media file, all blocks of the file are bad. Repairing
    /// then removes the resource. A file that can't be opened at the moment is reported and skipped.
    ///
    /// - Parameters:
    ///   - key: The key of one resource; `nil` for all.
    ///   - repairing: Whether to discard bad blocks, so that they are fetched again. If not, they stay recorded until
    ///     they are read.
    ///   - progress: A function that receives the checked and the total number of blocks, on any thread.
    /// - Throws: ``CacheError`` if the catalog can't be read or repaired, or if the store is closed;
    ///   `CancellationError`.
    package func verify(
        _ key: CacheKey? = nil, repairing: Bool, progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) async throws -> VerificationReport {
        try await Verifier(self, isRepairing: repairing).run(key, progress)
    }

    /// Copies a complete resource into a file. Every byte is checked against its checksum as it is copied.
    ///
    /// The file is written under a different name in the same folder, and renamed when it is complete. An existing file
    /// is replaced, and its mode is preserved.
    ///
    /// - Throws: ``CacheError``: `notStored`, `incomplete` with the first missing range, or `storage` if the file can't
    ///   be written.
    package func export(_ key: CacheKey, to file: URL) async throws { try await Exporter(self).export(key, to: file) }

    /// Passes the bytes of a complete resource, or a range of them, to `write`, in order. Every byte is checked first.
    ///
    /// - Throws: ``CacheError``: `notStored`, `incomplete` with the first missing range, or `storage`. Also throws the
    ///   errors from `write`.
    package func export(_ key: CacheKey, range: Range<Int64>? = nil, writing write: BytesWriter) async throws {
        try await Exporter(self).export(key, range, writing: write)
    }

    /// Compares the claims of all versions, the sums in the catalog and the blocks on disk, and finds files without a
    /// record. This method is intended for an idle cache, in tests and simulations.
    ///
    /// Damage on disk that has not been detected yet counts as a difference, so repair the cache first.
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
