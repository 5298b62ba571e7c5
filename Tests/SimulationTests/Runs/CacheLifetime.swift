import Foundation
import GRDBSQLite
import Logging
import SpoolTesting
import Synchronization

@testable import Spool
@testable import SpoolStorage

/// A lifetime of the cache in a simulated run: from the time its directory is opened until the cache is closed or
/// killed.
final class CacheLifetime: Sendable {
    private struct State {
        var cache: MediaCache?
        var calls = 0
        var isDead = false
        var isClosing = false
        var isDiskFull = false
        var isDiskSound = false
        var isCatalogBusy = false
        var isDeleted = false
        var random: SplitMix
        /// A copy of the files at the time of the kill; `nil` if the process was not killed.
        var remains: (files: MemoryFileSystem, directory: String)?
        /// The resources that were removed during this lifetime.
        var removed: Set<String> = []
        var capacityBound: Int64?
        /// The value of ``StoreOpening/edition`` for which ``capacityBound`` was determined.
        var edition = 0
    }

    let number: Int
    let world: SimulationWorld
    let plan: SimulationPlan.Lifetime
    let directory: String
    let memory: MemoryFileSystem
    let files: FaultyFileSystem
    private let catalogFaults = Mutex<CatalogFaults?>(nil)
    private let state: Mutex<State>

    init(
        _ number: Int, _ plan: SimulationPlan.Lifetime, world: SimulationWorld, memory: MemoryFileSystem,
        directory: String
    ) {
        self.number = number
        self.plan = plan
        self.world = world
        self.memory = memory
        self.directory = directory
        files = FaultyFileSystem(memory)
        state = Mutex(State(random: SplitMix(world.plan.seed &* 31 &+ UInt64(number))))
        files.decide { [weak self] call, path in self?.judge(call, path) }
        catalogFaults.withLock { $0 = CatalogFaults(directory) { [weak self] in self?.judge($0) } }
    }

    deinit { catalogFaults.withLock { $0 }?.end() }

    /// Returns a file system for the first lifetime in a run.
    static func newFiles() -> MemoryFileSystem {
        MemoryFileSystem { path in
            !path.contains("/media") && !path.hasSuffix("/lock") && !path.hasSuffix("/CACHEDIR.TAG")
        }
    }

    // MARK: - State

    var isDead: Bool { state.withLock { $0.isDead } }
    /// Whether the cache is being closed or was closed.
    var isClosing: Bool {
        get { state.withLock { $0.isClosing } }
        set { state.withLock { $0.isClosing = newValue } }
    }
    /// Whether readers must stop.
    var isOver: Bool { state.withLock { $0.isDead } || world.isAborted }
    var remains: (files: MemoryFileSystem, directory: String)? { state.withLock { $0.remains } }

    func recordRemoved(_ media: SimulatedMedia) { state.withLock { _ = $0.removed.insert(media.path) } }
    func wasRemoved(_ media: SimulatedMedia) -> Bool { state.withLock { $0.removed.contains(media.path) } }
    func setDiskFull(_ isFull: Bool) { state.withLock { $0.isDiskFull = isFull } }
    func setCatalogBusy(_ isBusy: Bool) { state.withLock { $0.isCatalogBusy = isBusy } }

    /// Whether the directory was deleted.
    var isDeleted: Bool { state.withLock { $0.isDeleted } }

