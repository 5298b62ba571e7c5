import ByteRanges
import SpoolStorage

// MARK: - State

extension Scheduler.StateMachine {
    struct ReaderState {
        /// What the reader does between two reads.
        enum Standing: Equatable {
            /// It has been handed bytes or an end, or has not read yet, or was woken. → waiting
            case reading
            /// Its bytes have not landed; the ticket orders those that wait. → reading, stalled
            case waiting(ticket: Int)
            /// It waits, and its place is to be tried again later. → reading, waiting
            case stalled(ticket: Int)
        }

        var start: Int64
        var position: Int64
        /// Exclusive; nil: to the end of the resource.
        var end: Int64?
        var priority: Priority
        var standing = Standing.reading
        var pace: ReadingPace
        /// Bytes that it has taken without telling and that its pace does not count yet.
        var untoldBytes: Int64 = 0
        /// Whether it may have what is stored: not before the origin has been asked, if it must be.
        var mayUseStored: Bool
        /// Whether it has found bytes of the current generation, which it may hand out any time.
        var hasRead = false
        /// As it stands in the index; nil: it wants nothing now.
        var demand: Demand?
        /// Its place in the queue.
        var queued: ReaderQueue.Place?

        var ticket: Int? {
            switch standing {
            case .reading: nil
            case .waiting(let ticket), .stalled(let ticket): ticket
            }
        }

        var isWaiting: Bool { ticket != nil }

        /// Where its range ends if the resource has this length.
        func bound(length: Int64?) -> Int64 { min(end ?? .max, length ?? .max) }
    }
}

// MARK: - Inputs

