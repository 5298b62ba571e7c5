import ByteRanges
import SpoolStorage

// MARK: - Settling

extension Scheduler.StateMachine {
    /// Reviews transfers and serves readers until nothing changes; every input ends with this.
    ///
    /// - Parameter only: The only transfer whose place in the plan can have changed; nil: any.
    mutating func plan(_ only: TransferID? = nil) -> [Action] {
        var actions: [Action] = []
        var only = only
        // One round follows from another when a transfer makes way for another; each makes fewer of them wait.
        for _ in 0..<8 {
            if didPreloadsYield != mustPreloadsYield { only = nil }
            didPreloadsYield = mustPreloadsYield
            review(only, &actions)
            let before = actions.count
            serveQueue(&actions)
            if actions.count == before, didPreloadsYield == mustPreloadsYield { break }
            only = nil
        }
        return actions
    }

    // MARK: Transfers

    private mutating func review(_ only: TransferID?, _ actions: inout [Action]) {
        guard !isClosing else { return }
        if let only {
            review(only, &actions)
        } else {
            for id in transfers.keys.sorted() { review(id, &actions) }
        }
    }

    /// Notes whether a transfer is wanted, and lets a held one go on.
    private mutating func review(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers[id], transfer.isLive else { return }
        let limit = limit(of: id, transfer)
        if isWanted(transfer, limit: limit) {
            transfers[id]?.interest = .wanted
        } else if limit < transfer.end ?? .max, !transfer.isSequential {
            // Beyond the place where another transfer has gone ahead of it bytes would be sent twice.
            return cancel(id, &actions)
        } else if isNearlyDone(transfer) {
            transfers[id]?.interest = .drains
        } else if !transfer.isUnwanted {
            let timer = TimerID(number: next())
            transfers[id]?.interest = .unwanted(timer)
            // What can't be had in parts would have to be sent anew from its first byte.
            let patience = transfer.isSequential ? ReadAheadPolicy.patienceWithoutRanges : 1
            actions.append(.setTimer(timer, after: policy.cancellationDelay * patience))
        }
        guard let reviewed = transfers[id], reviewed.isHeld else { return }
        if mayProceed(reviewed) || reviewed.position >= limit { resume(id, &actions) }
    }

    mutating func resume(_ id: TransferID, _ actions: inout [Action]) {
        guard transfers[id]?.isHeld == true else { return }
        transfers[id]?.flow = .flowing
        actions.append(.resume(id))
    }

    /// Whether a reader wants what the transfer brings before `limit`.
    private mutating func isWanted(
        _ transfer: TransferState, limit: Int64, besides reader: ReaderID? = nil
    ) -> Bool {
        if transfer.isValidation { return true }
        // One that has come to the end of a window is held, not given up; least of all where it can't be had again.
        let bound = transfer.isSequential ? Demand.Bound.keepsBody : .keeps
        let position = transfer.position
        return demands.reaches(bound, startingBefore: limit, beyond: position, besides: reader)
            || preloadDemands.reaches(bound, startingBefore: limit, beyond: position, besides: reader)
    }

    /// Back-pressure: a transfer runs at most a window ahead of the readers that it serves, and one that only preloads
    /// does not run while a player waits.
    mutating func mayProceed(_ transfer: TransferState) -> Bool {
        if case .lacksSpace(let count) = transfer.flow, count == movements { return false }
        if isClosing || transfer.isValidation { return true }
        switch transfer.interest {
        case .drains: return true
        case .unwanted, nil: return false
        case .wanted: break
        }
        let end = transfer.end ?? .max
        if demands.reaches(.takes, startingBefore: end, beyond: transfer.position) { return true }
        return !mustPreloadsYield && preloadDemands.reaches(.takes, startingBefore: end, beyond: transfer.position)
    }

