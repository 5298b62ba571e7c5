import ByteRanges

// MARK: - Failures

extension Plan {
    enum Failing {
        case interruption(retryAfter: Duration?, jitter: Double)
        case restart
        case refusal(isCredentialFailure: Bool)

        /// Whether the origin has sent `Retry-After`. The field is respected even if no reader needs the bytes.
        var hasRetryAfter: Bool {
            if case .interruption(let retryAfter?, _) = self { retryAfter > .zero } else { false }
        }
    }

    mutating func transferFailed(
        _ id: TransferID, _ failing: Failing, now: Duration
    ) -> (Outcome, [Action]) {
        var actions: [Action] = []
        guard let failed = transfers[id] else { return (.none, []) }
        let isOver = !(failed.isLive || failed.startsAtOtherOffset) || failed.purpose == .answered
        guard !isOver || failing.hasRetryAfter, let transfer = transfers.remove(id) else {
            finish(id, &actions)
            return (.none, actions + settle())
        }
        var place = failures.take(
            transfer, reached: transfers.reached(by: transfer, in: stored), number: next(), now: now)
        var outcome = Outcome.none
        switch failing {
        case .interruption(let retryAfter, let jitter):
            if let delay = place.interrupt(retryAfter: retryAfter, jitter: jitter, by: retryPolicy, now: now) {
                guard isWanted(place) || place.notBefore != nil else { break }
                let timer = TimerID(number: next())
                place.state = .waiting(timer)
                actions.append(.setTimer(timer, after: delay))
                outcome = .retries(after: delay)
            } else {
                outcome = fail(&place, now: now)
            }
        case .restart:
            place.restarts += 1
            if place.restarts > retryPolicy.maximumRetryCount + policy.maximumConcurrentRequests {
                outcome = fail(&place, now: now)
            }
        case .refusal(let isCredentialFailure):
            if isCredentialFailure { place.reader = transfer.reader }
            outcome = fail(&place, now: now)
        }
        // A place that stops no reader, and that no reader will request, does not matter.
        if place.state != .trying || isWanted(place) { failures.put(place) }
        reviewStatuses(at: place, &actions)
        for number in failures.outdated(now: now, age: retryPolicy.maximumWait, except: retriedPlaces) {
            removePlace(number, &actions)
        }
        enqueueSuccessors(of: transfer)
        return (outcome, actions + settle())
    }

    /// Marks a place as failed. It is not requested until a new reader reaches it, and waiting readers receive the
    /// failure.
    private mutating func fail(_ place: inout FailedRanges.Place, now: Duration) -> Outcome {
        let failure = FailureID(number: next())
        place.state = .failed(failure, at: now)
        return .failed(failure)
    }

    /// The places that transfers are retrying.
    var retriedPlaces: Set<FailedRanges.Number> { Set(transfers.states.compactMap(\.place)) }

    /// Returns the range in which a place may stop readers.
    private func reach(of place: FailedRanges.Place) -> Range<Int64> {
        rangeSupport == .unsupported ? 0..<Int64.max : place.range
    }

    /// Returns whether a reader needs bytes in the place.
    private mutating func isWanted(_ place: FailedRanges.Place) -> Bool {
        let (lower, upper) = (place.range.lowerBound, place.range.upperBound)
        // A reader that waits for a validation has no demand yet.
        let isUnvalidated = readers.states.contains { reader in
            guard !reader.mayUseStored, reader.isWaiting else { return false }
            return place.isValidation || reader.position < upper && reader.bound(length: stored.length) > lower
        }
        if place.isValidation || isUnvalidated { return isUnvalidated }
        return readers.reaches(.storedEnd, startingBefore: upper, beyond: lower)
    }

    private func places(touchedAt offset: Int64, stopping id: ReaderID, _ reader: ReaderState) -> [FailedRanges.Place] {
        failures.places(
            touchedAt: offset, isSequential: rangeSupport == .unsupported, stopping: id, reader)
    }

