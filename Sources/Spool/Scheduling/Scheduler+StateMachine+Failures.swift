import ByteRanges
import SpoolStorage

// MARK: - How transfers fail

/// Failure belongs to a place: what happens to a request stops those whose next bytes lie where it failed, no others.
extension Scheduler.StateMachine {
    enum Failing {
        case interruption(retryAfter: Duration?, jitter: Double)
        case restart
        case refusal(isPersonal: Bool)

        /// Whether the origin says itself when it may be asked again: that holds also if nobody wants the bytes any more.
        var asksForTime: Bool {
            if case .interruption(let retryAfter?, _) = self { retryAfter > .zero } else { false }
        }
    }

    mutating func transferFailed(_ id: TransferID, _ failing: Failing, now: Duration) -> (Outcome, [Action]) {
        var actions: [Action] = []
        guard let former = transfers[id] else { return (.none, []) }
        let isOver = !(former.isLive || former.isAstray) || former.purpose == .answered
        guard !isOver || failing.asksForTime, let transfer = remove(id) else {
            finish(id, &actions)
            return (.none, actions + plan())
        }
        var place = place(of: transfer, now: now)
        var outcome = Outcome.none
        switch failing {
        case .interruption(let retryAfter, let jitter):
            place.tries += 1
            let delay = retryPolicy.delay(attempt: place.tries, retryAfter: retryAfter, jitter: jitter)
            if let retryAfter, retryAfter > .zero { place.notBefore = now + RetryPolicy.bounded(retryAfter) }
            let isSpent = place.tries > retryPolicy.retries || now + delay - place.since > retryPolicy.longestWait
            if isSpent {
                outcome = fail(&place, now: now)
            } else if isWanted(place) || place.notBefore != nil {
                let timer = TimerID(number: next())
                place.state = .waiting(timer)
                actions.append(.setTimer(timer, after: delay))
                outcome = .retries(after: delay)
            }
        case .restart:
            place.restarts += 1
            let isSpent = place.restarts > retryPolicy.retries + policy.transfersPerResource
            if isSpent { outcome = fail(&place, now: now) }
        case .refusal(let isPersonal):
            if isPersonal { place.reader = transfer.reader }
            outcome = fail(&place, now: now)
        }
        // A place that nobody is stopped by, nor will try again, tells nothing.
        if place.state != .trying || isWanted(place) { failures.put(place) }
        reviewStandings(at: place, &actions)
        purgePlaces(now: now, &actions)
        enqueueHeirs(of: transfer)
        return (outcome, actions + plan())
    }

    /// Whether a transfer that were interrupted now would be tried again, or nobody be told of it, as far as can be said
    /// beforehand.
    func mayRetry(_ id: TransferID, retryAfter: Duration?, now: Duration) -> Bool {
        guard let transfer = transfers[id], transfer.isLive else { return true }
        let place = transfer.place.flatMap { failures[$0] }
        let tries = (place?.tries ?? 0) + 1
        let delay = retryPolicy.delay(attempt: tries, retryAfter: retryAfter, jitter: 0)
        return tries <= retryPolicy.retries && now + delay - (place?.since ?? now) <= retryPolicy.longestWait
    }

    /// The place where the transfer failed, with what is known of former tries there.
    private mutating func place(of transfer: TransferState, now: Duration) -> FailedPlaces.Place {
        let position = reached(by: transfer)
        let isWide = transfer.isSequential || transfer.purpose != .bytes
        let lower = transfer.purpose != .bytes ? 0 : Block.roundDown(position)
        let range = Range(from: lower, to: isWide ? Block.offsetLimit : Block.end(at: position))
        guard let number = transfer.place, var place = failures.remove(number) else {
            let number = FailedPlaces.Number(value: next())
            return FailedPlaces.Place(
                number: number, range: range, priority: transfer.priority, isValidation: transfer.isValidation,
                furthest: position, since: now)
        }
        place.noteProgress(to: position, now: now)
        place.range = range
        place.priority = max(place.priority, transfer.priority)
        place.isValidation = transfer.isValidation
        place.state = .trying
        place.notBefore = nil
        return place
    }

    /// Nobody tries the place again before a reader begins anew there; those that wait will be told.
    private mutating func fail(_ place: inout FailedPlaces.Place, now: Duration) -> Outcome {
        let failure = FailureID(number: next())
        place.state = .failed(failure, at: now)
        return .failed(failure)
    }

    private func waitingReaders(in place: FailedPlaces.Place) -> [ReaderID] {
        if place.isValidation {
            return readers.filter { !$0.value.mayUseStored && $0.value.isWaiting }.keys.sorted()
        }
        let range = reach(of: place)
        return (waitingPlayback.readers(in: range) + waitingPreloads.readers(in: range)).sorted()
    }

    /// Whether anybody wants something of the place.
    private mutating func isWanted(_ place: FailedPlaces.Place) -> Bool {
        let (lower, upper) = (place.range.lowerBound, place.range.upperBound)
        // Who waits to hear whether what is stored still holds has no demand yet.
        let isUnvalidated = readers.values.contains { reader in
            guard !reader.mayUseStored, reader.isWaiting else { return false }
            return place.isValidation || reader.position < upper && reader.bound(length: length) > lower
        }
        if place.isValidation || isUnvalidated { return isUnvalidated }
        return demands.reaches(.takes, startingBefore: upper, beyond: lower)
            || preloadDemands.reaches(.takes, startingBefore: upper, beyond: lower)
    }

    // MARK: - Who is stopped

    /// The places that a request for the byte at `offset` would touch: where bytes come in one sequence only, it would ask
    /// for those, too, for which the origin has asked for time.
    private func places(touchedAt offset: Int64) -> [FailedPlaces.Place] {
        guard rangeSupport == .unsupported else { return failures.places(at: offset) }
        return failures.all.filter { $0.range.contains(offset) || $0.notBefore != nil }
    }

