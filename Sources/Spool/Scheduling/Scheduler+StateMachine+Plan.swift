import ByteRanges

// MARK: - The plan

/// What is to be done now, from the whole state: who is woken, what goes on or is cut, what is asked for, and how much.
extension Scheduler.StateMachine {
    /// Which of the readers that wait look again.
    enum Waking {
        case none, all
        case within(Range<Int64>)
    }

    /// Looks at everything once and says what follows; every input ends with this.
    mutating func plan(waking: Waking = .none) -> [Action] {
        var actions = wake(waking)
        for id in transfers.keys.sorted() { actions += review(id) }
        guard !isClosing, retryEpoch == nil, !hasFailed else { return actions }
        if needsValidation {
            if let reader = readers.values.first(where: { $0.ticket != nil }), transfers.isEmpty {
                let upper = rangeSupport == .unsupported ? nil : Block.size
                actions.append(start(at: 0, upper: upper, priority: reader.priority))
            }
            return actions
        }
        for id in readersInOrder() {
            guard let started = serve(id) else { break }
            actions += started
        }
        return actions
    }

    private mutating func wake(_ waking: Waking) -> [Action] {
        var woken: [ReaderID] = []
        for (id, reader) in readers where reader.ticket != nil {
            switch waking {
            case .none: continue
            case .all: woken.append(id)
            case .within(let range):
                if range.contains(reader.position) { woken.append(id) }
            }
        }
        return woken.sorted().map { .wake($0) }
    }

    /// Marks a transfer wanted or not, and lets a held one go on.
    private mutating func review(_ id: TransferID) -> [Action] {
        guard var transfer = transfers[id], !transfer.isCut else { return [] }
        var actions: [Action] = []
        if isWanted(id, transfer) {
            transfer.unwantedEpoch = nil
        } else if limit(of: id, transfer) < transfer.end ?? .max, !transfer.isSequential {
            // What reaches the place where it was overtaken would be sent twice, and nobody comes back for the rest.
            return cut(id)
        } else if transfer.unwantedEpoch == nil {
            counter += 1
            transfer.unwantedEpoch = counter
            actions.append(.grace(id, epoch: counter, after: policy.grace))
        }
        if transfer.isHeld, mayGo(transfer) || transfer.position >= limit(of: id, transfer) {
            transfer.isHeld = false
            transfer.lacksSpace = false
            actions.append(.resume(id))
        }
        transfers[id] = transfer
        return actions
    }

    /// Starts what the reader needs: at its first hole, and behind a transfer that is about to end.
    ///
    /// - Returns: Nil if there is no place for a further transfer, and none can be made.
    private mutating func serve(_ id: ReaderID) -> [Action]? {
        guard let reader = readers[id] else { return [] }
        var actions: [Action] = []
        let wanted = wantedRange(of: reader)
        var cursor = wanted.lowerBound
        for _ in 0..<2 {
            guard cursor < wanted.upperBound, let hole = landed.firstHole(in: cursor..<wanted.upperBound) else { break }
            guard !dropping.contains(hole.lowerBound) else { break }
            switch carriage(of: hole.lowerBound, to: id) {
            case .coming(let carrier):
                // Bytes land at a block's start or behind what has landed of it: inside a block nothing can be sent ahead.
                guard let end = carrier.end, end % Block.size == 0, end - carrier.position <= lead else {
                    return actions
                }
                cursor = end
                continue
            case .leaving: return actions
            case .overtaken(let former): return actions + cut(former)
            case .none: break
            }
            if transfers.values.count(where: { !$0.isCut }) >= policy.transfersPerResource {
                // Only for what is waited for now, not for what comes after it.
                guard reader.ticket != nil, cursor == wanted.lowerBound else { break }
                guard let idle = idleTransfer(for: reader.priority) else { return nil }
                actions += cut(idle)
            }
            // An origin without ranges sends everything from the start. One such transfer serves all readers, unless one
            // waits for what is behind it and no longer there.
            if rangeSupport == .unsupported {
                guard reader.ticket != nil || !transfers.values.contains(where: { !$0.isCut }) else { break }
                actions.append(start(at: 0, upper: nil, priority: reader.priority))
                break
            }
            // Reading ahead waits until a good piece fits into the window, rather than asking for it block by block.
            if isWindowed(wanted, of: reader), hole.lowerBound - reader.position > window / 2 { break }
            let upper = upperBound(of: hole, wanted: wanted)
            guard upper > hole.lowerBound else { break }
            actions.append(start(at: hole.lowerBound, upper: upper, priority: reader.priority))
            break
        }
        return actions
    }