extension Scheduler.StateMachine {
    /// A reader wants `start ..< end`; nil end: to the end of the resource.
    ///
    /// - Parameters:
    ///   - usesStored: Whether it takes what is stored although others wait for the origin's word.
    ///   - ahead: How far is read ahead of it at first.
    mutating func openReader(
        at start: Int64, end: Int64?, priority: Priority, usesStored: Bool = false, ahead: ReadAheadStart = .full,
        now: Duration
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: next())
        let start = max(start, 0)
        readers[id] = ReaderState(
            start: start, position: start, end: end.map { max($0, start) }, priority: priority,
            pace: ReadingPace(initial: policy.firstRequest, start: ahead, now: now),
            mayUseStored: usesStored || !needsValidation)
        renewDemand(of: id)
        enqueue(id)
        return (id, plan())
    }

    /// Returns what a reader that has taken all bytes before `position` may take next, at most `limit` bytes.
    ///
    /// A reader that has to wait is woken later.
    mutating func pull(
        _ id: ReaderID, from position: Int64, limit: Int64, now: Duration
    ) -> (ReadDecision, [Action]) {
        let actions = advance(id, to: position, now: now)
        let (decision, more) = read(id, limit: limit, now: now)
        return (decision, actions + more)
    }

    /// Whether the reader was told to wait and has not been woken since.
    func isWaiting(_ id: ReaderID) -> Bool { readers[id]?.isWaiting ?? false }

    /// The reader has taken all before `position`.
    mutating func advance(_ id: ReaderID, to position: Int64, now: Duration) -> [Action] {
        guard let reader = readers[id], position > reader.position else { return [] }
        endWaiting(id)
        readers[id]?.pace.note(bytes: position - reader.position + reader.untoldBytes, now: now)
        readers[id]?.untoldBytes = 0
        readers[id]?.position = position
        renewDemand(of: id)
        enqueue(id)
        movements += 1
        return plan()
    }

    /// What there is at the reader's position, at most `limit` bytes; a reader that has to wait will be woken.
    mutating func read(_ id: ReaderID, limit: Int64, now: Duration) -> (ReadDecision, [Action]) {
        guard let reader = readers[id] else { return (.end, []) }
        if reader.mayUseStored, let decision = find(for: reader, limit: limit) {
            endWaiting(id)
            if case .landed = decision { readers[id]?.hasRead = true }
            // What yielded to it may go on, even if it never moves again.
            return (decision, reader.isWaiting ? plan() : [])
        }
        if isClosing {
            endWaiting(id)
            return (.closed, plan())
        }
        guard !reader.isWaiting else { return (.wait, []) }
        var actions: [Action] = []
        if let failure = failure(for: id, now: now, &actions) { return (.failed(failure), actions + plan()) }
        beginWaiting(id)
        reviewStanding(id, &actions)
        enqueue(id)
        movements += 1
        return (.wait, actions + plan())
    }

    /// What the reader is told that asks for the head of the version that it is in; it stays in that one from then on.
    ///
    /// - Parameter isDescribed: Whether there is a version.
    mutating func describe(_ id: ReaderID, isDescribed: Bool, now: Duration) -> (HeadDecision, [Action]) {
        guard let reader = readers[id] else { return (.gone, []) }
        let isEmpty = !isDescribed && reader.mayUseStored && find(for: reader, limit: 1) != nil
        if isDescribed && reader.mayUseStored || isEmpty {
            endWaiting(id)
            if isDescribed { readers[id]?.hasRead = true }
            return (.described, reader.isWaiting ? plan() : [])
        }
        let (decision, actions) = read(id, limit: 1, now: now)
        switch decision {
        case .failed(let failure): return (.failed(failure), actions)
        case .closed: return (.closed, actions)
        case .wait, .landed, .end, .unsatisfiable: return (.wait, actions)
        }
    }

    /// The reader is gone.
    mutating func closeReader(_ id: ReaderID) -> [Action] {
        guard readers[id] != nil else { return [] }
        forgetReader(id)
        movements += 1
        return plan()
    }

    // MARK: - Decisions

    /// What has landed at the reader's position, or that nothing more can; nil: it has to wait.
    private func find(for reader: ReaderState, limit: Int64) -> ReadDecision? {
        if let length, reader.start >= length, reader.start > 0 { return .unsatisfiable(length: length) }
        if reader.start >= Block.offsetLimit { return .unsatisfiable(length: length ?? Block.offsetLimit) }
        let bound = min(reader.bound(length: length), Block.offsetLimit)
        if reader.position >= bound { return .end }
        guard let found = landed.prefix(at: reader.position) else { return nil }
        let run = min(found.upperBound, bound)
        let upper = reader.position + min(run - reader.position, max(limit, 1))
        return .landed(reader.position..<upper, freeUntil: max(upper, freeUntil(of: reader, run: run, bound: bound)))
    }

    /// Where the reader has to tell how far it has come: the plan changes before the landed bytes end at `run`, but
    /// a quarter of a window is no change.
    private func freeUntil(of reader: ReaderState, run: Int64, bound: Int64) -> Int64 {
        guard run < bound else { return bound }
        let window = window(of: reader)
        let isComing = transfers.values.contains { $0.isLive && $0.position <= run && run < $0.end ?? .max }
        let free = max(run - (isComing ? window : window / 2), reader.position.adding(window / 4))
        return min(free, run)
    }

    /// Bytes beyond the reader's position that may land before it asks for them; all that it may, for a preload.
    func window(of reader: ReaderState) -> Int64 {
        guard reader.priority == .playback else { return min(policy.window, window) }
        return reader.pace.window(
            initial: policy.firstRequest, limit: min(policy.window, window), line: link.underWay)
    }

    // MARK: - Waiting

    private mutating func beginWaiting(_ id: ReaderID) {
        guard let reader = readers[id], !reader.isWaiting else { return }
        let ticket = next()
        readers[id]?.standing = .waiting(ticket: ticket)
        if reader.priority == .playback { expectantPlayers += 1 }
        if reader.mayUseStored { listWaiting(id, reader) }
    }

    private mutating func listWaiting(_ id: ReaderID, _ reader: ReaderState) {
        switch reader.priority {
        case .playback: waitingPlayback.insert(id, at: reader.position)
        case .preload: waitingPreloads.insert(id, at: reader.position)
        }
    }

    private mutating func unlistWaiting(_ id: ReaderID, _ reader: ReaderState) {
        switch reader.priority {
        case .playback: waitingPlayback.remove(id, at: reader.position)
        case .preload: waitingPreloads.remove(id, at: reader.position)
        }
    }

    /// Whether all readers may have what is stored; one that may not waits for the origin's word, for no transfer.
    mutating func letUseStored(_ mayUse: Bool) {
        for id in readers.keys.sorted() {
            guard let reader = readers[id], reader.mayUseStored != mayUse else { continue }
            readers[id]?.mayUseStored = mayUse
            guard reader.isWaiting else { continue }
            if mayUse {
                listWaiting(id, reader)
                // What lacked room while nobody waited for it gets it now.
                movements += 1
            } else {
                unlistWaiting(id, reader)
            }
        }
    }

    /// The reader has been woken, or has what it waited for.
    mutating func endWaiting(_ id: ReaderID) {
        guard let reader = readers[id], reader.isWaiting else { return }
        expect(id)
        readers[id]?.standing = .reading
        if reader.priority == .playback { expectantPlayers -= 1 }
        if reader.mayUseStored { unlistWaiting(id, reader) }
        if reader.queued != nil { enqueue(id) }
    }

    /// The reader's place is to be tried later; nobody has to yield to it meanwhile.
    mutating func stall(_ id: ReaderID) {
        guard let reader = readers[id], case .waiting(let ticket) = reader.standing else { return }
        readers[id]?.standing = .stalled(ticket: ticket)
        if reader.priority == .playback { expectantPlayers -= 1 }
    }

    /// The reader's bytes may come now.
    mutating func expect(_ id: ReaderID) {
        guard let reader = readers[id], case .stalled(let ticket) = reader.standing else { return }
        readers[id]?.standing = .waiting(ticket: ticket)
        if reader.priority == .playback { expectantPlayers += 1 }
    }

    /// Wakes all that wait for a byte of `range`.
    mutating func wake(in range: Range<Int64>, _ actions: inout [Action]) {
        guard !(waitingPlayback.isEmpty && waitingPreloads.isEmpty) else { return }
        for id in (waitingPlayback.readers(in: range) + waitingPreloads.readers(in: range)).sorted() {
            endWaiting(id)
            actions.append(.wake(id))
        }
    }

    /// Wakes those of all readers for whom something has changed.
    mutating func wakeConcerned(_ actions: inout [Action]) {
        for id in readers.keys.sorted() {
            guard let reader = readers[id], reader.isWaiting else { continue }
            guard isClosing || (reader.mayUseStored && find(for: reader, limit: 1) != nil) else {
                reviewStanding(id, &actions)
                continue
            }
            endWaiting(id)
            actions.append(.wake(id))
        }
    }

    // MARK: - Demand

    mutating func forgetReader(_ id: ReaderID) {
        endWaiting(id)
        guard let reader = readers.removeValue(forKey: id) else { return }
        if let place = reader.queued { queue.remove(place) }
        if let demand = reader.demand { unlist(demand, of: id, reader.priority) }
    }

    private mutating func unlist(_ demand: Demand, of id: ReaderID, _ priority: Priority) {
        switch priority {
        case .playback: demands.remove(demand, of: id)
        case .preload: preloadDemands.remove(demand, of: id)
        }
    }

    /// Puts what the reader may want now into the index.
    mutating func renewDemand(of id: ReaderID) {
        guard let reader = readers[id] else { return }
        let demand = reader.mayUseStored ? demand(of: reader) : nil
        guard demand != reader.demand else { return }
        if let former = reader.demand { unlist(former, of: id, reader.priority) }
        readers[id]?.demand = demand
        guard let demand else { return }
        switch reader.priority {
        case .playback: demands.insert(demand, for: id)
        case .preload: preloadDemands.insert(demand, for: id)
        }
    }

    /// The same for all readers, after something that concerns all; each is looked at again.
    mutating func renewDemands() {
        for id in readers.keys.sorted() {
            renewDemand(of: id)
            enqueue(id)
        }
    }

    /// What the reader may want now: whole blocks, from its own to the end of its window.
    func demand(of reader: ReaderState) -> Demand? {
        let lower = Block.roundDown(reader.position)
        let bound = min(reader.bound(length: length), Block.offsetLimit)
        guard reader.position < bound else { return nil }
        let window = window(of: reader)
        let ahead = reader.position.adding(window)
        guard ahead < bound else {
            let upper = min(Block.roundUp(bound), length ?? .max)
            return Demand(lower: lower, asks: bound, takes: upper, keeps: upper, keepsBody: upper)
        }
        let takes = min(max(Block.roundDown(ahead), Block.end(at: reader.position)), length ?? .max)
        return Demand(
            lower: lower, asks: min(takes, reader.position.adding(window / 2 + 1)), takes: takes,
            keeps: takes.adding(window / 2), keepsBody: .max)
    }

    /// The reader's request is looked for when its turn comes.
    mutating func enqueue(_ id: ReaderID) {
        guard let reader = readers[id] else { return }
        let line: ReaderQueue.Line
        switch (reader.priority, reader.isWaiting) {
        case (.playback, true): line = .waitingPlayback
        case (.playback, false): line = .playback
        case (.preload, true): line = .waitingPreload
        case (.preload, false): line = .preload
        }
        let place = ReaderQueue.Place(line: line, ticket: reader.ticket ?? id.number, id: id)
        guard place != reader.queued else { return }
        if let former = reader.queued { queue.remove(former) }
        queue.insert(place)
        readers[id]?.queued = place
    }

    /// The same for all readers that want something of `range`.
    mutating func enqueue(wanting range: Range<Int64>) {
        for id in demands.readers(wanting: range) { enqueue(id) }
        for id in preloadDemands.readers(wanting: range) { enqueue(id) }
    }
}