    /// Whose readers a place may stop.
    private func reach(of place: FailedPlaces.Place) -> Range<Int64> {
        rangeSupport == .unsupported ? 0..<Int64.max : place.range
    }

    /// Whether the place, unless it is being tried, is this reader's business.
    private func isStopped(_ id: ReaderID, by place: FailedPlaces.Place) -> Bool {
        guard let reader = readers[id], place.isValidation != reader.mayUseStored else { return false }
        if place.notBefore != nil { return true }
        return place.reader.map { $0 == id } ?? (reader.priority <= place.priority)
    }

    /// Whether a reader has to do without the byte at `offset` for now.
    func isBlocked(_ offset: Int64, for id: ReaderID) -> Bool {
        guard !failures.isEmpty else { return false }
        return places(touchedAt: offset).contains { $0.state != .trying && isStopped(id, by: $0) }
    }

    /// Whether it has been said since that the transfer's place is not to be asked for now.
    ///
    /// True only where the plan, asked again, would not begin it anew, or the two would go on for ever.
    func isLeftAlone(_ transfer: TransferState) -> Bool {
        guard !failures.isEmpty else { return false }
        let places =
            transfer.isSequential ? failures.all.filter { $0.notBefore != nil } : failures.places(at: transfer.start)
        return places.contains { $0.state != .trying && isStopped(transfer.reader, by: $0) }
    }

    /// Notes whether a reader that waits does so for bytes that may come now, or for a place that is tried later; one
    /// that waits at a place that has failed is woken, to be told.
    mutating func reviewStanding(_ id: ReaderID, _ actions: inout [Action]) {
        guard let reader = readers[id], reader.isWaiting else { return }
        let places = places(touchedAt: nextHole(of: reader)).filter { $0.state != .trying && isStopped(id, by: $0) }
        if places.isEmpty { return expect(id) }
        guard places.contains(where: \.hasFailed) else { return stall(id) }
        endWaiting(id)
        actions.append(.wake(id))
    }

    private mutating func reviewStandings(at place: FailedPlaces.Place, _ actions: inout [Action]) {
        for id in waitingReaders(in: place) { reviewStanding(id, &actions) }
    }

    /// The place with whose tries a request at `offset` is to be counted.
    func placeTried(at offset: Int64, isSequential: Bool, isValidation: Bool) -> FailedPlaces.Number? {
        guard !failures.isEmpty else { return nil }
        let places = isSequential ? failures.all : failures.places(at: offset)
        let tried = transfers.values.compactMap(\.place)
        return places.last { place in
            place.state == .trying && place.isValidation == isValidation && !tried.contains(place.number)
        }?.number
    }

    /// What a reader is told that comes to a place that has failed; nil if it may try anew.
    ///
    /// It may if it was opened since, or if that is long ago; but not before the origin has said.
    mutating func failure(for id: ReaderID, now: Duration, _ actions: inout [Action]) -> FailureID? {
        guard !failures.isEmpty, let reader = readers[id] else { return nil }
        for var place in places(touchedAt: nextHole(of: reader)) where isStopped(id, by: place) {
            guard case .failed(let failure, let time) = place.state else { continue }
            if let notBefore = place.notBefore {
                if now < notBefore { return failure }
                place.notBefore = nil
                failures.put(place)
                unblock(place, &actions)
                guard isStopped(id, by: place) else { continue }
            }
            if id.number < failure.number, now - time <= retryPolicy.longestWait { return failure }
            removePlace(place.number, &actions)
        }
        return nil
    }

    /// Where the bytes begin that a waiting reader needs first: in its block, at its position or before.
    func nextHole(of reader: ReaderState) -> Int64 {
        let block = Range(from: Block.roundDown(reader.position), to: reader.position.adding(1))
        return landed.firstHole(in: block)?.lowerBound ?? reader.position
    }

    // MARK: - What becomes of a place

    mutating func removePlace(_ number: FailedPlaces.Number, _ actions: inout [Action]) {
        guard let place = failures.remove(number) else { return }
        if case .failed(let failure, _) = place.state { actions.append(.discard(failure)) }
        guard place.state != .trying else { return }
        unblock(place, &actions)
    }

    /// The timer of a place has fired: it is tried again, if anybody still wants it.
    mutating func retryPlace(awaiting timer: TimerID, _ actions: inout [Action]) {
        guard var place = failures.place(awaiting: timer) else { return }
        place.state = .trying
        place.notBefore = nil
        if isWanted(place) { failures.put(place) } else { failures.remove(place.number) }
        unblock(place, &actions)
    }

    /// Those that were stopped by a place look for a request.
    private mutating func unblock(_ place: FailedPlaces.Place, _ actions: inout [Action]) {
        reviewStandings(at: place, &actions)
        if place.isValidation { enqueueUnvalidated() } else { enqueue(wanting: reach(of: place)) }
    }

    /// What is stored may be used: a place that waited for asking whether it may, or where the origin has asked to be left
    /// alone, now holds back holes only.
    mutating func endValidationPlaces(_ actions: inout [Action]) {
        for var place in failures.all where place.isValidation {
            guard place.notBefore != nil || place.state != .trying && !place.hasFailed else {
                removePlace(place.number, &actions)
                continue
            }
            place.isValidation = false
            failures.put(place)
        }
    }

    private mutating func purgePlaces(now: Duration, _ actions: inout [Action]) {
        let tried = Set(transfers.values.compactMap(\.place))
        for number in failures.outdated(now: now, age: retryPolicy.longestWait, besides: tried) {
            removePlace(number, &actions)
        }
    }
}