    /// A transfer that a waiting reader may have the place of: one that is held, or that nobody wants any more.
    private func idleTransfer(for priority: Priority) -> TransferID? {
        transfers.filter { _, transfer in
            !transfer.isCut && !isAwaited(transfer, by: priority)
                && (!mayGo(transfer) || (transfer.unwantedEpoch != nil && !transfer.isSequential))
        }.keys.min()
    }

    private mutating func start(at lower: Int64, upper: Int64?, priority: Priority) -> Action {
        counter += 1
        let id = TransferID(number: counter)
        let size = upper.map { $0 - lower } ?? policy.largestRequest
        transfers[id] = TransferState(
            position: lower, end: upper, size: size, isSequential: upper == nil && rangeSupport == .unsupported)
        return .start(id, lower: lower, upper: upper)
    }

    private func readersInOrder() -> [ReaderID] {
        readers.sorted { a, b in
            if a.value.priority != b.value.priority { return a.value.priority > b.value.priority }
            switch (a.value.ticket, b.value.ticket) {
            case (let x?, let y?): return x < y
            case (_?, nil): return true
            case (nil, _?): return false
            case (nil, nil): return a.key < b.key
            }
        }.map(\.key)
    }

    /// What the reader may want now: whole blocks, from its own to the end of its window.
    func wantedRange(of reader: ReaderState) -> Range<Int64> {
        let lower = Block.roundDown(reader.position)
        var upper = reader.end ?? .max
        if let length { upper = min(upper, length) }
        let (ahead, overflow) = reader.position.addingReportingOverflow(window)
        if !overflow { upper = min(upper, ahead) }
        if reader.position >= upper { return lower..<lower }
        upper = Block.roundUp(min(upper, Block.offsetLimit))
        if let length { upper = min(upper, length) }
        return lower..<max(lower, upper)
    }

    /// Whether it is the window that ends what the reader may want now, not the end of its range.
    private func isWindowed(_ wanted: Range<Int64>, of reader: ReaderState) -> Bool {
        wanted.upperBound < min(reader.end ?? .max, length ?? .max)
    }

    /// What stays when room is made: the reader's block and its window.
    func keepRange(of reader: ReaderState) -> Range<Int64> {
        let wanted = wantedRange(of: reader)
        return wanted.lowerBound..<max(wanted.upperBound, blockEnd(at: reader.position))
    }

    private func isWanted(_ id: TransferID, _ transfer: TransferState, besides other: ReaderID? = nil) -> Bool {
        if needsValidation { return true }
        let limit = limit(of: id, transfer)
        return readers.contains { id, reader in
            guard id != other else { return false }
            let wanted = wantedRange(of: reader)
            guard !wanted.isEmpty, wanted.lowerBound < limit else { return false }
            if transfer.position < wanted.upperBound { return true }
            // One that has come to the end of the window is held, not given up; least of all where it can't be had again.
            guard isWindowed(wanted, of: reader) else { return false }
            return transfer.isSequential || transfer.position - wanted.upperBound < window / 2
        }
    }

    /// Who brings the byte at an offset.
    private enum Carriage {
        /// This transfer will, soon enough.
        case coming(TransferState)
        /// One that has been cut may yet; what it leaves is asked for when it is gone.
        case leaving
        /// This one would, much later, and nobody else wants what it brings: it has to make way first.
        case overtaken(TransferID)
        case none
    }

