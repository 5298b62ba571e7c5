import SpoolStorage

// MARK: - Transfers

extension Scheduler.StateMachine {
    /// The transfer has a connection. Returns whether it may still send its request.
    ///
    /// While it waited, the origin may have sent `Retry-After`, or a player may have started to wait while only preloads
    /// want its bytes. It is cancelled then, and planned again when it may be sent.
    mutating func mayAsk(_ id: TransferID) -> (Bool, [Action]) {
        guard let transfer = transfers[id], transfer.isLive else { return (false, []) }
        let isLeftAlone = readers[transfer.reader].map { failures.isLeftAlone(transfer, for: $0) } ?? false
        guard isLeftAlone || yields(transfer) else { return (true, []) }
        var actions: [Action] = []
        cancel(id, &actions)
        return (false, actions)
    }

    /// Whether only preloads want it, and a player waits.
    private mutating func yields(_ transfer: TransferState) -> Bool {
        transfer.priority == .preload && mustPreloadsYield && !isAwaited(transfer, by: .playback)
            && !readers.reaches(
                .takes, startingBefore: transfer.end ?? .max, beyond: transfer.position, for: .playback)
    }

    /// The headers of a response have been received. Its bytes are stored from `offset` on, and before `end` if that is
    /// known.
    ///
    /// - Parameters:
    ///   - isWhole: Whether the response has the whole body instead of the requested range.
    ///   - isSequential: Whether it does because the origin supports no ranges.
    mutating func responseStarted(
        _ id: TransferID, at offset: Int64, end: Int64?, isWhole: Bool, isSequential: Bool
    ) -> [Action] {
        guard let previous = transfers[id], !previous.isStale else { return [] }
        if isSequential, !needsBody(beside: id) {
            var actions: [Action] = []
            discard(id, &actions)
            return actions + plan()
        }
        transfers.update(id) { $0.respond(at: offset, end: end, isWhole: isWhole, isSequential: isSequential) }
        guard let transfer = transfers[id] else { return [] }
        // Bytes that it was to receive, and does not, have to be requested again.
        readers.enqueue(wanting: Range(from: Block.roundDown(previous.position), to: transfer.position))
        readers.enqueue(wanting: Range(from: transfer.end ?? .max, to: previous.end ?? .max))
        extend(id)
        return plan()
    }

    /// Whether another whole body is of use. It is not if the present one will reach all bytes that readers wait for.
    private func needsBody(beside id: TransferID) -> Bool {
        guard let first = transfers.firstSequentialPosition(besides: id) else { return true }
        return readers.states.contains { reader in
            guard reader.isWaiting, let demand = reader.demand else { return false }
            return stored.firstMissingRange(in: demand.lower..<demand.takes).map { $0.lowerBound < first } ?? false
        }
    }

    /// Returns what the transfer may do before it takes its next chunk.
    mutating func permission(_ id: TransferID) -> Permission {
        guard let transfer = transfers[id], !transfer.isStale else { return .stop }
        let limit = transfers.limit(of: id, transfer, in: stored)
        if transfer.position >= limit { return .stop }
        if transfer.isSequential, stored.contains(Range(from: transfer.position, to: min(limit, length ?? .max))) {
            return .stop
        }
        if transfer.isLive, !mayProceed(transfer) {
            transfers.update(id) { $0.hold() }
            return .hold
        }
        return .proceed(upTo: limit)
    }

    /// Bytes of the transfer have been stored.
    mutating func landed(_ range: Range<Int64>, by id: TransferID, now: Duration) -> [Action] {
        let range = stored.bounded(range)
        guard !range.isEmpty, !(transfers[id]?.isStale ?? false) else { return [] }
        let fresh = stored.insert(range)
        var actions: [Action] = []
        transfers.update(id) { $0.land(range, fresh: fresh) }
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
        return actions + plan(transfer?.isSequential == true ? nil : id)
    }

    /// There was no space for the transfer's next bytes. It pauses until a reader moves on, unless a reader waits for
    /// them.
    mutating func transferLacksSpace(_ id: TransferID) -> (Permission, [Action]) {
        guard mayLandMore(id), let transfer = transfers[id] else { return (.stop, []) }
        guard !isAwaited(id) else {
            return (.proceed(upTo: transfers.limit(of: id, transfer, in: stored)), [])
        }
        if isClosing {
            var actions: [Action] = []
            cancel(id, &actions)
            return (.stop, actions)
        }
        transfers.update(id) { [movements] in $0.holdForSpace(movements: movements) }
        return (.hold, plan())
    }

