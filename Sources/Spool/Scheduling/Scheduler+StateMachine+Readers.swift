import SpoolStorage

// MARK: - Readers

extension Scheduler.StateMachine {
    /// Opens a reader of `start ..< end`, or to the end of the resource if `end` is `nil`.
    ///
    /// - Parameters:
    ///   - usesStored: Whether it may use stored bytes although other readers wait for a validation.
    ///   - ahead: The size of the first read-ahead.
    mutating func openReader(
        at start: Int64, end: Int64?, priority: Priority, usesStored: Bool = false, ahead: ReadAheadStart = .full,
        now: Duration
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: next())
        let start = max(start, 0)
        let reader = ReaderState(
            start: start, end: end.map { max($0, start) }, priority: priority,
            pace: ReadingPace(initial: policy.firstRequest, start: ahead, now: now),
            mayUseStored: usesStored || !needsValidation)
        readers.insert(reader, as: id)
        readers.renewDemand(of: id, readAhead)
        readers.enqueue(id)
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

    /// Whether the reader has to wait and has not been woken yet.
    func isWaiting(_ id: ReaderID) -> Bool { readers[id]?.isWaiting ?? false }

    mutating func advance(_ id: ReaderID, to position: Int64, now: Duration) -> [Action] {
        guard let reader = readers[id], position > reader.position else { return [] }
        readers.advance(id, to: position, now: now)
        readers.renewDemand(of: id, readAhead)
        readers.enqueue(id)
        movements += 1
        return plan()
    }

    mutating func read(_ id: ReaderID, limit: Int64, now: Duration) -> (ReadDecision, [Action]) {
        guard let reader = readers[id] else { return (.end, []) }
        if reader.mayUseStored, let decision = find(for: reader, limit: limit) {
            readers.endWaiting(id)
            if case .landed = decision { readers.noteRead(id) }
            // Transfers that yielded to it may continue, even if it never moves again.
            return (decision, reader.isWaiting ? plan() : [])
        }
        if isClosing {
            readers.endWaiting(id)
            return (.closed, plan())
        }
        guard !reader.isWaiting else { return (.wait, []) }
        var actions: [Action] = []
        if let failure = failure(for: id, now: now, &actions) { return (.failed(failure), actions + plan()) }
        readers.beginWaiting(id, ticket: next())
        reviewStanding(id, &actions)
        readers.enqueue(id)
        movements += 1
        return (.wait, actions + plan())
    }

    /// Returns whether the version of the reader is known. From then on, the reader stays in that version.
    ///
    /// - Parameter isDescribed: Whether there is a version.
    mutating func describe(_ id: ReaderID, isDescribed: Bool, now: Duration) -> (HeadDecision, [Action]) {
        guard let reader = readers[id] else { return (.gone, []) }
        let isEmpty = !isDescribed && reader.mayUseStored && find(for: reader, limit: 1) != nil
        if isDescribed && reader.mayUseStored || isEmpty {
            readers.endWaiting(id)
            if isDescribed { readers.noteRead(id) }
            return (.described, reader.isWaiting ? plan() : [])
        }
        let (decision, actions) = read(id, limit: 1, now: now)
        switch decision {
        case .failed(let failure): return (.failed(failure), actions)
        case .closed: return (.closed, actions)
        case .wait, .landed, .end, .unsatisfiable: return (.wait, actions)
        }
    }

    mutating func closeReader(_ id: ReaderID) -> [Action] {
        guard readers[id] != nil else { return [] }
        readers.remove(id)
        movements += 1
        return plan()
    }

    /// The stored bytes at the reader's position, or the end. `nil` if the reader has to wait.
    private func find(for reader: ReaderState, limit: Int64) -> ReadDecision? {
        if let length, reader.start >= length, reader.start > 0 { return .unsatisfiable(length: length) }
        if reader.start >= Block.offsetLimit { return .unsatisfiable(length: length ?? Block.offsetLimit) }
        let readAhead = readAhead
        let bound = readAhead.bound(of: reader)
        if reader.position >= bound { return .end }
        guard let found = stored.prefix(at: reader.position) else { return nil }
        let run = min(found.upperBound, bound)
        let upper = reader.position + min(run - reader.position, max(limit, 1))
        let free = readAhead.freeUntil(of: reader, run: run, isFetched: run < bound && transfers.fetches(run))
        return .landed(reader.position..<upper, freeUntil: max(upper, free))
    }

    // MARK: - Waking

    /// Wakes all readers that wait for a byte of `range`.
    mutating func wake(in range: Range<Int64>, _ actions: inout [Action]) {
        for id in readers.waiting(in: range) { wake(id, &actions) }
    }

    mutating func wake(_ id: ReaderID, _ actions: inout [Action]) {
        readers.endWaiting(id)
        actions.append(.wake(id))
    }

    /// Wakes all readers that no longer have to wait.
    mutating func wakeConcerned(_ actions: inout [Action]) {
        for id in readers.ids {
            guard let reader = readers[id], reader.isWaiting else { continue }
            if isClosing || reader.mayUseStored && find(for: reader, limit: 1) != nil {
                wake(id, &actions)
            } else {
                reviewStanding(id, &actions)
            }
        }
    }

    /// Allows all readers to use stored bytes, or none until the origin has validated them.
    mutating func letUseStored(_ mayUse: Bool) {
        // A transfer that found no space while no reader waited for its bytes tries again.
        if readers.letUseStored(mayUse) { movements += 1 }
    }
}
