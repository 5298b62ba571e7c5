import ByteRanges
import Foundation
import Synchronization

/// Encrypts stored media again after the cache was given another key. A value over a store.
///
/// The catalog is rewritten at once, while the cache is closed. Media is encrypted again in the background of the next
/// opening, one media file at a time. Each is encrypted into another file, which replaces it when it is complete. It may
/// be interrupted at any moment, and nothing is fetched again.
struct Rekeyer: Sendable {
    /// The state of a store's encrypting again.
    final class State: Sendable {
        /// One at a time encrypts stored media again.
        fileprivate let turns = KeyTurns<Int>()
        fileprivate let state = Atomic(RekeyingState.none)
    }

    private let store: Store
    private let state: State

    init(_ store: Store) {
        self.store = store
        state = store.rekeying
    }

    /// Gives the cache in a directory another key.
    static func start(
        path: String, from previous: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil,
        fileSystem: any FileSystem = SystemFileSystem(), clock: CacheClock
    ) async throws {
        let executor = BlockingExecutor(threadLimit: 2)
        let isUnfinished = try await executor.run {
            try CacheDirectory.catalog(inspecting: path, key: previous, fileSystem: fileSystem).secrets().former != nil
        }
        if isUnfinished {
            let store = try await Store.open(
                path: path, configuration: Store.Configuration(key: previous, byteStore: byteStore),
                fileSystem: fileSystem,
                clock: clock
            ) { _ in }
            do {
                try await store.rekeyer.finish()
                try await store.close()
            } catch {
                try? await store.close()  // The error that is thrown has the cause.
                throw error
            }
        }
        try await executor.run {
            let directory = try CacheDirectory(opening: path, key: previous, fileSystem: fileSystem, now: clock.now())
            do {
                if case .read(let cause) = directory.access { throw cause }
                try directory.catalog.rekeying.start(to: key)
                try directory.catalog.rekeying.scrubIfPending()
            } catch {
                try? directory.close()  // The error that is thrown has the cause.
                throw error
            }
            try directory.close()
        }
    }

    /// The number of media files, and of their bytes, that are still encrypted as before.
    func left() async throws -> (resources: Int, bytes: Int64) {
        try store.checkOpen()
        let left = try await store.executor.run(in: .background) { try store.catalog.rekeying.outdatedCount() }
        return (left.generations, left.bytes)
    }

    /// Encrypts all stored media again that is not open.
    func finish(
        progress: @escaping @Sendable (_ resources: Int, _ bytes: Int64) -> Void = { _, _ in }
    ) async throws {
        try store.checkWritable()
        // One at a time. The second one finds nothing left.
        try await state.turns.run(0) { try await resealAll(progress) }
    }

    /// Continues in the background if anything is left.
    func resume() {
        guard store.directory.access.isWritable, !state.state.exchange(.running, ordering: .relaxed).isRunning else {
            return
        }
        store.work.start(in: .maintenance) { [weak store] in
            do {
                try await store?.rekeyer.finish()
            } catch let error as CacheError where error.code == .closed {
                // The next opening continues.
            } catch {
                store?.reporter.warn("stored media could not be encrypted again, and is tried again: \(error)")
            }
        }
    }

    /// Continues if an open version was skipped, because a version has been closed.
    func resumeIfWaiting() {
        if state.state.load(ordering: .relaxed) == .waiting { resume() }
    }

    /// The result of encrypting a version again.
    private enum Resealing {
        case done
        /// It is open, and is tried later.
        case inUse
        /// A part of it was found bad, or was stored meanwhile. It is tried again at once.
        case changed
    }

    private func resealAll(_ progress: @Sendable (Int, Int64) -> Void) async throws {
        var isFinished = false
        defer { state.state.store(isFinished ? .none : .waiting, ordering: .relaxed) }
        let isRekeying = try await store.executor.run(in: .maintenance) {
            try store.catalog.rekeying.scrubIfPending()
            return try store.catalog.rekeying.isUnfinished()
        }
        guard isRekeying else {
            isFinished = true
            return
        }
        var left = try await store.executor.run(in: .maintenance) { try store.catalog.rekeying.outdatedCount() }
        var page: [CatalogRekeying.Outdated] = []
        var last: Int64 = 0
        var isNewsInPass = false
        var failed: [Int64: any Error] = [:]
        while true {
            progress(left.generations, left.bytes)
            try store.checkOpen()
            if page.isEmpty {
                let after = last
                page = try await store.executor.run(in: .maintenance) {
                    try store.catalog.rekeying.outdated(after: after, limit: 64)
                }
                // From the first one again, as long as that helps: a version that was open may be closed by now.
                if page.isEmpty, !isNewsInPass { break }
                guard !page.isEmpty else {
                    (last, isNewsInPass) = (0, false)
                    continue
                }
            }
            let next = page.removeFirst()
            last = next.id
            var outcome = Resealing.changed
            do {
                for _ in 0..<3 where outcome == .changed { outcome = try await reseal(next) }
                failed[next.id] = nil
            } catch let error as CacheError where error.code == .closed {
                throw error
            } catch let error as CacheError where error.saysNoFile {
                // Another kind of file has its name, and it can no longer be read.
                outcome = try await removeUnreadable(CacheKey(hash: next.key))
            } catch {
                // The others are encrypted again all the same.
                failed[next.id] = error
            }
            if outcome == .done {
                isNewsInPass = true
                left.generations -= 1
                left.bytes -= next.bytes
            }
        }
        if let failure = failed.min(by: { $0.key < $1.key })?.value {
            let count = try await store.executor.run(in: .maintenance) {
                try store.catalog.rekeying.outdatedCount().generations
            }
            throw CacheError(
                .storage,
                "\(count.counted("media file")) could not be encrypted again and stay as they were: \(failure)",
                underlying: failure)
        }
        isFinished = try await store.executor.run(in: .maintenance) {
            guard try store.catalog.rekeying.outdatedCount().generations == 0 else { return false }
            try store.catalog.rekeying.finish()
            return true
        }
    }

