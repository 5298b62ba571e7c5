package import ByteRanges

/// The state machine that decides which bytes of one resource are requested, when, and when a request is cancelled.
///
/// The planner does not use a clock, I/O or locks, and does not depend on the code that stores or sends the bytes. Each
/// input is a mutating function that returns actions, in order. The shell, which is the `Scheduler` in `Spool`,
/// performs them. Each input records an event in the ``Plan``, and lets the plan settle.
///
/// All inputs are in this file, because nothing else may change the plan: its setter is private to the file.
package struct Planner: ~Copyable {
    private(set) var plan: Plan

    /// - Parameter window: The size of the largest window, in bytes, if space is scarcer than the policy assumes.
    package init(policy: ReadAheadPolicy, retryPolicy: RetryPolicy, window: Int64) {
        plan = Plan(policy: policy, retryPolicy: retryPolicy, window: window)
    }
}

extension Planner {
    /// An estimate of the speed of the connection to the origin.
    package var link: LinkEstimate {
        get { plan.link }
        set { plan.link = newValue }
    }

    /// Records whether transfers for preloads pause for players.
    package mutating func setPreloadPermission(_ permission: PreloadPermission) -> [Action] {
        plan.preloadPermission = permission
        return plan.settle()
    }

    /// Limits the window to a capacity that is smaller than the policy's window. The limit is never raised.
    package mutating func limitWindow(to bytes: Int64) -> [Action] {
        plan.limitWindow(to: bytes)
        plan.readers.renewDemands(plan.readAhead)
        return plan.settle()
    }

    /// Records that bytes are stored in memory, which has space for a window of `bytes` bytes. If `bytes` is `nil`,
    /// bytes are stored on disk again.
    package mutating func setMemoryWindow(_ bytes: Int64?) -> [Action] {
        plan.memoryWindow = bytes.map { max($0, Block.size) }
        plan.readers.renewDemands(plan.readAhead)
        return plan.settle()
    }
}

// MARK: - Readers

extension Planner {
    /// Opens a reader for the bytes from `start` to `end`, or to the end of the resource if `end` is `nil`.
    ///
    /// - Parameters:
    ///   - usesStored: Whether the reader may use stored bytes even though other readers wait for a validation.
    ///   - ahead: The size of the first read-ahead.
    package mutating func openReader(
        at start: Int64, end: Int64?, priority: Priority, usesStored: Bool = false, ahead: ReadAheadStart = .full,
        now: Duration
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: plan.next())
        let start = max(start, 0)
        let reader = ReaderState(
            start: start, end: end.map { max($0, start) }, priority: priority,
            pace: ReadingPace(initial: plan.policy.initialRequestSize, start: ahead, now: now),
            mayUseStored: usesStored || !plan.needsValidation)
        plan.readers.insert(reader, as: id)
        plan.readers.renewDemand(of: id, plan.readAhead)
        plan.readers.enqueue(id)
        return (id, plan.settle())
    }

    /// Returns the bytes that a reader may read next, at most `limit` bytes, after it has read all bytes before
    /// `position`.
    ///
    /// A reader that has to wait is woken later.
    package mutating func pull(
        _ id: ReaderID, from position: Int64, limit: Int64, now: Duration
    ) -> (ReadDecision, [Action]) {
        let actions = advance(id, to: position, now: now)
        let (decision, more) = read(id, limit: limit, now: now)
        return (decision, actions + more)
    }

    mutating func advance(_ id: ReaderID, to position: Int64, now: Duration) -> [Action] {
        guard let reader = plan.readers[id], position > reader.position else { return [] }
        plan.readers.advance(id, to: position, now: now)
        plan.readers.renewDemand(of: id, plan.readAhead)
        plan.readers.enqueue(id)
        plan.recordMovement()
        return plan.settle()
    }

    mutating func read(_ id: ReaderID, limit: Int64, now: Duration) -> (ReadDecision, [Action]) {
        guard let reader = plan.readers[id] else { return (.end, []) }
        if reader.mayUseStored, let decision = plan.find(for: reader, limit: limit) {
            plan.readers.endWaiting(id)
            if case .stored = decision { plan.readers.recordRead(id) }
            // Transfers that yielded to the reader may continue, even if the reader never moves again.
            return (decision, reader.isWaiting ? plan.settle() : [])
        }
        if plan.isClosing {
            plan.readers.endWaiting(id)
            return (.closed, plan.settle())
        }
        guard !reader.isWaiting else { return (.wait, []) }
        var actions: [Action] = []
        if let failure = plan.failure(for: id, now: now, &actions) {
            return (.failed(failure), actions + plan.settle())
        }
        plan.readers.beginWaiting(id, ticket: plan.next())
        plan.reviewStatus(id, &actions)
        plan.readers.enqueue(id)
        plan.recordMovement()
        return (.wait, actions + plan.settle())
    }

    /// Returns the decision for a reader that needs its version. Once the version is known, the reader keeps it.
    ///
    /// - Parameter isDescribed: Whether there is a version.
    package mutating func describe(_ id: ReaderID, isDescribed: Bool, now: Duration) -> (HeadDecision, [Action]) {
        guard let reader = plan.readers[id] else { return (.gone, []) }
        let isEmpty = !isDescribed && reader.mayUseStored && plan.find(for: reader, limit: 1) != nil
        if isDescribed && reader.mayUseStored || isEmpty {
            plan.readers.endWaiting(id)
            if isDescribed { plan.readers.recordRead(id) }
            return (.described, reader.isWaiting ? plan.settle() : [])
        }
        let (decision, actions) = read(id, limit: 1, now: now)
        switch decision {
        case .failed(let failure): return (.failed(failure), actions)
        case .closed: return (.closed, actions)
        case .wait, .stored, .end, .unsatisfiable: return (.wait, actions)
        }
    }

    package mutating func closeReader(_ id: ReaderID) -> [Action] {
        guard plan.readers[id] != nil else { return [] }
        plan.readers.remove(id)
        plan.recordMovement()
        return plan.settle()
    }
}

