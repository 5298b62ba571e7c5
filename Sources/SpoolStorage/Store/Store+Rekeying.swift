import ByteRanges
import Foundation
import Synchronization

/// Giving a cache another key: its catalog is rewritten at once, while nobody has it open; what is stored is sealed anew
/// in the background of whoever opens it next, a media file at a time, each into a file of its own that takes the place of
/// the former one when it is whole. So it may be broken off at any moment, and nothing is fetched again.
extension Store {
    /// Gives the cache in a directory another key, makes a plain one encrypted, or with nil an encrypted one plain.
    ///
    /// - Throws: ``CacheError``: `notStored` if there is no cache; `keyRequired`, `keyRefused` for the former key;
    ///   `directoryInUse`; `invalidArgument` for a key that is none, or where a plain cache is to stay plain; `storage`.
    ///   Then it has the former key.
    package static func beginRekeying(
        path: String, from former: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil,
        fileSystem: any FileSystem = SystemFileSystem(), clock: CacheClock
    ) async throws {
        let executor = BlockingExecutor(threadLimit: 2)
        let isUnfinished = try await executor.run {
            try CacheDirectory.catalog(inspecting: path, key: former, fileSystem: fileSystem).secrets().former != nil
        }
        if isUnfinished {
            let store = try await open(
                path: path, configuration: Configuration(key: former, byteStore: byteStore), fileSystem: fileSystem,
                clock: clock
            ) { _ in }
            do {
                try await store.finishRekeying()
                try await store.close()
            } catch {
                try? await store.close()  // Why it went wrong is said already.
                throw error
            }
        }
        try await executor.run {
            let directory = try CacheDirectory(opening: path, key: former, fileSystem: fileSystem, now: clock.now())
            do {
                if case .read(let cause) = directory.access { throw cause }
                try directory.catalog.beginRekeying(to: key)
                try directory.catalog.scrubIfPending()
            } catch {
                try? directory.close()  // Why it went wrong is said already.
                throw error
            }
            try directory.close()
        }
    }

    /// How many media files, and bytes of them, are still sealed as before the cache was given its key.
    package func rekeyingLeft() async throws -> (resources: Int, bytes: Int64) {
        try checkOpen()
        let left = try await executor.run(in: .background) { try self.catalog.outdatedCount() }
        return (left.generations, left.bytes)
    }

    /// Seals anew all that is stored and that nobody has open.
    ///
    /// - Parameter progress: Called with how many media files, and bytes of them, are left; from any thread.
    /// - Throws: ``CacheError``: `storage` where the disk refuses, as when it has no room for the largest of them once
    ///   more; `closed`.
    package func finishRekeying(
        progress: @escaping @Sendable (_ resources: Int, _ bytes: Int64) -> Void = { _, _ in }
    ) async throws {
        try checkWritable()
        // One at a time; who comes second finds nothing left.
        try await rekeyings.run(0) { try await resealAll(progress) }
    }

    /// Goes on with it, as far as there is anything to do.
    func goOnRekeying() {
        guard directory.access.isWritable, !rekeying.exchange(.running, ordering: .relaxed).isRunning else { return }
        work.start(in: .maintenance) { [weak self] in
            do {
                try await self?.finishRekeying()
            } catch let error as CacheError where error.code == .closed {
                // The next opening goes on.
            } catch {
                self?.report(.warning("what is stored could not be sealed anew, and is tried again: \(error)"))
            }
        }
    }

    /// What has become of a generation that was to be sealed anew.
    private enum Resealing {
        case done
        /// Somebody has it open: later.
        case inUse
        /// Some of it was found bad, or has come meanwhile: at once again.
        case changed
    }

    private func resealAll(_ progress: @Sendable (Int, Int64) -> Void) async throws {
        var isFinished = false
        defer { rekeying.store(isFinished ? .none : .waiting, ordering: .relaxed) }
        let isRekeying = try await executor.run(in: .maintenance) {
            try self.catalog.scrubIfPending()
            return try self.catalog.isRekeying()
        }
        guard isRekeying else {
            isFinished = true
            return
        }
        var left = try await executor.run(in: .maintenance) { try self.catalog.outdatedCount() }
        var page: [Catalog.Outdated] = []
        var last: Int64 = 0
        var isNewsInPass = false
        var failed: [Int64: any Error] = [:]
        while true {
            progress(left.generations, left.bytes)
            try checkOpen()
            if page.isEmpty {
                let after = last
                page = try await executor.run(in: .maintenance) { try self.catalog.outdated(after: after, limit: 64) }
                // From the beginning, as long as that helps: what was in use may be free by now.
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
                // Something else stands in its place, and nobody can read it any more.
                outcome = try await removeUnreadable(CacheKey(hash: next.key))
            } catch {
                // The others are sealed anew all the same.
                failed[next.id] = error
            }
            if outcome == .done {
                isNewsInPass = true
                left.generations -= 1
                left.bytes -= next.bytes
            }
        }
        if let failure = failed.min(by: { $0.key < $1.key })?.value {
            let count = try await executor.run(in: .maintenance) { try self.catalog.outdatedCount().generations }
            throw CacheError(
                .storage,
                "\(count.counted("media file")) could not be sealed anew and stay as they were: \(failure)",
                underlying: failure)
        }
        isFinished = try await executor.run(in: .maintenance) {
            guard try self.catalog.outdatedCount().generations == 0 else { return false }
            try self.catalog.endRekeying()
            return true
        }
    }