    /// Deletes the directory, even while a cache has it open.
    func deleteDirectory() {
        state.withLock { $0.isDeleted = true }
        memory.delete(directory)
        // The directory does not exist if the disk rejected its creation.
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Removes all faults of the disk.
    func healDisk() {
        state.withLock { state in
            state.isDiskSound = true
            state.isDiskFull = false
            state.isCatalogBusy = false
        }
    }

    // MARK: - The cache

    /// Opens the directory, and tries again if the disk has a fault.
    func open() async -> MediaCache? {
        var configuration = world.plan.configuration
        configuration.logger = Logger(label: "play") { [world, number] _ in
            SimulationLogHandler(world: world, who: "cache \(number)")
        }
        for attempt in 0..<4 as Range<Int> {
            if attempt == 3 { healDisk() }
            do {
                let cache = try await world.timed("opening", in: self) {
                    try await MediaCache.opened(
                        directory: URL(fileURLWithPath: directory), upstream: LifeUpstream(life: self),
                        configuration: configuration, fileSystem: files, clock: world.cacheClock,
                        executor: BlockingExecutor(running: world.executor), openFileLimit: Self.openFileLimit)
                }
                world.log.add("life \(number)", "opened, \(cache.storedByteCount) bytes are stored")
                state.withLock { $0.capacityBound = cache.capacity.map { max($0, cache.storedByteCount) } }
                return cache
            } catch {
                world.log.add("life \(number)", "did not open: \(world.withoutRoot("\(error)"))")
                if !world.plan.failsToStore || attempt == 3 {
                    world.report(.operation, "the directory could not be opened: \(error)", in: self)
                }
            }
            if isDead { return nil }
        }
        return nil
    }

    /// Allows the stored bytes to reach the larger of the previous and the new capacity until the change is complete.
    func allowCapacity(_ capacity: Int64?) {
        state.withLock { state in
            guard let bound = state.capacityBound, let capacity else { return state.capacityBound = nil }
            state.capacityBound = max(bound, capacity)
        }
    }

    /// Records that the capacity was changed. Pinned media and media being read may exceed the capacity until they are
    /// evicted, but must not grow.
    func recordCapacity(_ cache: MediaCache) {
        state.withLock { $0.capacityBound = cache.capacity.map { max($0, cache.storedByteCount) } }
    }

    /// Checks that the memory in use is counted, and that it exceeds its limit by at most a block for each request in
    /// flight. Also checks the number of open files.
    func checkMemoryAndFiles(_ cache: MediaCache) {
        guard !isDead, let store = cache.context.opening.openedStore else { return }
        let ledger = store.memoryLedger
        let (used, bound) = (ledger.used, world.plan.configuration.memoryLimit + 16 * 65_536)
        if used > bound { world.report(.memory, "\(used) bytes of memory are used", in: self) }
        // Memory may still be counted for a short time after its release.
        let held = store.table.withLock { $0.lives.values.reduce(0) { $0 + $1.generation.memory.byteCount } }
        if used - ledger.reserved < held {
            world.report(.memory, "\(used) bytes of memory are counted, \(held) are held", in: self)
        }
        // The directory's lock file is also open.
        let files = memory.openCount
        if files > Self.openFileLimit + 1 { world.report(.openFiles, "\(files) files are open", in: self) }
    }

    /// The limit on open files. It is the minimum that a store accepts, because a run uses few media files.
    private static let openFileLimit = 8

    /// Checks that the stored bytes neither exceed the capacity nor grow beyond it.
    ///
    /// If the disk failed when the directory was opened, the stored bytes are known only after it is opened again
    /// later. They may then exceed the capacity, which may have been larger in an earlier lifetime.
    ///
    /// Files that can't be removed are not included. Such files from an earlier lifetime are found and counted only
    /// after the directory was opened, and evictions do not free their space. Bytes that a damaged catalog did not
    /// count are not included either.
    func checkCapacity(_ cache: MediaCache) {
        let edition = cache.context.opening.edition
        let bound = state.withLock { state in
            if state.edition != edition {
                state.edition = edition
                state.capacityBound = cache.capacity.map { max($0, cache.storedByteCount) }
            }
            return state.capacityBound
        }
        guard let bound, !isDead else { return }
        let unremoved = cache.context.opening.openedStore?.remover.unremovedByteCount ?? 0
        let stored = cache.storedByteCount - unremoved - world.uncountedBytes
        if stored > bound { world.report(.capacity, "\(stored) bytes are stored, more than \(bound)", in: self) }
    }

    /// Flips, removes or truncates bytes of a media file that no process has open. Until a process ends, it trusts the
    /// bytes that it has verified.
    static func damage(_ files: MemoryFileSystem, _ random: inout SplitMix, _ log: SimulationLog) {
        // Files with extreme lengths are excluded, because their pages can't be enumerated.
        let media = files.paths.filter { $0.hasSuffix(".media") && (files.with($0, \.count) ?? 0) < 1 << 40 }
        guard let path = media.randomElement(using: &random) else { return }
        let size = files.with(path, \.count) ?? 0
        guard size > 0 else { return }
        let place = Int64(random.below(Int(size)))
        let kind = random.below(3)
        log.add("disk", "damage \(kind) of a file at \(place)")
        switch kind {
        case 0: _ = files.with(path) { $0.flip(at: place) }
        case 1: _ = files.with(path) { $0.lose(page: place / 65_536) }
        default: _ = files.with(path) { $0.truncate(to: place) }
        }
    }

    // MARK: - The disk

    /// Determines the effect of a file system call. The effect may be that the process is killed.
    private func judge(_ call: FaultyFileSystem.Call, _ path: String) -> FaultyFileSystem.Effect? {
        let isKill = state.withLock { state in
            state.calls += 1
            return state.calls == plan.killAt && plan.isKilled
        }
        if isKill { kill() }
        if call == .punchHole, !world.plan.punchesHoles, path.hasSuffix(".media") { return .error(.EOPNOTSUPP) }
        let (rate, removalRate) = (world.plan.diskFaults, world.plan.removalFaults)
        guard rate + removalRate > 0 else { return nil }
        let effect = state.withLock { state -> FaultyFileSystem.Effect? in
            guard !state.isDead, !state.isDiskSound else { return nil }
            if call == .remove, removalRate > 0, path.hasSuffix(".media"), state.random.chance(removalRate) {
                return .error(.EIO)
            }
            guard rate > 0 else { return nil }
            if state.isDiskFull, call == .write || call == .createDirectory { return .error(.ENOSPC) }
            guard state.random.chance(rate) else { return nil }
            switch call {
            case .open, .lock: return .error(state.random.pick([.EMFILE, .EIO]))
            case .write:
                return state.random.pick([
                    .error(.ENOSPC), .error(.EIO), .shortWrite(state.random.below(20_000), .ENOSPC),
                ])
            case .read: return state.random.pick([.error(.EIO), .endOfFile])
            default: return .error(state.random.pick([.EIO, .EROFS]))
            }
        }
        if let effect { world.log.add("disk \(number)", "\(call) fails: \(effect)") }
        return effect
    }

    /// Determines the effect of a disk call from the catalog.
    private func judge(_ call: CatalogFaults.Call) -> Int32? {
        let rate = world.plan.catalogFaults
        guard rate > 0 else { return nil }
        let code = state.withLock { state -> Int32? in
            guard !state.isDead, !state.isDiskSound else { return nil }
            if state.isCatalogBusy, call == .lock { return SQLITE_BUSY }
            if state.isDiskFull, call == .write { return SQLITE_FULL }
            guard call != .lock, state.random.chance(rate) else { return nil }
            switch call {
            case .open: return SQLITE_CANTOPEN
            case .read: return SQLITE_IOERR | 1 << 8
            case .write: return state.random.pick([SQLITE_FULL, SQLITE_IOERR | 3 << 8])
            case .sync, .lock: return SQLITE_IOERR | 4 << 8
            }
        }
        if let code { world.log.add("disk \(number)", "the catalog's \(call) fails: \(code)") }
        return code
    }

    /// Kills the process. Its files are copied, so later changes have no effect on the next lifetime.
    func kill() {
        guard !isDead else { return }
        let target = "\(world.root)/\(number + 1)"
        let copy = memory.copy(renaming: directory, to: target)
        try? copyCatalog(to: target)  // A catalog may not exist yet.
        state.withLock { state in
            state.isDead = true
            state.remains = (copy, target)
        }
        world.allowRepeating(world.origin.sent(within: .milliseconds(500)) + 65_536, "killed")
        world.log.add("life \(number)", "killed")
        if plan.ending == .powerLost { losePower(copy, target) }
    }

    private func copyCatalog(to target: String) throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: target, withIntermediateDirectories: true)
        // The journal exists if the disk has rejected a write-ahead log.
        let names = ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-journal"]
        for name in names where manager.fileExists(atPath: "\(directory)/\(name)") {
            try manager.copyItem(atPath: "\(directory)/\(name)", toPath: "\(target)/\(name)")
        }
    }

    /// Removes bytes that had not been synchronized to the disk: any page of a file, and the end of the catalog's
    /// journal. Synchronized bytes remain, because the database may have been written from them.
    private func losePower(_ copy: MemoryFileSystem, _ target: String) {
        var random = state.withLock { $0.random.fork() }
        for path in copy.paths where path.hasSuffix(".media") {
            for page in copy.with(path, \.pageNumbers) ?? [] where random.chance(4) {
                _ = copy.with(path) { $0.lose(page: page) }
            }
        }
        guard let journal = FileHandle(forUpdatingAtPath: "\(target)/catalog.sqlite-wal") else { return }
        let size = (try? journal.seekToEnd()) ?? 0
        let loose = catalogFaults.withLock { $0 }?.unsynchronizedJournal ?? 0..<0
        let end = size - UInt64(random.below(Int(size / 3) + 1))
        if !loose.isEmpty { try? journal.truncate(atOffset: max(min(end, size), UInt64(loose.lowerBound))) }
        try? journal.close()
    }
}

/// The connection to the origin during one lifetime. A killed process does not send requests.
private struct LifeUpstream: Upstream {
    let life: CacheLifetime

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        if life.isDead { throw UpstreamError(.other, "the process has been killed") }
        return try await life.world.origin.open(request, for: life)
    }
}

/// A log handler that writes a cache's messages to the log of the run.
private struct SimulationLogHandler: LogHandler {
    let world: SimulationWorld
    let who: String
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        world.log.add(who, world.withoutRoot("\(event.message)"))
        guard "\(event.message)".hasPrefix("the origin's bytes changed"), let address = event.metadata?["resource"]
        else { return }
        world.origin.recordChange(seenOf: URL(string: "\(address)")?.path ?? "")
    }
}