    private func reseal(_ outdated: CatalogRekeying.Outdated) async throws -> Resealing {
        let key = CacheKey(hash: outdated.key)
        guard store.table.withLock({ $0.isUnused(key) }) else { return .inUse }
        guard let lease = try await store.lease(key) else {
            // Its record can't be read either.
            return try await removeUnreadable(key)
        }
        defer { lease.end() }
        let generation = lease.generation
        guard generation.row.value == outdated.id, let disk = generation.disk else { return .inUse }
        let identifier = GenerationIdentifier(random: store.clock.random)
        // Live before it is created, because a sweep would otherwise remove it as an orphan.
        store.table.withLock { $0.reserve(identifier) }
        var isTaken = false
        defer {
            store.table.withLock { $0.endReservation(identifier) }
            if !isTaken { store.directory.removeMedia(identifier) }
        }
        let landed = disk.landed
        guard let blocks = try await copy(generation, landed, as: identifier) else {
            return store.table.withLock { $0.life(generation.identifier)?.leases == 1 } ? .changed : .inUse
        }
        isTaken = try await store.turns.run(key) {
            try await store.executor.run(in: .background) {
                try replace(generation, outdated.id, identifier, landed, blocks)
            }
        }
        return isTaken ? .done : .changed
    }

    /// Removes a version that can no longer be read.
    private func removeUnreadable(_ key: CacheKey) async throws -> Resealing {
        guard store.turns.tryTake(key) else { return .inUse }
        defer { store.turns.end(key) }
        let removed = try await store.executor.run(in: .background) {
            try store.resourceRemover.removeUnused([key], evenPinned: true)
        }
        return removed.isEmpty ? .inUse : .done
    }

    /// Encrypts the stored bytes of a version again, into another file.
    ///
    /// - Returns: Its blocks; `nil` if it was opened meanwhile, or a part of it is no longer stored.
    private func copy(
        _ generation: Generation, _ landed: ByteRangeSet, as identifier: GenerationIdentifier
    ) async throws -> [BlockRecord]? {
        let sealer = store.directory.sealer(identifier, key: generation.key)
        let file = try await store.executor.run(in: .maintenance) { try store.directory.makeFile(identifier) }
        var blocks: [BlockRecord] = []
        // A few at a time, so that a player's reads get the thread in between.
        let group: Int64 = 16
        for run in landed {
            let indices = Block.indices(touching: run)
            var index = indices.lowerBound
            while index < indices.upperBound {
                guard store.table.withLock({ $0.life(generation.identifier)?.leases == 1 }) else { return nil }
                let part = index..<min(index + group, indices.upperBound)
                do {
                    blocks += try await store.executor.run(in: .maintenance) {
                        try store.checkOpen()
                        return try part.map { index in
                            let bytes = try generation.read(Block.range(of: index).clamped(to: run))
                            return try bytes.withUnsafeBytes { bytes in
                                try sealer.encrypt(bytes, index: index) {
                                    try file.write($0, at: Block.start(of: index))
                                }
                            }
                        }
                    }
                } catch is MissingBytes {
                    return nil
                }
                index = part.upperBound
            }
        }
        return blocks
    }

    /// Replaces the file of a version by the other one, unless it was opened or has changed since. The caller has the
    /// key's turn. This blocks.
    private func replace(
        _ generation: Generation, _ row: Int64, _ identifier: GenerationIdentifier, _ landed: ByteRangeSet,
        _ blocks: [BlockRecord]
    ) throws -> Bool {
        let key = generation.key
        try store.writer.writeChanges()
        guard store.table.withLock({ $0.beginReplacing(generation.identifier) }) else { return false }
        var isDone = false
        var outcome = GenerationTable.Outcome()
        defer { store.remover.finish(outcome) }
        do {
            guard !generation.hasChanges, let disk = generation.disk, disk.landed == landed else {
                outcome = store.table.withLock { $0.endRemoval(key, isDone: false, andCandidates: false) }
                return false
            }
            let known = generation.description
            isDone = try store.catalog.transaction { transaction in
                try transaction.replace(
                    row, of: key.hash, with: identifier, length: known.length, version: known.version,
                    fields: known.fields, blocks: blocks, landed: landed)
            } committed: { isDone in
                store.table.withLock { table in
                    outcome = table.endRemoval(key, isDone: isDone, andCandidates: true)
                    if isDone, let gone = table.noteForgotten(generation.identifier) { outcome.add(gone) }
                }
                // The claim of the replaced version ends with its file.
                if isDone {
                    store.ledger.correct(by: landed.byteCount)
                    store.ledger.correctRows(by: generation.rowClaim)
                }
            }
        } catch {
            outcome = store.table.withLock { $0.endRemoval(key, isDone: false, andCandidates: false) }
            throw error
        }
        return isDone
    }
}

/// Whether stored media is being encrypted again.
private enum RekeyingState: UInt8, AtomicRepresentable {
    case none, running
    /// A version was open. It is continued when a lease ends.
    case waiting

    var isRunning: Bool { self == .running }
}
