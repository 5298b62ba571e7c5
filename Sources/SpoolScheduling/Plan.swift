import ByteRanges

/// The plan of the requests for the readers of one resource. It decides which transfers pause and which are cancelled.
///
/// The plan is incremental. Each change adds the affected readers to the queue of the ``ReaderTable``. Then
/// ``settle(_:)`` reviews transfers and finds requests for those readers, until nothing changes. A planner that
/// examined everything after each change would make the same decisions. Tests compare the plan with such a planner.
struct Plan: ~Copyable {
    typealias Action = Planner.Action
    typealias Outcome = Planner.Outcome
    typealias ReadDecision = Planner.ReadDecision

    var stored = StoredRanges()
    var readers = ReaderTable()
    var transfers: TransferTable
    var failures = FailedRanges()
    var rangeSupport = RangeSupport.unknown
    /// Whether readers that are opened later wait until the origin has validated the stored bytes.
    var needsValidation = false
    var isClosing = false
    /// An estimate of the speed of the connection to the origin.
    var link = LinkEstimate()
    /// The coordinator's decision about preloads while players are waiting.
    var preloadPermission = PreloadPermission.free
    /// Whether preloads had to yield when the transfers were last reviewed.
    private var didPreloadsYield = false
    let policy: ReadAheadPolicy
    let retryPolicy: RetryPolicy
    /// The size of the largest window, in bytes. If space is scarce, this is less than the policy's maximum read-ahead.
    private(set) var window: Int64
    /// The size of the largest window while bytes are stored in memory; `nil` if they are stored on disk.
    var memoryWindow: Int64?
    private var counter = 0
    /// The number of events that may have freed space for a transfer waiting for space.
    private(set) var movements = 0

    /// - Parameter window: The size of the largest window, in bytes, if space is scarcer than the policy assumes.
    init(policy: ReadAheadPolicy, retryPolicy: RetryPolicy, window: Int64) {
        self.policy = policy.clamped
        self.retryPolicy = retryPolicy.clamped
        self.window = min(max(window, Block.size), 1 << 40)
        transfers = TransferTable(self.policy)
    }

    /// Returns a number that has not been returned before. These numbers order readers, transfers, tickets, timers and
    /// failures by age.
    mutating func next() -> Int {
        counter += 1
        return counter
    }

    /// Records that a reader has moved on, or that space was freed in another way. Transfers that lack space try again.
    mutating func recordMovement() { movements += 1 }

    mutating func limitWindow(to bytes: Int64) { window = min(window, max(bytes, Block.size)) }

    /// Returns whether the transfer must not be sent now, because of a failure since it was planned.
    func mustWaitAfterFailure(_ transfer: TransferState) -> Bool {
        readers[transfer.reader].map { failures.mustWaitAfterFailure(transfer, for: $0) } ?? false
    }

    var readAhead: ReadAhead {
        ReadAhead(
            initialRequestSize: policy.initialRequestSize,
            largestWindow: min(policy.maximumReadAhead, window, memoryWindow ?? .max),
            inTransit: link.bytesInTransit, length: stored.length)
    }

    /// Whether a playback reader is waiting for bytes that may be received now, rather than after a retry.
    var isPlaybackWaiting: Bool { readers.expectantPlayers > 0 }

    /// Whether transfers that are needed only by preloads are paused, and no new ones start.
    ///
    /// If a player of this resource is waiting, this applies immediately. The coordinator also considers that player,
    /// and limits the duration of the pause.
    var mustPreloadsYield: Bool {
        switch preloadPermission {
        case .free: isPlaybackWaiting
        case .held: true
        case .allowed: false
        }
    }

    /// Reviews transfers and finds requests for readers until nothing changes. Every input ends with a call to this
    /// function.
    ///
    /// - Parameter only: The only transfer whose part of the plan can have changed; `nil` for all transfers.
    mutating func settle(_ only: TransferID? = nil) -> [Action] {
        var actions: [Action] = []
        var only = only
        // Cancelling a transfer in favor of another one causes another round. Each round leaves fewer readers waiting.
        for _ in 0..<8 {
            if didPreloadsYield != mustPreloadsYield { only = nil }
            didPreloadsYield = mustPreloadsYield
            if !isClosing { for id in only.map({ [$0] }) ?? transfers.ids { review(id, &actions) } }
            let before = actions.count
            serveQueue(&actions)
            if actions.count == before, didPreloadsYield == mustPreloadsYield { break }
            only = nil
        }
        return actions
    }