    private func carriage(of offset: Int64, to id: ReaderID) -> Carriage {
        var best: (id: TransferID, state: TransferState)?
        for (id, transfer) in transfers where !transfer.isStale {
            guard transfer.position <= offset, offset < transfer.end ?? .max else { continue }
            if transfer.isCut { return .leaving }
            if best.map({ transfer.position > $0.state.position }) ?? true { best = (id, transfer) }
        }
        guard let best else { return .none }
        let isWaiting = readers[id]?.ticket != nil
        // Only a reader that waits is worth a second request inside what is on its way.
        guard isWaiting, rangeSupport != .unsupported, offset - best.state.position > joinDistance else {
            return .coming(best.state)
        }
        return isWanted(best.id, best.state, besides: id) ? .none : .overtaken(best.id)
    }

    /// Where a request for the hole ends: it grows with its run and reaches into nothing that is there or coming.
    private func upperBound(of hole: Range<Int64>, wanted: Range<Int64>) -> Int64 {
        let lower = hole.lowerBound
        var size = policy.firstRequest
        if let run = runs.last(where: { $0.end == lower }) { size = run.nextSize }
        if let former = transfers.values.first(where: { $0.end == lower && !$0.isCut }) { size = grown(former.size) }
        var upper = lower + min(size, wanted.upperBound - lower)
        if upper < wanted.upperBound {
            upper = max(Block.roundDown(upper), min(blockEnd(at: lower), wanted.upperBound))
        }
        upper = min(upper, hole.upperBound)
        for transfer in transfers.values where !transfer.isStale && transfer.position > lower {
            upper = min(upper, Block.roundDown(transfer.position))
        }
        return upper
    }

    /// Where the transfer has to stop: at its end, or where landed bytes or another transfer begin.
    func limit(of id: TransferID, _ transfer: TransferState) -> Int64 {
        var limit = transfer.end ?? .max
        if !transfer.isSequential, transfer.position < limit {
            let hole = landed.firstHole(in: transfer.position..<limit)
            limit =
                hole.map { $0.lowerBound == transfer.position ? $0.upperBound : transfer.position }
                ?? transfer.position
        }
        for (other, state) in transfers
        where other != id && !state.isStale && state.isSequential == transfer.isSequential {
            if state.position > transfer.position { limit = min(limit, Block.roundDown(state.position)) }
            // Where they meet, the one that comes from behind ends; of two that begin together, the younger.
            let isFirst = transfer.hasLanded == state.hasLanded ? id < other : state.hasLanded
            if state.position == transfer.position, !isFirst { limit = min(limit, transfer.position) }
        }
        return max(limit, transfer.position)
    }

    /// Back-pressure: a transfer runs at most a window ahead of the readers that it serves, and one that only preloads
    /// does not run while a player waits.
    func mayGo(_ transfer: TransferState) -> Bool {
        if transfer.lacksSpace { return transfer.spaceTicket != ticket }
        if isClosing || needsValidation { return true }
        let isPlayerWaiting = readers.values.contains { $0.priority == .playback && $0.ticket != nil }
        var isServing = false
        for reader in readers.values {
            let wanted = wantedRange(of: reader)
            guard !wanted.isEmpty, wanted.lowerBound < transfer.end ?? .max else { continue }
            isServing = true
            if isPlayerWaiting, reader.priority == .preload { continue }
            if transfer.position < wanted.upperBound { return true }
        }
        return !isServing
    }

    func isNearlyDone(_ transfer: TransferState) -> Bool {
        guard let end = transfer.end, transfer.isStreaming || !isClosing else { return false }
        return end - transfer.position <= max(Self.inSockets, link.bytes(in: policy.drainTime) ?? 0)
    }

    /// About what the buffers of two sockets hold: so much has been sent, though it has not come yet.
    private static var inSockets: Int64 { 256 << 10 }

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

    func blockEnd(at offset: Int64) -> Int64 { Block.roundDown(offset) + Block.size }

    func grown(_ size: Int64) -> Int64 {
        min(max(size * 2, policy.firstRequest), policy.largestRequest)
    }
}