    /// The time of an ``Action/setTimer(_:after:)`` is over. A timer that is no longer needed has no effect.
    mutating func timerFired(_ timer: TimerID, now: Duration) -> [Action] {
        var actions: [Action] = []
        for id in transfers.ids where transfers[id]?.interest == .unwanted(timer) { cancel(id, &actions) }
        retryPlace(awaiting: timer, &actions)
        return actions + plan()
    }

    // MARK: - Questions

    /// The offset of the transfer's next byte. `nil` if it has ended.
    func position(of id: TransferID) -> Int64? { transfers[id]?.position }

    /// Whether no more bytes of the transfer may be stored.
    func isStale(_ id: TransferID) -> Bool { transfers[id]?.isStale ?? true }

    /// Whether the transfer was cancelled or has ended.
    func isCancelled(_ id: TransferID) -> Bool { !(transfers[id]?.isLive ?? false) }

    /// Whether it was not cancelled, and no other transfer precedes it.
    func mayLandMore(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id], transfer.isLive else { return false }
        return transfer.position < transfers.limit(of: id, transfer, in: stored)
    }

    /// Whether the transfer was paused and has not been resumed since.
    func isHeld(_ id: TransferID) -> Bool { transfers[id]?.isHeld ?? false }

    /// Whether the transfer validates the stored bytes.
    func isValidation(_ id: TransferID) -> Bool { transfers[id]?.isValidation ?? false }

    /// Whether the transfer can't be fetched in parts, and ends later than any range request or at an unknown offset.
    func isStream(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id], transfer.isStreaming, transfer.isSequential else { return false }
        guard let end = transfer.end ?? length else { return true }
        return end - transfer.position > policy.largestRequest
    }

    /// Whether a reader waits for bytes that the transfer receives.
    func isAwaited(_ id: TransferID) -> Bool { transfers[id].map { isAwaited($0, by: .preload) } ?? false }

    /// Whether a player does. Also true if the transfer has ended.
    func isAwaitedByPlayer(_ id: TransferID) -> Bool {
        transfers[id].map { isAwaited($0, by: .playback) } ?? true
    }

    /// Whether a reader of at least this priority waits for bytes that the transfer receives.
    func isAwaited(_ transfer: TransferState, by priority: Priority) -> Bool {
        if transfer.isValidation { return priority == .preload || isPlaybackWaiting }
        // Whole blocks: a reader that waits behind a missing range in a block waits for those bytes as well.
        let range = Range(
            from: Block.roundDown(transfer.position), to: transfer.end.map { Block.end(at: $0.adding(-1)) } ?? .max)
        return readers.isWaiting(in: range, for: priority)
    }

    /// Whether the stored bytes, or the bytes that a reader has taken or that the origin is sending, end at `offset`.
    func reaches(_ offset: Int64) -> Bool {
        if offset > 0, readers.states.contains(where: { $0.hasRead && $0.position == offset }) { return true }
        let coming = transfers.states.filter { $0.isStreaming }.compactMap(\.end).max() ?? 0
        return offset > 0 && max(coming, stored.end) == offset
    }

    // MARK: - Ending

    /// Cancels a transfer. Bytes that have been received are still stored.
    mutating func cancel(_ id: TransferID, _ actions: inout [Action]) {
        guard transfers[id]?.isLive == true else { return }
        transfers.update(id) { $0.cancel() }
        actions.append(.cancel(id))
        if rangeSupport == .unsupported { readers.enqueue(wanting: 0..<Int64.max) }
    }

    /// Cancels a transfer, none of whose bytes may be stored any more.
    mutating func discard(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers[id], !transfer.isStale else { return }
        cancel(id, &actions)
        transfers.update(id) { $0.discard() }
        enqueueHeirs(of: transfer)
    }

    /// Removes a transfer. The bytes that it leaves are requested again.
    mutating func finish(_ id: TransferID, _ actions: inout [Action]) {
        guard let transfer = transfers.remove(id) else { return }
        if let place = transfer.place { removePlace(place, &actions) }
        enqueueHeirs(of: transfer)
    }

    /// Plans again for the readers that the transfer would have served.
    mutating func enqueueHeirs(of transfer: TransferState) {
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
