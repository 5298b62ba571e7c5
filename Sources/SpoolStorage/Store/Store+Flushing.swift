import Foundation
import Synchronization

extension Store {
    func noteChange(of generation: Generation) { note(generation, isComplete: false) }

    func noteCompletion(of generation: Generation) { note(generation, isComplete: true) }

    private func note(_ generation: Generation, isComplete: Bool) {
        guard generation.disk != nil, directory.access.isWritable else { return }
        flusher.note(generation, isComplete: isComplete)
    }

    func noteLandingEnded(of generation: Generation) {
        noteCompletion(of: generation)
        // Here rather than where one was taken: then a player waits for its first bytes.
        prepareFile()
    }

    /// What a round has taken out of one generation.
    private struct Taken {
        var generation: Generation
        var blocks: BlockChanges?
        var description: GenerationDescription?
        var isBegun = false
    }

    private struct Round {
        var taken: [Taken] = []
        var begun: [Generation] = []
        /// Not to be written now.
        var passedOver: [Generation] = []
        /// What is not there yet to be called so.
        var earlyTags: [CacheKey: String] = [:]
        var replaced: [RemovedResource] = []
        /// Whether a row has begun, or has found no space.
        var hasNewRows = false
        var outcome = GenerationTable.Outcome()
    }

    /// Writes all that is pending, after a round that is under way; blocks.
    ///
    /// - Throws: ``CacheError`` if the catalog refuses: then all of it waits for the next round.
    func writeChanges() throws {
        try work.counting {
            noteCalendar()
            // Held over the catalog's writing, which rounds would wait for in any case: who finds nothing pending here
            // knows that all is written.
            let (outcome, ended, failure) = rounds.withLock { _ in writeRound() }
            finish(outcome)
            finish(ended)
            if let failure { throw failure }
        }
    }

    private func writeRound() -> (outcome: GenerationTable.Outcome, ended: Ended, failure: (any Error)?) {
        let pending = flusher.take()
        guard !pending.isEmpty else { return (GenerationTable.Outcome(), Ended(), nil) }
        // In the order in which they came, so that a simulated run can be repeated.
        let lives = table.withLock { table in
            pending.generations.keys.compactMap { table.life($0) }.sorted { $0.sequence < $1.sequence }
        }
        for life in lives {
            life.generation.disk?.sealTails()
            // What a transfer that failed has left in memory.
            if life.leases == 0, life.generation.disk?.isEncrypted == true { life.generation.disk?.endAllLanding() }
        }
        var round = Round()
        var ended = Ended()
        do {
            // In the order of their dates, which is all that an encrypted catalog says of them: uses of what is stored came
            // before what begins now.
            let used = pending.used.sorted { $0.value < $1.value }
            let new = Set(lives.lazy.filter { !$0.isRecorded }.map(\.generation.key))
            _ = try catalog.transaction { transaction in
                for (key, date) in used where !new.contains(key) { try transaction.noteUse(of: key.hash, at: date) }
                for life in lives { try write(life, transaction, &round) }
                for (key, presentation) in pending.presentations {
                    try transaction.setPresentation(presentation.hash, of: key.hash)
                }
                // With these, what they are a part of by now.
                for (key, date) in used where new.contains(key) || pending.presentations[key] != nil {
                    try transaction.noteUse(of: key.hash, at: date)
                }
                for (key, tag) in pending.tags where try !transaction.noteTag(tag, of: key.hash) {
                    round.earlyTags[key] = tag
                }
                for (key, stop) in pending.stops {
                    try transaction.noteStop(stop.offset, isSpent: stop.isSpent, of: key.hash)
                    try transaction.noteUse(of: key.hash, at: stop.date, isEnd: true)
                }
            } committed: { _ in
                ended = noteWritten(round)
                // Here, where no other round has taken changes that are not written yet.
                closeUnused()
            } failed: {
                for taken in round.taken { restore(taken) }
                round.outcome.add(noteNotWritten(round))
            }
        } catch {
            if flusher.noteFailure(pending) {
                report(.warning("the catalog could not be written, and is tried again: \(error)"))
            }
            return (round.outcome, ended, error)
        }
        // Of what has begun and is not recorded yet.
        let tags = table.withLock { table in round.earlyTags.filter { table.newest($0.key) != nil } }
        flusher.noteSuccess(leaving: round.passedOver, tags: tags)
        noteEvictable(round.taken.map(\.generation), pending)
        let hasNewBytes = round.taken.contains { $0.blocks?.sealed.isEmpty == false }
        if hasNewBytes || round.hasNewRows { makeRoomAhead(hasNewBytes: hasNewBytes) }
        return (round.outcome, ended, nil)
    }

    /// Enciphers what is in memory of blocks that transfers have left: the process ends.
    func sealLanding() {
        for life in table.withLock({ Array($0.lives.values) }) {
            guard let disk = life.generation.disk, disk.isEncrypted, disk.hasChanges else { continue }
            disk.endAllLanding()
            noteChange(of: life.generation)
        }
    }