    // MARK: Transfers

    /// Determines whether readers need a transfer. Resumes the transfer if it is paused and may continue.
    private mutating func review(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers[id], transfer.isLive else { return }
        let limit = transfers.limit(of: id, transfer, in: stored)
        if isWanted(transfer, limit: limit) {
            transfers.update(id) { $0.note(.wanted) }
        } else if limit < transfer.end ?? .max, !transfer.isSequential {
            // Another transfer has started ahead of this one, so bytes would be sent twice.
            return cancel(id, &actions)
        } else if transfer.isNearlyDone {
            transfers.update(id) { $0.note(.drains) }
        } else if !transfer.isUnwanted {
            let timer = TimerID(number: next())
            transfers.update(id) { $0.note(.unwanted(timer)) }
            // A body that can't be requested in parts would have to be sent again from its first byte.
            let delayFactor = transfer.isSequential ? ReadAheadPolicy.cancellationFactorWithoutRanges : 1
            actions.append(.setTimer(timer, after: policy.cancellationDelay * delayFactor))
        }
        guard let reviewed = transfers[id], reviewed.isHeld else { return }
        if mayProceed(reviewed) || reviewed.position >= limit { resume(id, &actions) }
    }

    mutating func resume(_ id: TransferID, _ actions: inout [Action]) {
        guard transfers[id]?.isHeld == true else { return }
        transfers.update(id) { $0.resume() }
        actions.append(.resume(id))
    }

    /// Returns whether a reader needs bytes that the transfer receives before `limit`.
    private mutating func isWanted(
        _ transfer: TransferState, limit: Int64, except reader: ReaderID? = nil
    ) -> Bool {
        if transfer.isValidation { return true }
        // Up to half a window past the end of a window, the transfer is paused rather than cancelled. A sequential or
        // open-ended transfer is paused at any distance.
        return readers.reaches(
            transfer.isSequential || transfer.isOpenEnded ? .retainedBodyEnd : .retainedEnd, startingBefore: limit,
            beyond: transfer.position, except: reader)
    }

    /// Returns whether the transfer may receive more bytes. Due to back-pressure, the transfer is at most a window
    /// ahead of its readers. A transfer that is needed only by preloads is paused while a player is waiting.
    mutating func mayProceed(_ transfer: TransferState) -> Bool {
        if case .lacksSpace(let count) = transfer.flow, count == movements { return false }
        if isClosing || transfer.isValidation { return true }
        switch transfer.interest {
        case .drains: return true
        case .unwanted, nil: return false
        case .wanted: break
        }
        return readers.reaches(
            .storedEnd, startingBefore: transfer.end ?? .max, beyond: transfer.position,
            for: mustPreloadsYield ? .playback : .preload)
    }

    /// Records that the transfer is closer to its end. Shortly before the transfer ends, the bytes after its end are
    /// requested.
    mutating func extend(_ id: TransferID) {
        guard let transfer = transfers[id], transfer.isLive, let end = leadEnd(of: transfer) else { return }
        // The reader that caused the transfer is served first, if it needs the next bytes.
        if let demand = readers[transfer.reader]?.demand, demand.lower <= end, end < demand.requestedEnd {
            return readers.enqueue(transfer.reader)
        }
        if let next = readers.furthest(.requestedEnd, startingBefore: end.adding(1), beyond: end) {
            readers.enqueue(next)
        }
    }

    /// Returns the end of the transfer, if it is close enough for the next request to be sent.
    ///
    /// Bytes can be stored only at the start of a block, or directly after its stored bytes. Inside a block, nothing
    /// can be requested in advance.
    private func leadEnd(of transfer: TransferState) -> Int64? {
        let lead = max(Block.size, link.bytes(inRoundTrips: 2) ?? TransferState.socketBuffers)
        guard let end = transfer.end, end % Block.size == 0, end - transfer.position <= lead else { return nil }
        return end
    }

    /// Records that bytes of the transfer have been stored.
    mutating func recordStored(_ range: Range<Int64>, by id: TransferID) -> [Action] {
        let range = stored.bounded(range)
        guard !range.isEmpty, !(transfers[id]?.isStale ?? false) else { return [] }
        let fresh = stored.insert(range)
        var actions: [Action] = []
        transfers.update(id) { $0.store(range, fresh: fresh) }
        let transfer = transfers[id]
        if let transfer {
            let reached = transfers.reached(by: transfer, in: stored)
            if let place = transfer.place, failures.hasProgressed(place, to: reached) {
                transfers.update(id) { $0.forgetPlace() }
                removePlace(place, &actions)
            }
            extend(id)
        }
        wake(in: range, &actions)
        // Another whole body may now be received up to the end of this one.
        return actions + settle(transfer?.isSequential == true ? nil : id)
    }

