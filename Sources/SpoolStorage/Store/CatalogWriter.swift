import ByteRanges
import Foundation
import Synchronization

/// The writer that records changes to versions, and uses of resources, in the catalog. It writes one round at a time.
///
/// ``Flusher`` decides when changes are written. The writer is a value type, and its state belongs to the store.
struct CatalogWriter: Sendable {
    /// The state of a store's writer.
    final class State: Sendable {
        fileprivate let flusher: Flusher
        fileprivate let rounds: CatalogRounds
        fileprivate let uses = ClassedMutex(UseTimes(), .neverWaits)
        /// The turns of tasks that change the catalog, one at a time. Waiting for a turn does not block a thread.
        fileprivate let turns = KeyTurns<Int>(.catalog)

        init(flusher: Flusher, rounds: CatalogRounds) {
            self.flusher = flusher
            self.rounds = rounds
        }

        /// Stops the timer, so that it does not start more rounds.
        func stop() { flusher.stop() }
    }

    private let store: Store
    private let state: State

    init(_ store: Store) {
        self.store = store
        state = store.writing
    }

    private var catalog: Catalog { store.catalog }

    /// Enables the timer, which starts a round when changes are due.
    func start() {
        state.flusher.start { [weak store] in
            guard let writer = store?.writer else { return }
            // A failure has been reported, and the changes wait for the next round.
            try? await writer.write(isDue: true)
        }
        clampFutureUses(to: nextUse())
    }

    /// Whether any changes are waiting to be written.
    var isPending: Bool { state.flusher.isPending }

    /// The number of tasks that are waiting for their turn to change the catalog.
    var waiterCount: Int { state.turns.waiterCount(0) }

    /// Waits for the task's turn, and then runs `body`, which changes the catalog, on a blocking thread. The task does
    /// not occupy a thread while it waits, so that waiting tasks do not use up all threads.
    func inTurn<Result: Sendable>(_ body: @Sendable () throws -> Result) async throws -> Result {
        try await state.turns.run(0) { try await store.executor.run(in: .background) { try body() } }
    }