    /// Whether what remains of a bounded range is about what the buffers of two sockets hold: it has been sent already.
    func isNearlyDone(_ transfer: TransferState) -> Bool {
        guard let end = transfer.end else { return false }
        return end - transfer.position <= Self.inSockets
    }

    private static var inSockets: Int64 { 256 << 10 }

    // MARK: Readers

    /// Looks for requests, in turn, as long as there is a place for one.
    private mutating func serveQueue(_ actions: inout [Action]) {
        guard !isClosing else { return }
        for line in ReaderQueue.Line.allCases {
            if line == .waitingPreload || line == .preload, mustPreloadsYield { return }
            while let place = queue.popFirst(of: line) {
                readers[place.id]?.queued = nil
                if serve(place.id, &actions) { continue }
                enqueue(place.id)
                // Who waits goes before all that follow; who reads ahead goes before those that read ahead.
                if line == .waitingPlayback || line == .waitingPreload { return }
                break
            }
        }
    }

    /// Asks for what the reader needs: at its first hole, and behind a transfer that is about to end.
    ///
    /// - Returns: False if there is no place for a further transfer, and none can be made.
    private mutating func serve(_ id: ReaderID, _ actions: inout [Action]) -> Bool {
        served += 1
        guard let reader = readers[id] else { return true }
        guard reader.mayUseStored else { return validate(for: id, &actions) }
        guard let demand = reader.demand else { return true }
        var cursor = demand.lower
        for _ in 0..<2 {
            guard cursor < demand.takes, let hole = landed.firstHole(in: cursor..<demand.takes) else { return true }
            guard !evicting.contains(hole.lowerBound) else { return true }
            guard !isBlocked(hole.lowerBound, for: id) else { return true }
            switch coverage(of: hole.lowerBound, for: id) {
            case .coming(let carrier):
                guard let end = leadEnd(of: carrier) else { return true }
                cursor = end
                continue
            case .ending: return true
            case .tooFarAhead(let former):
                cancel(former, &actions)
                return true
            case .none: break
            }
            let isNeeded = reader.isWaiting && cursor == demand.lower
            if rangeSupport == .unsupported {
                // One such transfer serves all readers, unless one waits for what is behind it and no longer there.
                guard isNeeded || !transfers.values.contains(where: \.isLive) else { return true }
            }
            // Reading ahead waits until a good piece fits into the window, rather than asking block by block; what would
            // only fill the last block of a range is not worth a request.
            if hole.lowerBound >= demand.asks, rangeSupport != .unsupported || !demand.isWindowed { return true }
            guard makePlace(for: reader.priority, isNeeded: isNeeded, &actions) else {
                // A second request may follow later; the first is on its way.
                return cursor > demand.lower
            }
            start(at: hole, demand, for: id, &actions)
            return true
        }
        return true
    }

    /// Asks whether what is stored still holds, unless that has been asked.
    private mutating func validate(for id: ReaderID, _ actions: inout [Action]) -> Bool {
        guard let reader = readers[id], reader.isWaiting, needsValidation else { return true }
        guard !transfers.values.contains(where: { $0.isValidation && !$0.isStale }) else { return true }
        guard !isBlocked(nextHole(of: reader), for: id) else { return true }
        guard makePlace(for: reader.priority, isNeeded: true, &actions) else { return false }
        let upper = rangeSupport == .unsupported ? nil : min(Block.size, max(length ?? Block.size, 1))
        let transfer = begin(at: 0, upper: upper, for: id, isValidation: true)
        actions.append(.start(transfer, lower: 0, upper: upper, for: id))
        return true
    }

    /// Whether there is a place for one more transfer, or one gives way to a reader that waits.
    private mutating func makePlace(for priority: Priority, isNeeded: Bool, _ actions: inout [Action]) -> Bool {
        guard transfers.values.count(where: \.isLive) >= policy.transfersPerResource else { return true }
        guard isNeeded, let idle = idleTransfer(for: priority) else { return false }
        cancel(idle, &actions)
        return true
    }