    // MARK: Readers

    /// Finds requests for the readers in the queue, in order, until no more transfers may start.
    private mutating func serveQueue(_ actions: inout [Action]) {
        guard !isClosing else { return }
        for line in ReaderQueue.Line.allCases {
            if line == .waitingPreload || line == .preload, mustPreloadsYield { return }
            while let id = readers.next(of: line) {
                if serve(id, &actions) { continue }
                readers.enqueue(id)
                // A waiting reader that can't be served blocks all later readers. Other readers block only their own
                // line.
                if line == .waitingPlayback || line == .waitingPreload { return }
                break
            }
        }
    }

    /// Requests the first missing bytes that the reader needs, and the bytes after a transfer that is about to end.
    ///
    /// - Returns: `false` if no more transfers may start, and no transfer can be cancelled for the reader.
    private mutating func serve(_ id: ReaderID, _ actions: inout [Action]) -> Bool {
        guard let reader = readers[id] else { return true }
        guard reader.mayUseStored else { return validate(for: id, reader, &actions) }
        guard let demand = reader.demand else { return true }
        var cursor = demand.lower
        for _ in 0..<2 {
            guard cursor < demand.storedEnd, let missing = stored.firstMissingRange(in: cursor..<demand.storedEnd),
                !stored.isEvicting(missing.lowerBound), !isBlocked(missing.lowerBound, for: id, reader)
            else { return true }
            switch coverage(of: missing.lowerBound, for: id, reader) {
            case .inProgress(let carrier):
                guard let end = leadEnd(of: carrier) else { return true }
                cursor = end
                continue
            case .ending: return true
            case .tooFarAhead(let previous):
                cancel(previous, &actions)
                return true
            case .none: break
            }
            let isNeeded = reader.isWaiting && cursor == demand.lower
            if rangeSupport == .unsupported {
                // One transfer of the whole body is enough for all readers. The exception is a reader that waits for
                // bytes before the transfer's position that are no longer stored.
                guard isNeeded || transfers.liveCount == 0 else { return true }
            }
            // Read-ahead waits until half a window is missing. Bytes that only complete the last block of a range are
            // not worth a request.
            if missing.lowerBound >= demand.requestedEnd, rangeSupport != .unsupported || !demand.isWindowed {
                return true
            }
            guard reserveDescriptor(for: reader.priority, isNeeded: isNeeded, &actions) else {
                // While the first request is in progress, a second request may be sent later.
                return cursor > demand.lower
            }
            let isWhole = rangeSupport == .unsupported
            let lower = isWhole ? 0 : missing.lowerBound
            let upper = isWhole ? nil : upperBound(of: missing, demand, for: reader)
            if upper.map({ $0 > lower }) ?? true { start(at: lower, upper: upper, for: id, reader, &actions) }
            return true
        }
        return true
    }

    /// Returns the end of a request for a missing range; `nil` for the end of the resource.
    ///
    /// Until a response has proved which version the origin sends, the bytes of two responses may not belong together.
    /// The first request therefore includes all bytes that its reader wants, and back-pressure limits the read-ahead.
    private func upperBound(of missing: Range<Int64>, _ demand: Demand, for reader: ReaderState) -> Int64? {
        if transfers.takesTurns, demand.isWindowed, let end = [reader.end, stored.length].compactMap({ $0 }).min() {
            let rest = stored.firstMissingRange(in: missing.lowerBound..<max(end, missing.upperBound))
            return transfers.longUpperBound(of: rest ?? missing, takes: demand.storedEnd, in: stored)
        }
        guard isUnknown, demand.isWindowed, !transfers.hasOpenEndLimit else {
            return transfers.upperBound(of: missing, takes: demand.storedEnd, in: stored)
        }
        return reader.end.map { max(Block.roundUp(min($0, Block.offsetLimit)), demand.storedEnd) }
    }

    /// Whether there is no version of the resource, and none is being requested.
    private var isUnknown: Bool {
        stored.length == nil && stored.ranges.isEmpty && !transfers.contains(except: nil) { !$0.isStale }
    }

