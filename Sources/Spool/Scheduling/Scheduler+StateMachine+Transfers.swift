import ByteRanges
import SpoolStorage

// MARK: - State

extension Scheduler.StateMachine {
    struct TransferState {
        /// Where a transfer is in its life; in each it may end.
        enum Phase: Equatable {
            /// Its head has not come. → streaming, draining, stale
            case requesting(Interest)
            /// Its body flows, or would. → draining, stale
            case streaming(Interest, Flow)
            /// It has been cancelled. What has arrived of it lands, which takes a moment, and is asked for by no other.
            /// → stale
            case draining
            /// Its bytes belong to another generation, and none of them may land any more. → nothing
            case stale
        }

        /// Who wants what it brings.
        enum Interest: Equatable {
            /// A reader does. → drains, unwanted
            case wanted
            /// Nobody does; so little remains that it has been sent already, and is let in. → wanted
            case drains
            /// Nobody does; it is held, and cancelled when the timer fires. → wanted
            case unwanted(TimerID)
        }

        /// What it is for.
        enum Purpose: Equatable {
            /// Bytes are wanted.
            case bytes
            /// It asks whether what is stored still holds. → answered
            case validation
            /// It asked, and the origin has said.
            case answered
        }

        /// Whether it takes what the origin sends.
        enum Flow: Equatable {
            /// → held, lacksSpace
            case flowing
            /// It was told to hold, and not yet to resume. → flowing
            case held
            /// It holds until readers have moved on since this count of movements. → flowing
            case lacksSpace(movements: Int)
        }

        var phase = Phase.requesting(.wanted)
        /// Where the request begins, as it was asked.
        let start: Int64
        /// Offset of the next byte to land.
        var position: Int64
        /// Where it ends; nil: at the end of the body.
        var end: Int64?
        /// Where the request ends, as it was asked.
        let askedEnd: Int64?
        let size: Int64
        /// Who caused it.
        let reader: ReaderID
        let priority: Priority
        var purpose: Purpose
        /// The origin sends its whole body from the start; position runs through what has landed.
        var isSequential: Bool
        /// Bytes of it that were missing when they landed.
        var fresh: Int64 = 0
        var hasLanded = false
        /// The response does not begin with what was asked for.
        var isAstray = false
        /// The failed place that it tries once more.
        var place: FailedPlaces.Number?

        /// Whether it has been neither cancelled nor overtaken by another generation.
        var isLive: Bool {
            switch phase {
            case .requesting, .streaming: true
            case .draining, .stale: false
            }
        }

        var isStale: Bool { phase == .stale }

        var isValidation: Bool { purpose == .validation }

        var isStreaming: Bool { if case .streaming = phase { true } else { false } }

        var interest: Interest? {
            get {
                switch phase {
                case .requesting(let interest), .streaming(let interest, _): interest
                case .draining, .stale: nil
                }
            }
            set {
                guard let newValue else { return }
                switch phase {
                case .requesting: phase = .requesting(newValue)
                case .streaming(_, let flow): phase = .streaming(newValue, flow)
                case .draining, .stale: break
                }
            }
        }

        /// Nil unless it streams; a head may come before anybody asks for permission.
        var flow: Flow? {
            get { if case .streaming(_, let flow) = phase { flow } else { nil } }
            set { if case .streaming(let interest, _) = phase, let newValue { phase = .streaming(interest, newValue) } }
        }

        var isHeld: Bool {
            switch flow {
            case .held, .lacksSpace: true
            case .flowing, nil: false
            }
        }

        /// Whether nobody wants it, and more remains than is let in.
        var isUnwanted: Bool { if case .unwanted = interest { true } else { false } }
    }
}

// MARK: - Inputs

extension Scheduler.StateMachine {
    /// The transfer has a connection: whether it still may ask.
    ///
    /// While it waited for that, another may have been told that its place is to be left alone. And one that only
    /// preloads want may have waited until a player waits. It is given up then, and looked for anew when it may be.
    mutating func mayAsk(_ id: TransferID) -> (Bool, [Action]) {
        guard let transfer = transfers[id], transfer.isLive else { return (false, []) }
        guard isLeftAlone(transfer) || yields(transfer) else { return (true, []) }
        var actions: [Action] = []
        cancel(id, &actions)
        return (false, actions)
    }

