import Foundation
import Synchronization

/// The owner of what a cache keeps: the only one that opens, makes and removes media files.
///
/// In a process there is one ``Generation`` for each version, whoever uses it: readers, transfers, slices, checks,
/// exports, eviction, a closing that is late. They hold leases on it. What becomes of a key is one serialised life:
/// whoever opens, removes, evicts or pins takes the key's turn (``KeyTurns``), which holds no thread while it waits and
/// has nothing to do with other keys' turns.
///
/// **The ledger.** `usedBytes` is the sum of the claims of all generations on disk, and of what is reserved for bytes
/// about to land. The landed bytes of an open generation are its claim (``MediaFile`` gives back what goes, in one
/// place); that of a stored one that is not open is the catalog's number. A claim ends once: with a block, when the disk
/// has freed its space; with a generation, when its file is removed (``dispose(of:)``). A file that can't be removed keeps
/// its claim (``UnremovedFiles``). ``checkLedger()`` compares it all.
///
/// **Locks**, outermost first; none is held over another key's I/O, and nothing is called back under any:
/// 1. a key's turn, or the eviction's (asynchronous: no thread is held);
/// 2. the catalog's one writer (what is written and what the table says of it change together);
/// 3. `table`, for as long as a lookup takes;
/// 4. a media file's writer, held over that file's landing and evicting; inside it its descriptor is opened;
/// 5. a media file's map; a generation's state;
/// 6. a ledger, the file pool, the flusher's list: innermost.
package final class Store: Sendable {
    /// How a store works.
    package struct Configuration: Sendable {
        /// The most to keep.
        package var capacity: CacheCapacity
        /// What goes first when room is needed.
        package var eviction: EvictionPolicy
        /// How long unused media stays in the cache; `nil` if only space limits it. A jump of the wall clock restarts
        /// all ages.
        package var maximumAge: Duration?
        /// The most that is kept of some of it.
        package var quotas: [EvictionQuota] = []
        /// Bytes that are to stay free on the volume; 0: none.
        package var minimumFreeSpace: Int64 = 0
        /// Bytes of memory for what is not kept, of all resources together; at least 1 MiB.
        package var memoryLimit: Int64
        /// Media files open at once; at least 8.
        package var openFileLimit: Int
        /// Whether the directory is only read, beside a process that may have it.
        package var isReadOnly = false
        /// The key of an encrypted cache; nil: it is plain.
        package var key: EncryptionKey?
        /// Where the bytes of media are; nil: in files of the directory, or in memory where there is none.
        package var byteStore: (any ByteStore)?

        /// Creates a configuration.
        package init(
            capacity: CacheCapacity = .remembered, eviction: EvictionPolicy = .standard, quotas: [EvictionQuota] = [],
            minimumFreeSpace: Int64 = 0, maximumAge: Duration? = nil, memoryLimit: Int64 = 16 << 20,
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

    /// Where everything that blocks runs.
    package let executor: BlockingExecutor
    let directory: CacheDirectory
    let pool: FilePool
    let ledger: Ledger
    /// Memory for what is not kept.
    let memoryLedger: Ledger
    let policy: EvictionPolicy
    /// What may be evicted, in the policy's order; nil until room is first needed.
    let order = Mutex<EvictionOrder?>(nil)
    let maximumAge: Duration?
    let quotas: [EvictionQuota]
    let minimumFreeSpace: Int64
    /// The capacity in bytes, and what the volume's free space allows; nil: no limit.
    let configuredLimit: Mutex<Int64?>
    let spaceLimit = Mutex<Int64?>(nil)
    let isWarnedOfSpace = Atomic(false)
    /// Files that could not be removed.
    let unremoved = Mutex(UnremovedFiles())
    /// Whether the file system has no holes: media is evicted as whole files.
    let hasNoHoles = Atomic(false)
    /// Causes of which one warning was given.
    let warnedCauses = Mutex<Set<String>>([])
    /// Looks at the volume's free space.
    let watching = Mutex<Task<Void, Never>?>(nil)
    /// Looks for what is too old.
    let aging = Mutex<Task<Void, Never>?>(nil)
    /// The time from which ages count; `nil` without a maximum age.
    let ageStart = Mutex<AgeStart?>(nil)
    let clock: CacheClock
    /// Rounds of writing to the catalog, one at a time. Taken before the catalog's writer and the table, never inside.
    let rounds = Mutex(())
    let table = Mutex(GenerationTable())
    let turns = KeyTurns<CacheKey>()
    /// One at a time makes room.
    let evictions = KeyTurns<Int>()
    /// One at a time seals anew what is stored.
    let rekeyings = KeyTurns<Int>()
    let rekeying = Atomic(RekeyingState.none)
    /// Bytes that have been evicted since the store was opened.
    let evictedByteCount = Atomic<Int64>(0)
    let flusher: Flusher
    let work: BackgroundWork
    let uses = Mutex(UseTimes())
    private let onEvent: @Sendable (StoreEvent) -> Void

    init(
        directory: CacheDirectory, configuration: Configuration, capacity: Int64?, used: Int64, rowBytes: Int64,
        executor: BlockingExecutor, clock: CacheClock, report: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.executor = executor
        self.directory = directory
        // Two more may be open for a moment: the file that has been made ahead, and the next one that is being made.
        self.pool = FilePool(limit: configuration.openFileLimit - 2)
        self.ledger = Ledger(limit: capacity, used: used, rowBytes: rowBytes)
        self.memoryLedger = Ledger(limit: configuration.memoryLimit, used: 0)
        self.policy = configuration.eviction
        self.maximumAge = configuration.maximumAge
        self.quotas = configuration.quotas
        self.minimumFreeSpace = configuration.minimumFreeSpace
        self.configuredLimit = Mutex(capacity)
        self.clock = clock
        self.flusher = Flusher(executor: executor, clock: clock)
        self.work = BackgroundWork(executor: executor)
        self.onEvent = report
    }

    // Whoever lets go of a store without closing it leaves what an unclean end leaves. Leases do not keep it.
    deinit {
        flusher.stop()
        aging.withLock { $0?.cancel() }
        watching.withLock { $0?.cancel() }
    }

    var catalog: Catalog { directory.catalog }

    /// What opening found wrong and mended, or could not, as sentences.
    package var notices: [String] { directory.notices }

    /// Why nothing new is kept, if the directory could only be opened to read, or not at all.
    package var readOnlyReason: CacheError? {
        switch directory.access {
        case .readWrite: nil
        case .read(let cause), .beside(let cause), .none(let cause): cause
        }
    }

    /// The most bytes to keep; nil: no limit.
    package var capacity: Int64? { configuredLimit.withLock { $0 } }

    /// Bytes that are kept, and those that have room set aside.
    package var usedBytes: Int64 { ledger.used }

    /// Bytes of memory that hold what is not kept.
    package var usedMemory: Int64 { memoryLedger.used }

    /// Leases that have not ended, those of slices included.
    package var leaseCount: Int { table.withLock { $0.leaseCount } }

    /// Descriptors of media files that are open.
    package var openFileCount: Int { pool.openCount }

    func checkOpen() throws {
        guard !table.withLock({ $0.isClosed }) else { throw CacheError(.closed, "the cache has been closed") }
    }

    func checkWritable() throws {
        try checkOpen()
        if let readOnlyReason {
            throw CacheError(
                .storage, "the cache in “\(directory.path)” is only read: \(readOnlyReason.message)",
                underlying: readOnlyReason.underlying)
        }
    }

    package func report(_ event: StoreEvent) { onEvent(event) }

    /// Reports a warning, unless there has been one of this kind with the same system error.
    func warnOnce(_ kind: String, _ cause: CacheError, _ text: @autoclosure () -> String) {
        let name = "\(kind) \(cause.posixCode.map { "\($0.rawValue)" } ?? cause.code.description)"
        guard warnedCauses.withLock({ $0.insert(name).inserted }) else { return }
        report(.warning(text()))
    }

    /// Writes down all that has landed, and what is known of it.
    ///
    /// - Throws: ``CacheError`` when the catalog can't be written; it is tried again in the background.
    package func flush() async throws {
        try checkOpen()
        try await executor.run(in: .background) { try self.writeChanges() }
    }

    /// Does what waits for a timer, and waits for what is under way in the background.
    package func waitUntilIdle() async {
        repeat {
            // Said by a warning where it matters; here it only ends the round.
            guard (try? await flush()) != nil else { break }
            await work.waitUntilIdle()
        } while flusher.isPending
        await work.waitUntilIdle()
    }
}