    /// Requests a validation of the stored bytes, unless one is in progress.
    private mutating func validate(for id: ReaderID, _ reader: ReaderState, _ actions: inout [Action]) -> Bool {
        guard reader.isWaiting, needsValidation else { return true }
        guard !transfers.states.contains(where: { $0.isValidation && !$0.isStale }) else { return true }
        guard !isBlocked(nextMissingRange(of: reader), for: id, reader) else { return true }
        guard reserveDescriptor(for: reader.priority, isNeeded: true, &actions) else { return false }
        let upper = rangeSupport == .unsupported ? nil : min(Block.size, max(stored.length ?? Block.size, 1))
        start(at: 0, upper: upper, isValidation: true, for: id, reader, &actions)
        return true
    }

    private mutating func start(
        at lower: Int64, upper: Int64?, isValidation: Bool = false, for reader: ReaderID, _ state: ReaderState,
        _ actions: inout [Action]
    ) {
        let id = TransferID(number: next())
        let isSequential = rangeSupport == .unsupported
        let place = failures.retried(
            at: lower, isSequential: isSequential, isValidation: isValidation, except: retriedPlaces)
        transfers.begin(
            id, at: lower, upper: upper, isSequential: isSequential, for: reader, priority: state.priority,
            isValidation: isValidation, retrying: place)
        actions.append(.start(id, lower: lower, upper: upper, for: reader))
        guard !isValidation, let upper else { return }
        // A transfer that would have passed this range now ends where the range starts.
        let passing = transfers.states.filter { !$0.isStale && !$0.isSequential && $0.position < lower }
        if let end = passing.map({ $0.end ?? .max }).max(), end > upper { readers.enqueue(wanting: upper..<end) }
    }

    /// Returns whether one more transfer may start. If necessary, cancels another one for a waiting reader.
    private mutating func reserveDescriptor(for priority: Priority, isNeeded: Bool, _ actions: inout [Action]) -> Bool {
        guard transfers.liveCount >= policy.maximumConcurrentRequests else { return true }
        guard isNeeded, let idle = idleTransfer(for: priority) else { return false }
        cancel(idle, &actions)
        return true
    }

    /// Returns a transfer that may be cancelled for a waiting reader: one that is paused, or that no reader needs.
    private mutating func idleTransfer(for priority: Priority) -> TransferID? {
        for id in transfers.ids {
            guard let transfer = transfers[id], transfer.isLive, !isAwaited(transfer, by: priority) else { continue }
            if !mayProceed(transfer) || (transfer.interest == .drains && !transfer.isSequential) { return id }
        }
        return nil
    }

    /// The way in which the byte at an offset is fetched.
    private enum Coverage {
        /// This transfer receives the byte soon enough.
        case inProgress(TransferState)
        /// A transfer that is about to end may receive the byte. The bytes that it does not deliver are requested after
        /// that.
        case ending
        /// This transfer receives the byte much later, and no other reader needs its bytes. It has to be cancelled
        /// first.
        case tooFarAhead(TransferID)
        case none
    }

    private mutating func coverage(of offset: Int64, for id: ReaderID, _ reader: ReaderState) -> Coverage {
        switch transfers.carrier(of: offset, in: stored) {
        case .none: return .none
        case .ending: return .ending
        case .transfer(let carrier, let transfer):
            // Bytes that are being fetched are requested a second time only for a waiting reader.
            guard reader.isWaiting, rangeSupport != .unsupported, offset - transfer.position > joinDistance else {
                return .inProgress(transfer)
            }
            let limit = transfers.limit(of: carrier, transfer, in: stored)
            return isWanted(transfer, limit: limit, except: id) ? .none : .tooFarAhead(carrier)
        }
    }

    /// The distance up to which a waiting reader joins a transfer instead of starting its own.
    ///
    /// The distance is the number of bytes received in ``ReadAheadPolicy/drainTimeout``. Within that distance, the
    /// first request receives the bytes before a second one would help. Before the first measurement, readers wait for
    /// the first request, which is small.
    private var joinDistance: Int64 {
        max(
            TransferState.socketBuffers, link.bytes(inRoundTrips: 2) ?? 0,
            link.bytes(in: policy.drainTimeout) ?? policy.initialRequestSize)
    }
}

// MARK: - Readers