    /// Whether only preloads want it, and a player waits.
    private mutating func yields(_ transfer: TransferState) -> Bool {
        transfer.priority == .preload && mustPreloadsYield && !isAwaited(transfer, by: .playback)
            && !demands.reaches(.takes, startingBefore: transfer.end ?? .max, beyond: transfer.position)
    }

    /// The head of a response has come: its bytes land from `offset`, and end before `end` if that is known.
    ///
    /// - Parameters:
    ///   - isWhole: The whole body comes, in place of the range that was asked for.
    ///   - isSequential: And the origin can't begin elsewhere.
    mutating func responseStarted(
        _ id: TransferID, at offset: Int64, end: Int64?, isWhole: Bool, isSequential: Bool
    ) -> [Action] {
        guard var transfer = transfers[id], !transfer.isStale else { return [] }
        if isSequential, !needsBody(beside: id) {
            var actions: [Action] = []
            discard(id, &actions)
            return actions + plan()
        }
        if case .requesting(let interest) = transfer.phase { transfer.phase = .streaming(interest, .flowing) }
        transfer.isSequential = isSequential
        // What it asked is answered, and it brings bytes all the same: from here on it is one like others.
        if transfer.purpose == .answered { transfer.purpose = .bytes }
        transfer.isAstray = !isWhole && transfer.purpose == .bytes && offset != transfer.start
        transfer.position = min(max(offset, 0), Block.offsetLimit)
        let end = end.map { max($0, transfer.position) }
        let former = (position: transfers[id]?.position ?? 0, end: transfer.end)
        transfer.end = isWhole ? end : (transfer.end.map { min($0, end ?? $0) } ?? end)
        transfers[id] = transfer
        // Whatever it was to bring and now does not has to come from elsewhere.
        enqueue(wanting: Range(from: Block.roundDown(former.position), to: transfer.position))
        enqueue(wanting: Range(from: transfer.end ?? .max, to: former.end ?? .max))
        extend(id)
        return plan()
    }

    /// Whether another whole body is of use: not where the one on its way will come to all that is waited for.
    private func needsBody(beside id: TransferID) -> Bool {
        let others = transfers.filter { $0.key != id && $0.value.isSequential && $0.value.isLive }
        guard let first = others.values.map(\.position).min() else { return true }
        return readers.values.contains { reader in
            guard reader.isWaiting, let demand = reader.demand else { return false }
            return landed.firstHole(in: demand.lower..<demand.takes).map { $0.lowerBound < first } ?? false
        }
    }

    /// What the transfer may do before it takes its next chunk.
    mutating func permission(_ id: TransferID) -> Permission {
        guard let transfer = transfers[id], !transfer.isStale else { return .stop }
        let limit = limit(of: id, transfer)
        if transfer.position >= limit { return .stop }
        if transfer.isSequential, landed.contains(Range(from: transfer.position, to: min(limit, length ?? .max))) {
            return .stop
        }
        if transfer.isLive, !mayProceed(transfer) {
            transfers[id]?.phase = .streaming(transfer.interest ?? .wanted, .held)
            return .hold
        }
        return .proceed(upTo: limit)
    }

    /// Bytes of the transfer have landed.
    mutating func landed(_ range: Range<Int64>, by id: TransferID, now: Duration) -> [Action] {
        let range = Range(from: range.addressable.lowerBound, to: min(range.addressable.upperBound, length ?? .max))
        guard !range.isEmpty, !(transfers[id]?.isStale ?? false) else { return [] }
        let fresh = missingByteCount(in: range)
        landed.insert(range)
        var actions: [Action] = []
        // Another whole body may now run as far as this one has come.
        var only: TransferID? = id
        if var transfer = transfers[id] {
            if transfer.isSequential { only = nil }
            transfer.position = max(transfer.position, range.upperBound)
            transfer.hasLanded = true
            transfer.fresh += fresh
            if let place = transfer.place, failures.hasProgressed(place, to: reached(by: transfer)) {
                transfer.place = nil
                removePlace(place, &actions)
            }
            transfers[id] = transfer
            extend(id)
        }
        wake(in: range, &actions)
        return actions + plan(only)
    }