    /// A transfer that a waiting reader may have the place of: one that is held, or that nobody wants any more.
    private mutating func idleTransfer(for priority: Priority) -> TransferID? {
        for id in transfers.keys.sorted() {
            guard let transfer = transfers[id], transfer.isLive, !isAwaited(transfer, by: priority) else { continue }
            if !mayProceed(transfer) || (transfer.interest == .drains && !transfer.isSequential) { return id }
        }
        return nil
    }

    /// A transfer has come nearer to its end: what is wanted behind it is asked for shortly before.
    mutating func extend(_ id: TransferID) {
        guard let transfer = transfers[id], transfer.isLive, let end = leadEnd(of: transfer) else { return }
        // The reader that caused it, if it still asks: the line's next bytes are on its account, too.
        if let demand = readers[transfer.reader]?.demand, demand.lower <= end, end < demand.asks {
            return enqueue(transfer.reader)
        }
        let limit = end.adding(1)
        if let next = demands.furthest(.asks, startingBefore: limit, beyond: end) { return enqueue(next.id) }
        if let next = preloadDemands.furthest(.asks, startingBefore: limit, beyond: end) { enqueue(next.id) }
    }

    /// Where the transfer ends, if that is so soon that the next request may be sent.
    ///
    /// Bytes land at a block's start or behind what has landed of it: inside a block nothing can be sent ahead.
    private func leadEnd(of transfer: TransferState) -> Int64? {
        guard let end = transfer.end, end % Block.size == 0, end - transfer.position <= lead else { return nil }
        return end
    }

    // MARK: Requests

    private mutating func start(
        at hole: Range<Int64>, _ demand: Demand, for id: ReaderID, _ actions: inout [Action]
    ) {
        let lower = rangeSupport == .unsupported ? 0 : hole.lowerBound
        let upper = rangeSupport == .unsupported ? nil : upperBound(of: hole, demand)
        if let upper, upper <= lower { return }
        let transfer = begin(at: lower, upper: upper, for: id, isValidation: false)
        actions.append(.start(transfer, lower: lower, upper: upper, for: id))
    }

    private mutating func begin(
        at lower: Int64, upper: Int64?, for reader: ReaderID, isValidation: Bool
    ) -> TransferID {
        let id = TransferID(number: next())
        let isSequential = upper == nil
        transfers[id] = TransferState(
            start: lower, position: lower, end: upper, askedEnd: upper,
            size: upper.map { $0 - lower } ?? policy.largestRequest, reader: reader,
            priority: readers[reader]?.priority ?? .preload, purpose: isValidation ? .validation : .bytes,
            isSequential: isSequential,
            place: placeTried(at: lower, isSequential: isSequential, isValidation: isValidation))
        return id
    }

    /// Who brings the byte at an offset.
    private enum Coverage {
        /// This transfer will, soon enough.
        case coming(TransferState)
        /// One that is about to be gone may yet; what it leaves is asked for then.
        case ending
        /// This one would, much later, and nobody else wants what it brings: it has to make way first.
        case tooFarAhead(TransferID)
        case none
    }

    private mutating func coverage(of offset: Int64, for reader: ReaderID) -> Coverage {
        var best: (id: TransferID, state: TransferState)?
        for (id, transfer) in transfers where !transfer.isStale {
            guard transfer.position <= offset else { continue }
            if hasEndedShort(transfer), offset < Block.end(at: transfer.position) { return .ending }
            guard offset < transfer.end ?? .max, offset < limit(of: id, transfer) else { continue }
            if !transfer.isLive { return .ending }
            guard let (other, state) = best else {
                best = (id, transfer)
                continue
            }
            if (transfer.position, other) > (state.position, id) { best = (id, transfer) }
        }
        guard let best else { return .none }
        // Only a reader that waits is worth a second request inside what is on its way.
        guard readers[reader]?.isWaiting == true, rangeSupport != .unsupported,
            offset - best.state.position > joinDistance
        else { return .coming(best.state) }
        let limit = limit(of: best.id, best.state)
        return isWanted(best.state, limit: limit, besides: reader) ? .none : .tooFarAhead(best.id)
    }