    /// Runs `body` while no round is being written.
    func pausing<Result: Sendable, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.rounds.pausing(body)
    }

    /// Adds a version with changes that are not in the catalog yet.
    ///
    /// - Parameter isComplete: Whether a block of the version is now complete, or a transfer has ended.
    func note(_ generation: Generation, isComplete: Bool) {
        guard generation.disk != nil, store.directory.access.isWritable else { return }
        state.flusher.note(generation, isComplete: isComplete)
    }

    // MARK: - Rounds

    /// A version's changes that a round has taken.
    private struct Taken {
        var generation: Generation
        var blocks: BlockChanges?
        var description: GenerationDescription?
        var isBegun = false
    }

    private struct Round {
        var taken: [Taken] = []
        var begun: [Generation] = []
        /// The versions that are not written in this round.
        var passedOver: [Generation] = []
        /// The tags of resources that are not recorded yet.
        var earlyTags: [CacheKey: String] = [:]
        var replaced: [RemovedResource] = []
        /// Whether a row was added, or did not fit.
        var hasNewRows = false
        var outcome = GenerationTable.Outcome()
    }

    /// The result of a round. The caller finishes it after releasing the lock of the rounds, because finishing it
    /// accesses files.
    private struct RoundResult: Sendable {
        var outcome = GenerationTable.Outcome()
        var ended = GenerationTable.Ended()
        /// The versions that were closed.
        var closed: [Generation] = []
        var failure: (any Error)?
    }

    /// Writes all pending changes, after any round that is already running. The method does not occupy a thread while
    /// it waits for its turn.
    ///
    /// If a file is being written to, its newest bytes wait for the next round. Files are removed and written to after
    /// the turn has ended.
    ///
    /// - Parameter isDue: Whether the round was started by the timer. Such a round does not access media files before
    ///   the changes of all keys are recorded.
    /// - Throws: ``CacheError`` if the catalog can't be written. In that case, the changes wait for the next round.
    func write(isDue: Bool = false) async throws {
        try await store.work.countingTask { () async throws -> Void in
            if !isDue { await store.executor.run(in: .background) { endAbandonedWriting() } }
            let result = await state.turns.run(0) { await store.executor.run(in: .background) { writeOneRound() } }
            try await store.executor.run(in: .background) { () throws -> Void in
                try finish(result)
                if isDue { endAbandonedWriting() }
            }
        }
    }

    /// Writes all pending changes, after any round that is already running. The method blocks; see ``write(isDue:)``.
    func writeChanges() throws {
        try store.work.counting {
            endAbandonedWriting()
            try finish(writeOneRound())
        }
    }

    /// Encrypts bytes that failed transfers left in memory, for versions without users. The method writes to files, so
    /// it is called without the lock of the rounds.
    private func endAbandonedWriting() {
        let left = store.table.withLock { table in
            table.lives.values.filter { $0.leases == 0 && $0.generation.disk?.hasUnfinishedBlocks == true }
                .sorted { $0.sequence < $1.sequence }
        }
        for life in left {
            // A file that is being written to waits for the next round, so that it does not delay other files.
            let isEnded = life.generation.disk?.endAllWritingIfFree()
            if isEnded != false { note(life.generation, isComplete: isEnded == true) }
        }
    }

    private func writeOneRound() -> RoundResult {
        store.eviction.ages.recordCalendar()
        // The lock is held while the catalog is written. Other rounds would have to wait for the catalog in any case.
        // If a round finds no changes, all changes have therefore been written.
        return state.rounds.pausing { writeRound() }
    }

    private func finish(_ result: RoundResult) throws {
        store.remover.finish(result.outcome)
        store.remover.finish(result.ended)
        for generation in result.closed { generation.disk?.file.close() }
        if let failure = result.failure { throw failure }
    }

    private func writeRound() -> RoundResult {
        let pending = state.flusher.take()
        guard !pending.isEmpty else { return RoundResult() }
        // The versions are written in order of creation, so that a simulation can be repeated exactly.
        let lives = store.table.withLock { table in
            pending.generations.keys.compactMap { table.life($0) }.sorted { $0.sequence < $1.sequence }
        }
        var round = Round()
        var result = RoundResult()
        // A slow file must not delay the changes to other files.
        let busy = lives.map(\.generation).filter { $0.disk?.sealTails() == false }
        do {
            // Uses are recorded in the order of their dates, because an encrypted catalog records only the order.
            // Stored resources were used before new ones.
            let used = pending.used.sorted { $0.value < $1.value }
            let new = Set(lives.lazy.filter { !$0.isRecorded }.map(\.generation.key))
            _ = try catalog.transaction { transaction in
                for (key, date) in used where !new.contains(key) { try transaction.recordUse(of: key.hash, at: date) }
                for life in lives { try write(life, transaction, &round) }
                for (key, presentation) in pending.presentations {
                    try transaction.setPresentation(presentation.hash, of: key.hash)
                }
                // These uses also count for the presentations that the resources now belong to.
                for (key, date) in used where new.contains(key) || pending.presentations[key] != nil {
                    try transaction.recordUse(of: key.hash, at: date)
                }
                for (key, tag) in pending.tags where try !transaction.recordTag(tag, of: key.hash) {
                    round.earlyTags[key] = tag
                }
                for (key, stop) in pending.stops {
                    try transaction.recordStop(stop.offset, isConsumed: stop.isConsumed, of: key.hash)
                    try transaction.recordUse(of: key.hash, at: stop.date, isEnd: true)
                }
            } committed: { _ in
                result.ended = recordWritten(round)
                // At this point, no other round has taken changes that are not written yet.
                result.closed = store.closeUnused()
            } failed: {
                for taken in round.taken { restore(taken) }
                round.outcome.add(recordNotWritten(round))
            }
        } catch {
            if state.flusher.recordFailure(pending) {
                store.reporter.warn("the catalog could not be written, so the write will be retried: \(error)")
            }
            result.outcome = round.outcome
            result.failure = error
            return result
        }
        result.outcome = round.outcome
        // The tags of versions that were created, but are not recorded yet.
        let tags = store.table.withLock { table in round.earlyTags.filter { table.newest($0.key) != nil } }
        state.flusher.recordSuccess(leaving: round.passedOver + busy, tags: tags)
        recordEvictable(round.taken.map(\.generation), pending)
        let hasNewBytes = round.taken.contains { $0.blocks?.sealed.isEmpty == false }
        if hasNewBytes || round.hasNewRows { store.evictor.freeSpaceAhead(hasNewBytes: hasNewBytes) }
        return result
    }

    private func write(
        _ earlier: GenerationTable.Life, _ transaction: CatalogTransaction, _ round: inout Round
    ) throws {
        let generation = earlier.generation
        let identifier = generation.identifier
        guard let life = store.table.withLock({ $0.life(identifier) }) else { return }
        if store.table.withLock({ $0.removing.contains(generation.key) }) {
            round.passedOver.append(generation)
            return
        }
        switch life.phase {
        case .retired: return
        case .current: break
        case .candidate:
            // A stored version stays until a block of this one is complete. If no version is stored, even an incomplete
            // block is recorded.
            round.hasNewRows = true
            let isFirst =
                try generation.hasContent && transaction.generation(of: generation.key.hash) == nil
                && generation.claimRow()
            let change = store.table.withLock { table -> (isCurrent: Bool, outcome: GenerationTable.Outcome) in
                if isFirst, table.currentGeneration(of: generation.key) == nil,
                    let outcome = table.promote(identifier)
                {
                    return (true, outcome)
                }
                return (table.life(identifier)?.phase == .current, table.releaseUnused(identifier))
            }
            round.outcome.add(change.outcome)
            guard change.isCurrent else { return }
            generation.isProven.store(true, ordering: .releasing)
        }
        let isNew = generation.row.value == nil
        // From this point, a new version does not end before the catalog has been changed.
        if isNew, !store.table.withLock({ $0.beginRecording(identifier) }) { return }
        var taken = Taken(generation: generation)
        // The version is added to the round even if a statement below fails. Otherwise, it would keep the number of a
        // row that does not exist.
        defer { round.taken.append(taken) }
        if isNew {
            round.begun.append(generation)
            // The version's bytes count as stored, and readers may already have received them, so the row is claimed
            // even if it does not fit.
            _ = generation.claimRow(isRequired: true)
            let description = generation.takeDescription() ?? generation.description
            let begun = try transaction.begin(
                identifier, key: generation.key.hash, url: generation.url, version: description.version,
                length: description.length, contentType: description.contentType, fields: description.fields,
                rowBytes: generation.rowBytes(description), at: nextUse())
            taken.description = description
            taken.isBegun = true
            generation.row.value = begun.id
            if let replaced = begun.replaced { round.replaced.append(replaced) }
            try transaction.setVariantOf(generation.variantOf.map(\.hash), begun.id)
            if let presentation = generation.presentation {
                try transaction.setPresentation(presentation.hash, of: generation.key.hash)
            }
        } else {
            taken.description = generation.takeDescription()
        }
        taken.blocks = generation.disk?.takeChanges()
        // The space that is wasted at the ends of stored ranges is recorded with the description.
        let hasNewPadding = taken.blocks.map {
            generation.setPadding($0.after.padding(to: store.directory.blockSize))
        }
        if hasNewPadding == true { taken.description = taken.description ?? generation.description }
        guard let row = generation.row.value else { return }
        if let description = taken.description, !taken.isBegun || hasNewPadding == true {
            try transaction.describe(
                row, length: description.length, version: description.version, fields: description.fields,
                contentType: description.contentType, rowBytes: generation.rowBytes(description))
        }
        if let blocks = taken.blocks {
            // While the version is being received, each change would otherwise write thousands of ranges again.
            let isLast = earlier.leases == 0 || !store.isOpen
            let withRanges = isLast || blocks.after.count <= CatalogTransaction.rangeLimit
            try transaction.apply(blocks, to: row, withRanges: withRanges)
            if !withRanges { generation.disk?.recordRangesUnrecorded() }
        }
    }

    private func restore(_ taken: Taken) {
        if taken.isBegun { taken.generation.row.value = nil }
        if taken.description != nil { taken.generation.restoreDescription() }
        if let blocks = taken.blocks { taken.generation.disk?.restore(blocks) }
    }

    private func recordWritten(_ round: Round) -> GenerationTable.Ended {
        store.table.withLock { table in
            table.markRecorded(round.taken.map(\.generation.key))
            return table.recordRemovedFromCatalog(round.replaced)
        }
    }

    private func recordNotWritten(_ round: Round) -> GenerationTable.Outcome {
        store.table.withLock { table in
            var outcome = GenerationTable.Outcome()
            for generation in round.begun {
                if let gone = table.recordRemovedFromCatalog(generation.identifier, of: generation.key) {
                    outcome.add(gone)
                }
            }
            return outcome
        }
    }

    /// Reports the written changes to the eviction queue.
    private func recordEvictable(_ generations: [Generation], _ pending: Flusher.Pending) {
        guard store.eviction.queue.isRead else { return }
        let stopped = store.table.withLock { table in pending.stops.keys.compactMap { table.currentGeneration(of: $0) }
        }
        store.eviction.queue.recordRound(generations + stopped, pending)
        if store.table.withLock({ table in generations.contains { table.isUnused($0.key) } }) {
            store.eviction.searches.recordChange()
        }
        store.evictor.enforceQuotas()
    }

    /// Encrypts blocks that transfers left incomplete in memory, because the process is about to end. If a file is
    /// still being written to, its blocks are lost, because closing must not wait for it.
    func sealUnfinished() {
        for life in store.table.withLock({ Array($0.lives.values) }) {
            guard let disk = life.generation.disk, disk.isEncrypted, disk.hasChanges else { continue }
            disk.endAllWritingIfFree()
            note(life.generation, isComplete: false)
        }
    }

    // MARK: - Uses

    /// Records that the resource is used now.
    func recordUse(of key: CacheKey, in presentation: CacheKey?, tag: String?) {
        guard store.directory.access.isWritable, store.isOpen else { return }
        let date = nextUse()
        store.eviction.queue.use(key, partOf: presentation, at: date)
        state.flusher.recordUse(of: key, in: presentation, tag: tag, at: date)
    }

    /// Records the position at which playback of the resource stopped.
    func recordStop(_ offset: Int64?, isConsumed: Bool, of key: CacheKey) {
        guard store.directory.access.isWritable, store.isOpen else { return }
        let offset = offset.map { min($0, Block.offsetLimit) }
        state.flusher.recordStop(PlaybackStop(offset: offset, isConsumed: isConsumed, date: nextUse()), of: key)
    }

    private func nextUse() -> Date {
        let use = state.uses.withLock { $0.next(at: store.clock.now()) }
        if use.isAfterJump { clampFutureUses(to: use.date) }
        return use.date
    }

    /// Replaces dates of use that are more than a minute later than `date` with dates just before it. They were
    /// recorded while the clock was wrong. The method works in the background.
    private func clampFutureUses(to date: Date) {
        guard store.directory.access.isWritable else { return }
        // In an encrypted cache, only the maximum age depends on dates.
        if !store.catalog.cipher.isPlain, store.eviction.ages.age == nil { return }
        store.work.start(in: .background) { [weak store] in
            do {
                // Pending uses with dates from the wrong clock are written first.
                try await store?.writer.write()
                // Later uses have dates from the corrected clock, which are not in the future.
                while let store, store.isOpen,
                    try await store.writer.inTurn({
                        try store.catalog.uses.clampFutureUses(to: max(date, store.clock.now()))
                    }) > 0
                {}
            } catch {
                store?.reporter.warn("dates of use could not be corrected: \(error)")
            }
        }
    }
}

/// The lock of the rounds of writing. It is always taken before the lock of the catalog's writer and the lock of the
/// table.
final class CatalogRounds: Sendable {
    private let turn = ClassedMutex((), .mayWaitForCatalog)

    /// Runs `body` while no round is being written.
    func pausing<Result: Sendable, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try turn.withLock { (_) throws(Failure) -> Result in try body() }
    }
}

/// The dates of uses, based on the wall clock. All dates are distinct, and they stay in order even if the clock is set
/// back slightly.
///
/// When a clock that was years ahead is corrected, the new time is used, and dates that were recorded in the meantime
/// are moved back.
struct UseTimes: Sendable {
    private var last = Date.distantPast

    struct Use {
        var date: Date
        /// Whether the clock was set back, in which case recorded dates in the future are wrong.
        var isAfterJump: Bool
    }

    mutating func next(at now: Date) -> Use {
        let isAfterJump = now.addingTimeInterval(60) < last
        // The catalog stores times with a precision of one microsecond. Two uses are two microseconds apart, because
        // the presentation of a used resource is recorded one microsecond later.
        last = isAfterJump ? now : max(now, last.addingTimeInterval(0.000_002))
        return Use(date: last, isAfterJump: isAfterJump)
    }
}