// MARK: - Transfers

extension Planner {
    /// Returns whether a transfer that now has a connection may send its request, and the actions to perform.
    /// Otherwise, the transfer is cancelled, and is planned again once its request may be sent.
    ///
    /// The origin may have sent `Retry-After`, or only preloads may need the transfer while a player is waiting.
    package mutating func maySendRequest(_ id: TransferID) -> (Bool, [Action]) {
        guard let transfer = plan.transfers[id], transfer.isLive else { return (false, []) }
        guard plan.mustWaitAfterFailure(transfer) || yields(transfer) else { return (true, []) }
        var actions: [Action] = []
        plan.cancel(id, &actions)
        return (false, actions)
    }

    /// Returns whether the transfer is needed only by preloads while a player is waiting.
    private mutating func yields(_ transfer: TransferState) -> Bool {
        transfer.priority == .preload && plan.mustPreloadsYield && !plan.isAwaited(transfer, by: .playback)
            && !plan.readers.reaches(
                .storedEnd, startingBefore: transfer.end ?? .max, beyond: transfer.position, for: .playback)
    }

    /// Records that the headers of a response have been received, and that its body follows.
    package mutating func responseStarted(_ id: TransferID, _ body: ResponseBody) -> [Action] {
        let hasChanged = note(body.support)
        let actions = start(id, body)
        return actions + (hasChanged ? plan.reconsider() : plan.settle())
    }

    private mutating func start(_ id: TransferID, _ body: ResponseBody) -> [Action] {
        guard let previous = plan.transfers[id], !previous.isStale else { return [] }
        let isSequential = body.isWhole && rangeSupport == .unsupported
        if isSequential, !needsAnotherBody(than: id) {
            var actions: [Action] = []
            plan.discard(id, &actions)
            return actions
        }
        plan.transfers.update(id) { $0.respond(body, isSequential: isSequential) }
        guard let transfer = plan.transfers[id] else { return [] }
        // Bytes that the transfer was expected to receive, but will not, have to be requested again.
        plan.readers.enqueue(wanting: Range(from: Block.roundDown(previous.position), to: transfer.position))
        plan.readers.enqueue(wanting: Range(from: transfer.end ?? .max, to: previous.end ?? .max))
        plan.extend(id)
        return []
    }