    /// Whether the response has come to its end inside a block, and that has not been noted yet.
    ///
    /// The next request there is one more try at the same place, and has to be counted as such.
    private func hasEndedShort(_ transfer: TransferState) -> Bool {
        guard transfer.isStreaming, transfer.position == transfer.end else { return false }
        return !transfer.hasLanded || transfer.position % Block.size != 0
    }

    /// Where a request for the hole ends: it grows with its run and reaches into nothing that is there or coming.
    private func upperBound(of hole: Range<Int64>, _ demand: Demand) -> Int64 {
        let lower = hole.lowerBound
        var size = policy.firstRequest
        if let run = runs.last(where: { $0.end == lower }) { size = run.nextSize }
        let former = transfers.values.filter { $0.end == lower && $0.isLive }.map(\.size).max()
        if let former { size = grown(former) }
        var upper = lower + min(size, demand.takes - lower)
        if upper < demand.takes {
            upper = max(Block.roundDown(upper), min(Block.end(at: lower), demand.takes))
        }
        upper = min(upper, hole.upperBound)
        for transfer in transfers.values where !transfer.isStale && transfer.position > lower {
            upper = min(upper, Block.roundDown(transfer.position))
        }
        return firstEvicting(in: lower..<max(lower, upper)) ?? upper
    }

    /// Where the transfer has to stop: at its end, or where landed bytes or another transfer begin.
    func limit(of id: TransferID, _ transfer: TransferState) -> Int64 {
        let position = transfer.position
        var limit = min(transfer.end ?? .max, length ?? .max)
        if !transfer.isSequential, position < limit {
            let hole = landed.firstHole(in: position..<limit)
            limit = hole.map { $0.lowerBound == position ? $0.upperBound : position } ?? position
        }
        for (other, state) in transfers
        where other != id && !state.isStale && state.isSequential == transfer.isSequential {
            if state.position > position { limit = min(limit, Block.roundDown(state.position)) }
            // Where they meet, the one that comes from behind ends; of two that begin together, the younger.
            let isFirst = transfer.hasLanded == state.hasLanded ? id < other : state.hasLanded
            if state.position == position, !isFirst { limit = min(limit, position) }
        }
        limit = max(min(limit, Block.offsetLimit), position)
        // A body that can't be had again from here would be lost if it stopped.
        if transfer.isSequential { return limit }
        return firstEvicting(in: Range(from: position, to: limit)) ?? limit
    }

    /// Where in `range` bytes are still on their way out.
    private func firstEvicting(in range: Range<Int64>) -> Int64? {
        guard !evicting.isEmpty, !range.isEmpty else { return nil }
        if evicting.contains(range.lowerBound) { return range.lowerBound }
        guard let free = evicting.firstHole(in: range), free.upperBound < range.upperBound else { return nil }
        return free.upperBound
    }

    /// How near a transfer has to be for a waiting reader to join it rather than have its own.
    ///
    /// What the line brings in ``ReadAheadPolicy/drainTime``: a request inside what is on its way makes the origin send
    /// bytes that nobody takes, so it has to be worth it. Before anything has been measured, the first request, which
    /// is small, is waited for.
    private var joinDistance: Int64 {
        max(Self.inSockets, link.bytes(inRoundTrips: 2) ?? 0, link.bytes(in: policy.drainTime) ?? policy.firstRequest)
    }

    /// How much of a request may be outstanding when the next one is sent.
    private var lead: Int64 { max(Block.size, link.bytes(inRoundTrips: 2) ?? Self.inSockets) }

    func grown(_ size: Int64) -> Int64 {
        min(max(size.adding(size), policy.firstRequest), policy.largestRequest)
    }
}