    /// There was no room for the transfer's next bytes; it holds until a reader moves on, unless one waits for them.
    mutating func transferLacksSpace(_ id: TransferID) -> (Permission, [Action]) {
        guard mayLandMore(id), let transfer = transfers[id] else { return (.stop, []) }
        guard !isAwaited(id) else { return (.proceed(upTo: limit(of: id, transfer)), []) }
        var actions: [Action] = []
        if isClosing {
            cancel(id, &actions)
            return (.stop, actions)
        }
        transfers[id]?.phase = .streaming(transfer.interest ?? .wanted, .lacksSpace(movements: movements))
        return (.hold, plan())
    }

    /// The transfer is over: its last byte has landed, or it had been cancelled.
    ///
    /// One that brought too little to be called progress is counted as a failure of its place, or the same request
    /// might follow it for ever.
    mutating func transferEnded(_ id: TransferID, now: Duration) -> (Outcome, [Action]) {
        guard let transfer = transfers[id] else { return (.none, []) }
        if isBarren(id, transfer) { return transferRestarts(id, now: now) }
        var actions: [Action] = []
        finish(id, &actions)
        return (.none, actions + plan())
    }

    /// The transfer's response was of no use, but the same need may be asked for anew at once.
    mutating func transferRestarts(_ id: TransferID, now: Duration) -> (Outcome, [Action]) {
        transferFailed(id, .restart, now: now)
    }

    /// The transfer failed and may be tried again: no response, a cut body, a status such as 503.
    ///
    /// - Parameters:
    ///   - retryAfter: What the origin asks for (RFC 9110 §10.2.3); its place is not tried before, by nobody.
    ///   - jitter: From 0 to 1.
    mutating func transferInterrupted(
        _ id: TransferID, retryAfter: Duration?, jitter: Double, now: Duration
    ) -> (Outcome, [Action]) {
        transferFailed(id, .interruption(retryAfter: retryAfter, jitter: jitter), now: now)
    }

    /// The transfer failed in a way that no retry cures.
    ///
    /// - Parameter isPersonal: It is the credentials that were refused: other readers try with their own.
    mutating func transferRefused(
        _ id: TransferID, isPersonal: Bool, now: Duration
    ) -> (Outcome, [Action]) {
        transferFailed(id, .refusal(isPersonal: isPersonal), now: now)
    }

    /// The time of ``Action/setTimer(_:after:)`` has come; a timer that is out of date does nothing.
    mutating func timerFired(_ timer: TimerID, now: Duration) -> [Action] {
        var actions: [Action] = []
        for id in transfers.keys.sorted() where transfers[id]?.interest == .unwanted(timer) {
            cancel(id, &actions)
        }
        retryPlace(awaiting: timer, &actions)
        return actions + plan()
    }

    // MARK: - Questions

    /// Where the transfer is; nil if it is over.
    func position(of id: TransferID) -> Int64? { transfers[id]?.position }

    /// Whether bytes of the transfer may land no more.
    func isStale(_ id: TransferID) -> Bool { transfers[id]?.isStale ?? true }

    /// Whether the transfer has been given up, or is over.
    func isCancelled(_ id: TransferID) -> Bool { !(transfers[id]?.isLive ?? false) }