    /// Returns what the transfer may do before it receives its next chunk.
    package mutating func permission(_ id: TransferID) -> Permission {
        guard let transfer = plan.transfers[id], !transfer.isStale else { return .stop }
        let limit = plan.transfers.limit(of: id, transfer, in: plan.stored)
        if transfer.position >= limit { return .stop }
        if transfer.isSequential, plan.stored.contains(Range(from: transfer.position, to: min(limit, length ?? .max))) {
            return .stop
        }
        if transfer.isLive, !plan.mayProceed(transfer) {
            plan.transfers.update(id) { $0.hold() }
            return .hold
        }
        return .proceed(upTo: limit)
    }

    /// Records that bytes of the transfer have been stored.
    package mutating func stored(_ range: Range<Int64>, by id: TransferID, now: Duration) -> [Action] {
        plan.recordStored(range, by: id)
    }

    /// Records that the origin rejected the transfer's request, perhaps because of its size. Returns whether to send a
    /// smaller one, after ``transferRestarts(_:now:)``.
    package mutating func requestRejected(_ id: TransferID) -> Bool {
        guard let transfer = plan.transfers[id], transfer.isLive else { return false }
        return plan.transfers.limitSize(after: transfer, areRangesSupported: rangeSupport == .supported)
    }

    /// Cancels a transfer for another request; see ``Plan/cancelForTurn(_:evenIfFlowing:)``. Returns whether it did.
    package mutating func cancelForTurn(_ only: TransferID?, evenIfFlowing: Bool) -> (Bool, [Action]) {
        plan.cancelForTurn(only, evenIfFlowing: evenIfFlowing)
    }

    /// Cancels all transfers if no reader is open. None of their bytes may be stored anymore.
    package mutating func discardTransfers() -> [Action] { plan.discardTransfers() }

    /// Records that there was no space for the transfer's next bytes. The transfer pauses until a reader moves on,
    /// unless a reader is waiting for these bytes.
    package mutating func transferLacksSpace(_ id: TransferID) -> (Permission, [Action]) {
        guard mayStoreMore(id), let transfer = plan.transfers[id] else { return (.stop, []) }
        guard !isAwaited(id) else {
            return (.proceed(upTo: plan.transfers.limit(of: id, transfer, in: plan.stored)), [])
        }
        if plan.isClosing {
            var actions: [Action] = []
            plan.cancel(id, &actions)
            return (.stop, actions)
        }
        let movements = plan.movements
        plan.transfers.update(id) { $0.holdForSpace(movements: movements) }
        return (.hold, plan.settle())
    }

    /// Records that the timer set by ``Action/setTimer(_:after:)`` has fired. An obsolete timer has no effect.
    package mutating func timerFired(_ timer: TimerID, now: Duration) -> [Action] {
        var actions: [Action] = []
        for id in plan.transfers.ids where plan.transfers[id]?.interest == .unwanted(timer) {
            plan.cancel(id, &actions)
        }
        plan.retryPlace(awaiting: timer, &actions)
        return actions + plan.settle()
    }
}

// MARK: - Ends of transfers

extension Planner {
    /// Records that the transfer has ended: its last byte was stored, or it was cancelled. An end after too few bytes
    /// counts as a failure. Otherwise, the same request might be repeated forever.
    package mutating func transferEnded(_ id: TransferID, now: Duration) -> (Outcome, [Action]) {
        guard let transfer = plan.transfers[id] else { return (.none, []) }
        if plan.transfers.isUnproductive(id, transfer, in: plan.stored) { return transferRestarts(id, now: now) }
        var actions: [Action] = []
        plan.finish(id, &actions)
        return (.none, actions + plan.settle())
    }

    /// Records that the transfer's response was not usable, but that the same bytes may be requested again immediately.
    package mutating func transferRestarts(_ id: TransferID, now: Duration) -> (Outcome, [Action]) {
        plan.transferFailed(id, .restart, now: now)
    }

    /// Records that the transfer failed and may be retried: no response, an incomplete body, or a status such as 503.
    ///
    /// - Parameters:
    ///   - retryAfter: The delay that the origin requests (RFC 9110 §10.2.3). Until it has passed, no reader requests
    ///     the place.
    ///   - jitter: A number from 0 to 1.
    package mutating func transferInterrupted(
        _ id: TransferID, retryAfter: Duration?, jitter: Double, now: Duration
    ) -> (Outcome, [Action]) {
        plan.transferFailed(id, .interruption(retryAfter: retryAfter, jitter: jitter), now: now)
    }

