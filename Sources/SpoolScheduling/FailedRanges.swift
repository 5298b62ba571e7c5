import ByteRanges

/// The ranges of a resource for which a request failed, with the state of their retries.
///
/// A place is the block in which a request failed. If bytes can only be received in sequence, the place extends to the
/// end of the resource. A failure affects only the readers whose next bytes are in the place. The scheduler decides how
/// to handle a failure.
struct FailedRanges {
    /// A number that identifies a place. A place that fails later has a greater number.
    struct Number: Hashable, Comparable {
        let value: Int
        static func < (a: Number, b: Number) -> Bool { a.value < b.value }
    }

    struct Place {
        enum State: Equatable {
            /// The place may be requested once more, or is being requested. → waiting, failed
            case trying
            /// The place is not requested until the timer fires. → trying
            case waiting(TimerID)
            /// The place is not requested until a new reader reaches it. → nothing
            case failed(FailureID, at: Duration)
        }

        let number: Number
        fileprivate(set) var range: Range<Int64>
        /// The highest priority of the failed requests. Readers of a higher priority are not stopped, unless the origin
        /// has sent `Retry-After`.
        fileprivate(set) var priority: Priority
        /// The only reader that is stopped, if its credentials were rejected; `nil` if all readers are stopped.
        var reader: ReaderID?
        /// Whether a validation failed.
        fileprivate(set) var isValidation: Bool
        var state = State.trying
        /// The furthest offset that attempts have reached, and the number of bytes gained since the first failure.
        private var furthest: Int64
        private var gained: Int64 = 0
        /// The number of attempts after a failure, and of attempts without a delay, since progress was last made.
        fileprivate(set) var tries = 0
        var restarts = 0
        /// The time of the first failure since progress was last made.
        fileprivate(set) var since: Duration
        /// The time before which the origin does not allow requests.
        fileprivate(set) var notBefore: Duration?

        fileprivate init(
            _ number: Number, range: Range<Int64>, priority: Priority, isValidation: Bool, furthest: Int64,
            since: Duration
        ) {
            self.number = number
            self.range = range
            self.priority = priority
            self.isValidation = isValidation
            self.furthest = furthest
            self.since = since
        }

        var hasFailed: Bool { if case .failed = state { true } else { false } }

        /// Returns whether the place affects this reader. The place stops the reader only while it is not being
        /// requested.
        func stops(_ id: ReaderID, _ reader: ReaderState) -> Bool {
            guard isValidation != reader.mayUseStored else { return false }
            if notBefore != nil { return true }
            return self.reader.map { $0 == id } ?? (reader.priority <= priority)
        }

        /// Counts one more interruption.
        ///
        /// - Returns: The delay before the next attempt; `nil` if there have been too many interruptions, or if the
        ///   attempt would be too late.
        mutating func interrupt(
            retryAfter: Duration?, jitter: Double, by policy: RetryPolicy, now: Duration
        ) -> Duration? {
            tries += 1
            let delay = policy.delay(attempt: tries, retryAfter: retryAfter, jitter: jitter)
            if let retryAfter, retryAfter > .zero { notBefore = now + RetryPolicy.bounded(retryAfter) }
            return tries > policy.maximumRetryCount || now + delay - since > policy.maximumWait ? nil : delay
        }

        /// Records that requests to the origin are allowed again.
        mutating func forgetNotBefore() { notBefore = nil }

        fileprivate func progress(to position: Int64) -> Int64 { gained + (position - furthest) }

        /// Records the progress of an attempt. A block of new bytes resets the counts.
        fileprivate mutating func recordProgress(to position: Int64, now: Duration) {
            gained += max(position - furthest, 0)
            furthest = max(furthest, position)
            guard gained >= Block.size else { return }
            gained = 0
            tries = 0
            restarts = 0
            since = now
        }
    }

    private var places: [Number: Place] = [:]
    private var byBlock: [Int64: [Number]] = [:]
    private var wide: [Number] = []
    private var byTimer: [TimerID: Number] = [:]
    private var purgeAt = 64

    var isEmpty: Bool { places.isEmpty }

    subscript(number: Number) -> Place? { places[number] }

    /// Adds a place, or replaces it.
    mutating func put(_ place: Place) {
        remove(place.number)
        places[place.number] = place
        if let block = Self.block(of: place.range) {
            byBlock[block, default: []].append(place.number)
        } else {
            wide.append(place.number)
        }
        if case .waiting(let timer) = place.state { byTimer[timer] = place.number }
    }

    @discardableResult
    mutating func remove(_ number: Number) -> Place? {
        guard let place = places.removeValue(forKey: number) else { return nil }
        if let block = Self.block(of: place.range) {
            byBlock[block]?.removeAll { $0 == number }
            if byBlock[block]?.isEmpty == true { byBlock[block] = nil }
        } else {
            wide.removeAll { $0 == number }
        }
        if case .waiting(let timer) = place.state { byTimer[timer] = nil }
        return place
    }