    /// Whether it has not been given up, and no other has gone ahead of it: one that waits for room looks again.
    func mayLandMore(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id], transfer.isLive else { return false }
        return transfer.position < limit(of: id, transfer)
    }

    /// Whether the transfer was told to hold, and not yet to resume.
    func isHeld(_ id: TransferID) -> Bool { transfers[id]?.isHeld ?? false }

    /// Whether the transfer asks if what is stored still holds.
    func isValidation(_ id: TransferID) -> Bool { transfers[id]?.isValidation ?? false }

    /// Whether the transfer can't be fetched in parts, and has no end or a later one than any range request.
    func isStream(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id], transfer.isStreaming, transfer.isSequential else { return false }
        guard let end = transfer.end ?? length else { return true }
        return end - transfer.position > policy.largestRequest
    }

    /// Whether somebody waits for bytes that the transfer brings next, or on its way.
    func isAwaited(_ id: TransferID) -> Bool { transfers[id].map { isAwaited($0, by: .preload) } ?? false }

    /// The same of players alone; also of a transfer that is over.
    func isAwaitedByPlayer(_ id: TransferID) -> Bool {
        transfers[id].map { isAwaited($0, by: .playback) } ?? true
    }

    /// Whether what has landed, or was handed to a reader, or what the origin is sending by its own word, ends exactly at
    /// `offset`.
    func reaches(_ offset: Int64) -> Bool {
        if offset > 0, readers.values.contains(where: { $0.hasRead && $0.position == offset }) { return true }
        let coming = transfers.values.filter { $0.isStreaming }.compactMap(\.end).max() ?? 0
        return offset > 0 && max(coming, landed.bounds?.upperBound ?? 0) == offset
    }

    /// As ``isAwaited(_:)``, by readers of at least this priority.
    func isAwaited(_ transfer: TransferState, by priority: Priority) -> Bool {
        if transfer.isValidation { return priority == .preload || expectantPlayers > 0 }
        // Whole blocks: who waits behind a hole in a block waits for what fills it.
        let range = Range(
            from: Block.roundDown(transfer.position), to: transfer.end.map { Block.end(at: $0.adding(-1)) } ?? .max)
        return waitingPlayback.contains(in: range) || (priority == .preload && waitingPreloads.contains(in: range))
    }

    /// Whether the transfer ended with next to nothing, although more was asked for and nobody else brings it.
    private func isBarren(_ id: TransferID, _ transfer: TransferState) -> Bool {
        guard transfer.isLive || transfer.isAstray, transfer.purpose != .answered else { return false }
        // Bytes from elsewhere may be new, but the same request would bring them again.
        if transfer.purpose == .bytes, reached(by: transfer) <= transfer.start, transfer.start < length ?? .max {
            return true
        }
        guard transfer.fresh < Block.size else { return false }
        let position = transfer.position
        guard transfer.hasLanded else { return true }
        guard position < min(transfer.askedEnd ?? .max, length ?? .max) else { return false }
        var asked = transfer
        asked.end = transfer.askedEnd
        return limit(of: id, asked) > position
    }

    /// Up to where the transfer has brought what it was asked for, or others have: an origin may send from elsewhere.
    func reached(by transfer: TransferState) -> Int64 {
        if transfer.isSequential { return transfer.position }
        guard let landed = landed.prefix(at: transfer.start) else { return transfer.start }
        return min(landed.upperBound, max(transfer.position, transfer.start))
    }

    private func missingByteCount(in range: Range<Int64>) -> Int64 {
        guard let hole = landed.firstHole(in: range) else { return 0 }
        let count = range.upperBound - range.lowerBound
        return hole == range ? count : count - landed.intersection(range).byteCount
    }
}

// MARK: - Ending

extension Scheduler.StateMachine {
    /// Gives a transfer up; what has arrived of it lands.
    mutating func cancel(_ id: TransferID, _ actions: inout [Action]) {
        guard transfers[id]?.isLive == true else { return }
        transfers[id]?.phase = .draining
        actions.append(.cancel(id))
        if rangeSupport == .unsupported { enqueue(wanting: 0..<Int64.max) }
    }

    /// Gives a transfer up, and nothing of it may land any more.
    mutating func discard(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers[id], !transfer.isStale else { return }
        cancel(id, &actions)
        transfers[id]?.phase = .stale
        enqueueHeirs(of: transfer)
    }

    /// Takes a transfer off the plan; what it leaves is looked for anew.
    mutating func finish(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = remove(id) else { return }
        if let place = transfer.place { removePlace(place, &actions) }
        enqueueHeirs(of: transfer)
    }

    /// Takes a transfer off the plan, and notes how much the next request from its end may ask.
    mutating func remove(_ id: TransferID) -> TransferState? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        runs.removeAll { $0.end == transfer.position }
        // One that brought nothing is no reason to ask for more next time.
        runs.append(Run(end: transfer.position, nextSize: transfer.hasLanded ? grown(transfer.size) : transfer.size))
        if runs.count > 16 { runs.removeFirst() }
        return transfer
    }

    /// Those that the transfer would have served look for another.
    mutating func enqueueHeirs(of transfer: TransferState) {
        if transfer.isSequential || rangeSupport == .unsupported {
            // Where bytes come in one sequence only, whoever is left may have to begin it anew.
            enqueue(wanting: 0..<Int64.max)
        } else {
            let upper = max(transfer.end ?? .max, transfer.position.adding(1))
            enqueue(wanting: Range(from: Block.roundDown(transfer.position), to: upper))
        }
        if transfer.isValidation { enqueueUnvalidated() }
    }

    /// Readers that wait for a validation have no demand by which they would be found.
    mutating func enqueueUnvalidated() {
        for id in readers.keys.sorted() where readers[id]?.mayUseStored == false { enqueue(id) }
    }
}