    /// Records that the transfer failed, and that a retry would also fail.
    ///
    /// - Parameter isCredentialFailure: Whether the credentials were rejected. Other readers try their own credentials.
    package mutating func transferRefused(
        _ id: TransferID, isCredentialFailure: Bool, now: Duration
    ) -> (Outcome, [Action]) {
        plan.transferFailed(id, .refusal(isCredentialFailure: isCredentialFailure), now: now)
    }
}

// MARK: - Stored bytes and versions

extension Planner {
    /// Records that the stored version has been opened.
    package mutating func opened(storedRanges: ByteRangeSet, length: Int64?, needsValidation: Bool) -> [Action] {
        plan.stored = StoredRanges(storedRanges, length: length)
        plan.needsValidation = needsValidation
        plan.allowStored(!needsValidation)
        return plan.reconsider()
    }

    /// Requires a validation for readers that are opened later. Open readers continue.
    package mutating func requireValidation() -> [Action] {
        plan.needsValidation = true
        return []
    }

    /// Records that the stored version is current, or may be used as if it were.
    package mutating func validated() -> [Action] {
        var actions: [Action] = []
        plan.endValidation(&actions)
        return actions + plan.reconsider()
    }

    /// Records the total length of the resource.
    ///
    /// - Returns: `false`, and changes nothing, if bytes of a different version are stored beyond the length.
    package mutating func recordLength(_ length: Int64) -> (isPlausible: Bool, actions: [Action]) {
        if self.length == length { return (true, []) }
        guard plan.stored.setLength(length) else { return (false, []) }
        return (true, plan.reconsider())
    }

    /// Records that the origin supports range requests.
    package mutating func recordRangeSupport() -> [Action] { note(.supported) ? plan.reconsider() : [] }

    /// Records that the origin ignores range requests, or parts of its responses can't be combined.
    package mutating func recordMissingRangeSupport() -> [Action] { note(.unsupported) ? plan.reconsider() : [] }

    /// Records the origin's support for ranges, and returns whether it has changed.
    private mutating func note(_ support: RangeSupport?) -> Bool {
        guard let support, plan.rangeSupport != support else { return false }
        plan.rangeSupport = support
        if support == .unsupported {
            for id in plan.transfers.ids { plan.transfers.update(id) { $0.recordMissingRangeSupport() } }
        }
        return true
    }

    /// Records that another version has become current.
    ///
    /// - Parameters:
    ///   - kept: The transfer that receives the bytes of that version, or `nil` if there is none.
    ///   - body: The body that this transfer receives. Without it, the planner would request some of its bytes again.
    /// - Returns: The removed readers of the previous version, and the actions to perform.
    package mutating func generationChanged(
        length: Int64?, keeping kept: TransferID?, body: ResponseBody? = nil
    ) -> (left: [ReaderID], actions: [Action]) {
        plan.stored = StoredRanges(length: length)
        plan.transfers.forgetRuns()
        let left = plan.readers.ids.filter { plan.readers[$0]?.hasRead == true }
        for id in left { plan.readers.remove(id) }
        var actions: [Action] = []
        plan.endValidation(&actions)
        for id in plan.transfers.ids where id != kept { plan.discard(id, &actions) }
        if let kept {
            plan.transfers.update(kept) { $0.skipToBlock() }
            if let body {
                _ = note(body.support)  // The plan is reconsidered below.
                actions += start(kept, body)
            }
        }
        return (left, actions + plan.reconsider())
    }

    /// Handles a response that may not belong to the current version, while other transfers fetch that version.
    ///
    /// The readers of that version continue, and no byte of the response may be stored.
    ///
    /// - Returns: The removed readers, whose bytes only this response contains, and the actions to perform. The result
    ///   is `nil` if no reader needs another transfer, so that the response may start a new version.
    package mutating func handleUnconfirmedResponse(_ id: TransferID) -> (left: [ReaderID], actions: [Action])? {
        guard let transfer = plan.transfers[id] else { return nil }
        // No reader needs the response of a cancelled transfer.
        guard transfer.isLive else { return ([], []) }
        guard isFeeding(except: id) else { return nil }
        let left = plan.readers.ids.filter { plan.readers[$0].map { isServed($0, onlyBy: id) } ?? false }
        for id in left { plan.readers.remove(id) }
        var actions: [Action] = []
        if transfer.isValidation { plan.endValidation(&actions) }
        // Parts of several responses can't be combined.
        _ = note(.unsupported)
        return (left, actions + plan.reconsider())
    }