    private func write(
        _ former: GenerationTable.Life, _ transaction: CatalogTransaction, _ round: inout Round
    ) throws {
        let generation = former.generation
        let identifier = generation.identifier
        guard let life = table.withLock({ $0.life(identifier) }) else { return }
        if table.withLock({ $0.removing.contains(generation.key) }) {
            round.passedOver.append(generation)
            return
        }
        switch life.phase {
        case .retired: return
        case .current: break
        case .candidate:
            // What is stored stays until a block has landed; where nothing is, every byte counts.
            round.hasNewRows = true
            let isFirst =
                try generation.hasContent && transaction.generation(of: generation.key.hash) == nil
                && generation.claimRow()
            let change = table.withLock { table -> (isCurrent: Bool, outcome: GenerationTable.Outcome) in
                if isFirst, table.currentGeneration(of: generation.key) == nil,
                    let outcome = table.promote(identifier)
                {
                    return (true, outcome)
                }
                return (table.life(identifier)?.phase == .current, table.dropUnused(identifier))
            }
            round.outcome.add(change.outcome)
            guard change.isCurrent else { return }
            generation.isProven.store(true, ordering: .releasing)
        }
        var taken = Taken(generation: generation)
        if generation.row.value == nil {
            // From here on it does not go without the catalog being told.
            guard table.withLock({ $0.beginRecording(identifier) }) else { return }
            round.begun.append(generation)
            // Of what a reader has been given as stored, the row is no longer a question.
            _ = generation.claimRow(isRequired: true)
            let description = generation.takeDescription() ?? generation.description
            let begun = try transaction.begin(
                identifier, key: generation.key.hash, url: generation.url, version: description.version,
                length: description.length, contentType: description.contentType, fields: description.fields,
                rowBytes: description.rowBytes(url: generation.url), at: nextUse())
            taken.description = description
            taken.isBegun = true
            generation.row.value = begun.id
            if let replaced = begun.replaced { round.replaced.append(replaced) }
            if let presentation = generation.presentation {
                try transaction.setPresentation(presentation.hash, of: generation.key.hash)
            }
        } else {
            taken.description = generation.takeDescription()
        }
        taken.blocks = generation.disk?.takeChanges()
        round.taken.append(taken)
        guard let row = generation.row.value else { return }
        if let description = taken.description, !taken.isBegun {
            try transaction.describe(
                row, length: description.length, version: description.version, fields: description.fields,
                contentType: description.contentType, rowBytes: description.rowBytes(url: generation.url))
        }
        if let blocks = taken.blocks {
            try transaction.apply(blocks, to: row)
        }
    }

    private func restore(_ taken: Taken) {
        if taken.isBegun { taken.generation.row.value = nil }
        if taken.description != nil { taken.generation.restoreDescription() }
        if let blocks = taken.blocks { taken.generation.disk?.restore(blocks) }
    }

    private func noteWritten(_ round: Round) -> Ended {
        table.withLock { table in
            table.noteRecorded()
            return noteForgotten(round.replaced, &table)
        }
    }

    private func noteNotWritten(_ round: Round) -> GenerationTable.Outcome {
        table.withLock { table in
            var outcome = GenerationTable.Outcome()
            for generation in round.begun {
                if let gone = table.noteForgotten(generation.identifier) { outcome.add(gone) }
            }
            return outcome
        }
    }

    /// Closes stored generations that nobody has used for long; the last ones stay open, proven as they are.
    func closeUnused() {
        for life in table.withLock({ $0.unused(but: 64) }) where !life.generation.hasChanges {
            // What the disk has not freed is claimed by the open file alone.
            guard life.generation.disk?.holdsUnfreedBytes != true else { continue }
            let closed = table.withLock { $0.close(life.generation.identifier, since: life.stamp) }
            closed?.disk?.file.close()
        }
    }

    // MARK: - Uses

    /// The resource is used now.
    ///
    /// - Parameters:
    ///   - presentation: What it is a part of from now on, if that is stored; nil: of what it was before.
    ///   - tag: What its app calls it from now on; nil: as before.
    package func noteUse(of key: CacheKey, in presentation: CacheKey? = nil, tag: String? = nil) {
        guard directory.access.isWritable, !table.withLock({ $0.isClosed }) else { return }
        let date = nextUse()
        order.withLock { $0?.use(key, partOf: presentation, at: date) }
        flusher.noteUse(of: key, in: presentation, tag: tag, at: date)
    }

    /// A play of the resource has stopped at `offset`; nil: at its end.
    ///
    /// - Parameter isSpent: Whether it is played once, and was heard to its end: it goes before all others.
    package func noteStop(_ offset: Int64?, isSpent: Bool = false, of key: CacheKey) {
        guard directory.access.isWritable, !table.withLock({ $0.isClosed }) else { return }
        let offset = offset.map { min($0, Block.offsetLimit) }
        flusher.noteStop(PlayStop(offset: offset, isSpent: isSpent, date: nextUse()), of: key)
    }

    func nextUse() -> Date {
        let use = uses.withLock { $0.next(at: clock.now()) }
        if use.isAfterJump { pullBackUses(to: use.date) }
        return use.date
    }

    /// Moves dates of use after `date`, which a clock that was wrong has left, to just before it, in the background.
    func pullBackUses(to date: Date) {
        guard directory.access.isWritable else { return }
        work.start(in: .background) { [weak self] in
            do {
                // What was noted by the wrong clock goes first.
                try self?.writeChanges()
                // What has been used meanwhile, by a clock that is right, is not after now.
                while let self, !self.table.withLock({ $0.isClosed }),
                    try self.catalog.pullBackUses(to: max(date, self.clock.now())) > 0
                {}
            } catch {
                self?.report(.warning("times of use could not be set right: \(error)"))
            }
        }
    }
}