    private func reseal(_ outdated: Catalog.Outdated) async throws -> Resealing {
        let key = CacheKey(hash: outdated.key)
        guard table.withLock({ $0.isUnused(key) }) else { return .inUse }
        guard let lease = try await lease(key) else {
            // Not even its record can be read.
            return try await removeUnreadable(key)
        }
        defer { lease.end() }
        let generation = lease.generation
        guard generation.row.value == outdated.id, let disk = generation.disk else { return .inUse }
        let identifier = GenerationIdentifier(random: clock.random)
        // Live before it is made, or a sweep would take it for an orphan.
        table.withLock { $0.reserve(identifier) }
        var isTaken = false
        defer {
            table.withLock { $0.endReservation(identifier) }
            if !isTaken { directory.removeMedia(identifier) }
        }
        let landed = disk.landed
        guard let blocks = try await copy(generation, landed, as: identifier) else {
            return table.withLock { $0.life(generation.identifier)?.leases == 1 } ? .changed : .inUse
        }
        isTaken = try await turns.run(key) {
            try await executor.run(in: .background) {
                try self.replace(generation, outdated.id, identifier, landed, blocks)
            }
        }
        return isTaken ? .done : .changed
    }

    /// Removes what nobody can read any more.
    private func removeUnreadable(_ key: CacheKey) async throws -> Resealing {
        guard turns.tryTake(key) else { return .inUse }
        defer { turns.end(key) }
        let removed = try await executor.run(in: .background) { try self.removeUnused([key], evenPinned: true) }
        return removed.isEmpty ? .inUse : .done
    }

    /// Seals what has landed of a generation anew, into another file.
    ///
    /// - Returns: Its blocks; nil if somebody has opened it meanwhile, or some of it is not there any more.
    private func copy(
        _ generation: Generation, _ landed: ByteRangeSet, as identifier: GenerationIdentifier
    ) async throws -> [BlockRecord]? {
        let sealer = directory.sealer(identifier, key: generation.key)
        let file = try await executor.run(in: .maintenance) { try self.directory.makeFile(identifier) }
        var blocks: [BlockRecord] = []
        // A few at a time: whoever needs the thread for a player gets it in between.
        let group: Int64 = 16
        for run in landed {
            let indices = Block.indices(touching: run)
            var index = indices.lowerBound
            while index < indices.upperBound {
                guard table.withLock({ $0.life(generation.identifier)?.leases == 1 }) else { return nil }
                let part = index..<min(index + group, indices.upperBound)
                do {
                    blocks += try await executor.run(in: .maintenance) {
                        try self.checkOpen()
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

    /// The file that was made takes the former one's place, if nobody has opened that and nothing has changed since. The
    /// caller has the key's turn. Blocks.
    private func replace(
        _ generation: Generation, _ row: Int64, _ identifier: GenerationIdentifier, _ landed: ByteRangeSet,
        _ blocks: [BlockRecord]
    ) throws -> Bool {
        let key = generation.key
        try writeChanges()
        guard table.withLock({ $0.beginReplacing(generation.identifier) }) else { return false }
        var isDone = false
        var outcome = GenerationTable.Outcome()
        defer { finish(outcome) }
        do {
            guard !generation.hasChanges, let disk = generation.disk, disk.landed == landed else {
                outcome = table.withLock { $0.endRemoval(key, isDone: false, andCandidates: false) }
                return false
            }
            let known = generation.description
            isDone = try catalog.transaction { transaction in
                try transaction.replace(
                    row, of: key.hash, with: identifier, length: known.length, version: known.version,
                    fields: known.fields, blocks: blocks, landed: landed)
            } committed: { isDone in
                table.withLock { table in
                    outcome = table.endRemoval(key, isDone: isDone, andCandidates: true)
                    if isDone, let gone = table.noteForgotten(generation.identifier) { outcome.add(gone) }
                }
                // The former one's claim goes with its file.
                if isDone {
                    ledger.correct(by: landed.byteCount)
                    ledger.correctRows(by: generation.rowClaim)
                }
            }
        } catch {
            outcome = table.withLock { $0.endRemoval(key, isDone: false, andCandidates: false) }
            throw error
        }
        return isDone
    }
}

/// Whether what is stored is being sealed anew.
enum RekeyingState: UInt8, AtomicRepresentable {
    case none, running
    /// Somebody had it open: when he lets go of it, it is gone on with.
    case waiting

    var isRunning: Bool { self == .running }
}