    /// Records that a transfer has started a new version, and receives only `range` of that version.
    ///
    /// - Returns: The removed readers, which need other bytes, and the actions to perform.
    package mutating func partStarted(_ range: Range<Int64>, length: Int64?) -> (left: [ReaderID], actions: [Action]) {
        let left = plan.readers.ids.filter { id in
            plan.readers[id].map { !$0.isServed(by: range, length: length) } ?? false
        }
        for id in left { plan.readers.remove(id) }
        return (left, plan.settle())
    }

    /// Records that stored bytes were damaged and have been discarded.
    package mutating func invalidated(_ range: Range<Int64>) -> [Action] {
        let range = range.addressable
        guard !range.isEmpty else { return [] }
        plan.stored.remove(range)
        var actions: [Action] = []
        plan.requestAgain(range, &actions)
        return actions + plan.settle()
    }

    // MARK: - Eviction

    /// Chooses stored bytes to evict, outside every reader's window. The chosen bytes then count as missing.
    ///
    /// No transfer starts or stores bytes in these ranges before the store has evicted them.
    ///
    /// - Parameters:
    ///   - count: The number of bytes, which is rounded up to whole blocks.
    ///   - place: The bytes to choose from, or `nil` for all stored bytes.
    ///   - positions: The positions of readers that have moved on without reporting it.
    package mutating func offerEvictable(
        _ count: Int64, within place: ByteRangeSet? = nil, positions: [ReaderID: Int64] = [:]
    ) -> [Range<Int64>] {
        var protected: [Range<Int64>] = []
        var foremost: Int64 = 0
        let readAhead = plan.readAhead
        for id in plan.readers.ids {
            if let position = positions[id], let reader = plan.readers[id], !reader.isWaiting,
                position > reader.position
            {
                plan.readers.pass(id, to: position)
                plan.readers.renewDemand(of: id, readAhead)
                plan.readers.enqueue(id)
            }
            guard let reader = plan.readers[id] else { continue }
            foremost = max(foremost, min(reader.position, Block.offsetLimit))
            protected.append(readAhead.protectedRange(of: reader))
        }
        for transfer in plan.transfers.states where !transfer.isStale {
            protected.append(Block.roundDown(transfer.position)..<Block.end(at: transfer.position))
        }
        return plan.stored.evict(count, within: place, except: protected, foremost: foremost)
    }

    /// Records that the store has evicted the ranges that ``offerEvictable(_:within:positions:)`` returned, except for
    /// `kept`, which was still in use.
    package mutating func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet) -> [Action] {
        var actions: [Action] = []
        for range in ranges.map(\.addressable) where !range.isEmpty {
            for remaining in plan.stored.endEviction(of: range, except: kept) { plan.wake(in: remaining, &actions) }
            plan.requestAgain(range, &actions)
        }
        // If nothing was evicted, there is no more space than before, and another attempt would offer the same ranges.
        if ranges.contains(where: { !kept.contains($0.addressable) }) { plan.recordMovement() }
        return actions + plan.settle()
    }

    // MARK: - Closing

    /// Records that the shell is closing. No more transfers start, and running ones are cancelled unless they are
    /// nearly done.
    package mutating func close() -> [Action] {
        plan.isClosing = true
        var actions: [Action] = []
        plan.wakeConcerned(&actions)
        plan.readers.clearQueue()
        for id in plan.transfers.ids {
            guard let transfer = plan.transfers[id], transfer.isLive else { continue }
            guard transfer.isStreaming, transfer.isNearlyDone else {
                plan.cancel(id, &actions)
                continue
            }
            plan.transfers.update(id) { $0.note(.drains) }
            plan.resume(id, &actions)
        }
        return actions
    }

    /// Cancels the transfers that were nearly done when closing started, because they have taken too long.
    package mutating func cancelAll() -> [Action] {
        guard plan.isClosing else { return [] }
        var actions: [Action] = []
        for id in plan.transfers.ids { plan.cancel(id, &actions) }
        return actions
    }

    /// Records that a closing resource is opened again.
    package mutating func reopen() -> [Action] {
        guard plan.isClosing else { return [] }
        plan.isClosing = false
        for id in plan.readers.ids { plan.readers.enqueue(id) }
        return plan.settle()
    }
}