extension Plan {
    /// Returns the stored bytes at the reader's position, or the end; `nil` if the reader has to wait.
    func find(for reader: ReaderState, limit: Int64) -> ReadDecision? {
        if let length = stored.length, reader.start >= length, reader.start > 0 {
            return .unsatisfiable(length: length)
        }
        if reader.start >= Block.offsetLimit { return .unsatisfiable(length: stored.length ?? Block.offsetLimit) }
        let readAhead = readAhead
        let bound = readAhead.bound(of: reader)
        if reader.position >= bound { return .end }
        guard let found = stored.prefix(at: reader.position) else { return nil }
        let run = min(found.upperBound, bound)
        let upper = reader.position + min(run - reader.position, max(limit, 1))
        let free = readAhead.freeUntil(of: reader, run: run, isFetched: run < bound && transfers.fetches(run))
        return .stored(reader.position..<upper, freeUntil: max(upper, free))
    }

    /// Wakes all readers that are waiting for a byte in `range`.
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
                reviewStatus(id, &actions)
            }
        }
    }

    /// Sets whether readers may use stored bytes, or must wait until the origin has validated them.
    mutating func allowStored(_ mayUse: Bool) {
        // A transfer that did not find space tries again, because a reader may now wait for its bytes.
        if readers.allowStored(mayUse) { recordMovement() }
    }

    func lacksBytes(_ reader: ReaderState) -> Bool {
        let bound = readAhead.bound(of: reader)
        return reader.position < bound && !stored.contains(reader.position..<bound)
    }

    /// Plans again after a change that may affect every reader.
    mutating func reconsider() -> [Action] {
        var actions: [Action] = []
        readers.renewDemands(readAhead)
        wakeConcerned(&actions)
        return actions + settle()
    }

    /// Plans again for the readers that want a range whose bytes are no longer stored.
    mutating func requestAgain(_ range: Range<Int64>, _ actions: inout [Action]) {
        for id in transfers.headless(in: range, of: stored) { discard(id, &actions) }
        readers.enqueue(wanting: range)
    }

    /// Records that all readers may use stored bytes, and that validations in progress are no longer needed.
    mutating func endValidation(_ actions: inout [Action]) {
        needsValidation = false
        allowStored(true)
        for id in transfers.ids { transfers.update(id) { $0.recordAnswered() } }
        endValidationPlaces(&actions)
    }
}

// MARK: - Transfers

extension Plan {
    /// Returns whether a reader of at least this priority is waiting for bytes that the transfer receives.
    func isAwaited(_ transfer: TransferState, by priority: Priority) -> Bool {
        if transfer.isValidation { return priority == .preload || isPlaybackWaiting }
        // The range consists of whole blocks, because a reader also waits for missing bytes in its block that precede
        // its position.
        let range = Range(
            from: Block.roundDown(transfer.position), to: transfer.end.map { Block.end(at: $0.adding(-1)) } ?? .max)
        return readers.isWaiting(in: range, for: priority)
    }

    /// Cancels a transfer. Bytes that have been received are still stored.
    mutating func cancel(_ id: TransferID, _ actions: inout [Action]) {
        guard transfers[id]?.isLive == true else { return }
        transfers.update(id) { $0.cancel() }
        actions.append(.cancel(id))
        if rangeSupport == .unsupported { readers.enqueue(wanting: 0..<Int64.max) }
    }

    /// Cancels a transfer, none of whose bytes may be stored anymore.
    mutating func discard(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers[id], !transfer.isStale else { return }
        cancel(id, &actions)
        transfers.update(id) { $0.discard() }
        enqueueSuccessors(of: transfer)
    }

    /// Removes a transfer. The bytes that it did not deliver are requested again.
    mutating func finish(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers.remove(id) else { return }
        if let place = transfer.place { removePlace(place, &actions) }
        enqueueSuccessors(of: transfer)
    }

    /// Plans again for the readers that the transfer would have served.
    mutating func enqueueSuccessors(of transfer: TransferState) {
        if transfer.isSequential || rangeSupport == .unsupported {
            // If bytes can only be received in sequence, the readers may have to start the body again.
            readers.enqueue(wanting: 0..<Int64.max)
        } else {
            let upper = max(transfer.end ?? .max, transfer.position.adding(1))
            readers.enqueue(wanting: Range(from: Block.roundDown(transfer.position), to: upper))
        }
        if transfer.isValidation { readers.enqueueUnvalidated() }
    }
}