    /// Removes and returns the place that a failed transfer has retried. Returns a new place if there is none.
    ///
    /// - Parameters:
    ///   - position: The offset that the transfer has reached.
    ///   - number: The number of a new place.
    mutating func take(
        _ transfer: TransferState, reached position: Int64, number: Int, now: Duration
    ) -> Place {
        let isWide = transfer.isSequential || transfer.purpose != .bytes
        let lower = transfer.purpose != .bytes ? 0 : Block.roundDown(position)
        let range = Range(from: lower, to: isWide ? Block.offsetLimit : Block.end(at: position))
        guard let known = transfer.place, var place = remove(known) else {
            return Place(
                Number(value: number), range: range, priority: transfer.priority, isValidation: transfer.isValidation,
                furthest: position, since: now)
        }
        place.recordProgress(to: position, now: now)
        place.range = range
        place.priority = max(place.priority, transfer.priority)
        place.isValidation = transfer.isValidation
        place.state = .trying
        place.notBefore = nil
        return place
    }

    // MARK: - Lookup

    /// All places, oldest first.
    var all: [Place] { places.values.sorted { $0.number < $1.number } }

    /// Returns the places that contain the byte at `offset`, oldest first.
    func places(at offset: Int64) -> [Place] {
        if places.isEmpty { return [] }
        let numbers = (byBlock[Block.index(of: offset)] ?? []) + wide
        return numbers.sorted().compactMap { places[$0] }.filter { $0.range.contains(offset) }
    }

    /// Returns the places that a request for the byte at `offset` would touch, and that affect the reader.
    ///
    /// - Parameter isSequential: Whether bytes can only be received in sequence. The request would then also touch the
    ///   places for which the origin has sent `Retry-After`.
    func places(
        touchedAt offset: Int64, isSequential: Bool, stopping id: ReaderID, _ reader: ReaderState
    ) -> [Place] {
        if places.isEmpty { return [] }
        let touched =
            isSequential ? all.filter { $0.range.contains(offset) || $0.notBefore != nil } : places(at: offset)
        return touched.filter { $0.stops(id, reader) }
    }

    /// Returns the place that waits for the timer.
    func place(awaiting timer: TimerID) -> Place? { byTimer[timer].flatMap { places[$0] } }

    /// Returns the place that a request at `offset` would retry.
    ///
    /// - Parameter others: The places that other transfers are requesting.
    func retried(
        at offset: Int64, isSequential: Bool, isValidation: Bool, except others: Set<Number>
    ) -> Number? {
        if places.isEmpty { return nil }
        let candidates = isSequential ? all : places(at: offset)
        return candidates.last { place in
            place.state == .trying && place.isValidation == isValidation && !others.contains(place.number)
        }?.number
    }

    /// Returns whether the transfer must not be sent now, because of a failure since it was planned.
    ///
    /// The result is `true` only if the plan would not start the transfer again. Otherwise, the transfer would be
    /// started and cancelled in an endless loop.
    func mustWaitAfterFailure(_ transfer: TransferState, for reader: ReaderState) -> Bool {
        if places.isEmpty { return false }
        let touched = transfer.isSequential ? all.filter { $0.notBefore != nil } : places(at: transfer.start)
        return touched.contains { $0.state != .trying && $0.stops(transfer.reader, reader) }
    }

    /// Returns whether an attempt at the place has received enough bytes to reset its counts.
    func hasProgressed(_ number: Number, to position: Int64) -> Bool {
        places[number].map { $0.progress(to: position) >= Block.size } ?? true
    }

    /// Ends the failed validations, because the stored bytes may be used now.
    ///
    /// Places that wait for a retry, or for which the origin has sent `Retry-After`, then count as failed requests for
    /// missing bytes.
    ///
    /// - Returns: The other places, which the caller removes.
    mutating func endValidation() -> [Number] {
        var ended: [Number] = []
        for var place in all where place.isValidation {
            if place.notBefore != nil || place.state != .trying && !place.hasFailed {
                place.isValidation = false
                put(place)
            } else {
                ended.append(place.number)
            }
        }
        return ended
    }

    /// Returns the places that no longer matter, if there are many places. They are older than `age`, and are neither
    /// waiting nor being requested.
    mutating func outdated(now: Duration, age: Duration, except kept: Set<Number>) -> [Number] {
        guard places.count >= purgeAt else { return [] }
        let old = all.filter { place in
            if case .waiting = place.state { return false }
            if kept.contains(place.number) || place.notBefore.map({ $0 > now }) ?? false { return false }
            return now - place.since > age
        }
        purgeAt = max(64, (places.count - old.count) * 2)
        return old.map(\.number)
    }

    /// Returns the index of the block that contains the range; `nil` if the range spans several blocks.
    private static func block(of range: Range<Int64>) -> Int64? {
        let index = Block.index(of: range.lowerBound)
        return range.upperBound <= Block.end(at: range.lowerBound) ? index : nil
    }
}