    /// Returns whether the reader must not request the byte at `offset` now.
    func isBlocked(_ offset: Int64, for id: ReaderID, _ reader: ReaderState) -> Bool {
        places(touchedAt: offset, stopping: id, reader).contains { $0.state != .trying }
    }

    /// Determines whether a waiting reader's bytes may be received now, or will be requested again later. Wakes a
    /// reader at a failed place, so that it receives the failure.
    mutating func reviewStatus(_ id: ReaderID, _ actions: inout [Action]) {
        guard let reader = readers[id], reader.isWaiting else { return }
        let places = places(touchedAt: nextMissingRange(of: reader), stopping: id, reader).filter {
            $0.state != .trying
        }
        if places.isEmpty {
            readers.expect(id)
        } else if places.contains(where: \.hasFailed) {
            wake(id, &actions)
        } else {
            readers.stall(id)
        }
    }

    private mutating func reviewStatuses(at place: FailedRanges.Place, _ actions: inout [Action]) {
        let waiting =
            place.isValidation
            ? readers.ids.filter { readers[$0].map { !$0.mayUseStored && $0.isWaiting } ?? false }
            : readers.waiting(in: reach(of: place))
        for id in waiting { reviewStatus(id, &actions) }
    }

    /// Returns the failure that a reader receives at its position; `nil` if the reader may request its bytes again.
    ///
    /// A reader may request them again if it was opened after the failure, or if the failure is old. However, it has to
    /// wait until the time that the origin has specified.
    mutating func failure(for id: ReaderID, now: Duration, _ actions: inout [Action]) -> FailureID? {
        guard !failures.isEmpty, let reader = readers[id] else { return nil }
        for var place in places(touchedAt: nextMissingRange(of: reader), stopping: id, reader) {
            guard case .failed(let failure, let time) = place.state else { continue }
            if let notBefore = place.notBefore {
                if now < notBefore { return failure }
                place.forgetNotBefore()
                failures.put(place)
                unblock(place, &actions)
                guard place.stops(id, reader) else { continue }
            }
            if id.number < failure.number, now - time <= retryPolicy.maximumWait { return failure }
            removePlace(place.number, &actions)
        }
        return nil
    }

    /// Returns the offset of the first byte that a waiting reader needs. The offset is in the reader's block, at or
    /// before the reader's position.
    func nextMissingRange(of reader: ReaderState) -> Int64 {
        let block = Range(from: Block.roundDown(reader.position), to: reader.position.adding(1))
        return stored.firstMissingRange(in: block)?.lowerBound ?? reader.position
    }

    mutating func removePlace(_ number: FailedRanges.Number, _ actions: inout [Action]) {
        guard let place = failures.remove(number) else { return }
        if case .failed(let failure, _) = place.state { actions.append(.discard(failure)) }
        guard place.state != .trying else { return }
        unblock(place, &actions)
    }

    /// Records that the timer of a place has fired. The place is requested again if a reader still needs its bytes.
    mutating func retryPlace(awaiting timer: TimerID, _ actions: inout [Action]) {
        guard var place = failures.place(awaiting: timer) else { return }
        place.state = .trying
        place.forgetNotBefore()
        if isWanted(place) { failures.put(place) } else { failures.remove(place.number) }
        unblock(place, &actions)
    }

    /// Plans again for the readers that a place has stopped.
    private mutating func unblock(_ place: FailedRanges.Place, _ actions: inout [Action]) {
        reviewStatuses(at: place, &actions)
        if place.isValidation { readers.enqueueUnvalidated() } else { readers.enqueue(wanting: reach(of: place)) }
    }

    /// Records that the stored bytes may be used, so that failed validations no longer matter.
    mutating func endValidationPlaces(_ actions: inout [Action]) {
        for number in failures.endValidation() { removePlace(number, &actions) }
    }
}
