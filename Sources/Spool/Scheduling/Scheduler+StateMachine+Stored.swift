import ByteRanges
import SpoolStorage

// MARK: - What is stored, and what the origin says of it

extension Scheduler.StateMachine {
    /// What an opened generation holds.
    mutating func opened(landed: ByteRangeSet, length: Int64?, needsValidation: Bool) -> [Action] {
        self.landed = landed
        self.length = length.map { max($0, 0) }
        self.needsValidation = needsValidation
        letUseStored(!needsValidation)
        return reconsider()
    }

    /// Readers that are opened from now on wait until the origin has been asked; those that are open go on.
    mutating func requireValidation() -> [Action] {
        needsValidation = true
        return []
    }

    /// The stored generation is still the origin's, or may be used as if it were.
    mutating func validated() -> [Action] {
        var actions: [Action] = []
        endValidation(&actions)
        return actions + reconsider()
    }

    /// All may use what is there; whoever still asks whether they may asks in vain.
    private mutating func endValidation(_ actions: inout [Action]) {
        needsValidation = false
        letUseStored(true)
        for id in transfers.keys.sorted() where isValidation(id) { transfers[id]?.purpose = .answered }
        endValidationPlaces(&actions)
    }

    /// The total length has been told.
    ///
    /// - Returns: Not plausible, and nothing has changed, if bytes have landed beyond: it is another version.
    mutating func lengthLearnt(_ length: Int64) -> (isPlausible: Bool, actions: [Action]) {
        guard self.length != length else { return (true, []) }
        guard length >= landed.bounds?.upperBound ?? 0, length <= Block.offsetLimit else { return (false, []) }
        self.length = length
        return (true, reconsider())
    }

    /// The origin responds to range requests.
    mutating func rangesSupported() -> [Action] {
        guard rangeSupport != .supported else { return [] }
        rangeSupport = .supported
        return reconsider()
    }

    /// The origin takes no notice of range requests, or what it sends can't be put together.
    mutating func rangesUnsupported() -> [Action] {
        guard rangeSupport != .unsupported else { return [] }
        rangeSupport = .unsupported
        return reconsider()
    }

    /// Another generation takes the place of the current one; `kept` is the transfer that brings it, if any.
    ///
    /// - Returns: The readers that are in the former one, now unknown here, and what to do.
    mutating func generationChanged(
        length: Int64?, keeping kept: TransferID?
    ) -> (left: [ReaderID], actions: [Action]) {
        landed = ByteRangeSet()
        evicting = ByteRangeSet()
        runs = []
        self.length = length.map { max($0, 0) }
        let left = readers.filter { $0.value.hasRead }.map(\.key).sorted()
        for id in left { forgetReader(id) }
        var actions: [Action] = []
        endValidation(&actions)
        for id in transfers.keys.sorted() where id != kept { discard(id, &actions) }
        // Nothing has landed of the block in which it was to go on: it lands from the next one.
        if let kept, let position = transfers[kept]?.position { transfers[kept]?.position = Block.roundUp(position) }
        return (left, actions + reconsider())
    }

    /// Whether a reader of the current generation needs bytes from a transfer other than `other`.
    func isFeeding(besides other: TransferID? = nil) -> Bool {
        guard transfers.contains(where: { $0.key != other && $0.value.isLive && !$0.value.isValidation }) else {
            return false
        }
        return readers.values.contains { $0.hasRead && lacksBytes($0) }
    }

    /// Whether a reader of the current generation needs bytes from any transfer, even if it has not read yet.
    var isFilling: Bool {
        transfers.values.contains { $0.isLive && !$0.isValidation }
            && readers.values.contains { $0.mayUseStored && lacksBytes($0) }
    }

    private func lacksBytes(_ reader: ReaderState) -> Bool {
        let bound = min(reader.bound(length: length), Block.offsetLimit)
        return reader.position < bound && !landed.contains(reader.position..<bound)
    }

    /// Handles a transfer's response that nothing proves to be of the current generation, which other transfers serve.
    ///
    /// The readers of that generation continue, and no byte of the response may be stored.
    ///
    /// - Returns: The readers that only this response could serve, which are removed here, and the actions to perform.
    ///   `nil` if no reader needs another transfer, so that the response may start another generation.
    mutating func responseUnproven(_ id: TransferID) -> (left: [ReaderID], actions: [Action])? {
        guard let transfer = transfers[id] else { return nil }
        // No reader needs the response of a cancelled transfer.
        guard transfer.isLive else { return ([], []) }
        guard isFeeding(besides: id) else { return nil }
        let left = readers.keys.sorted().filter { readers[$0].map { isServed($0, onlyBy: id) } ?? false }
        for id in left { forgetReader(id) }
        var actions: [Action] = []
        if transfer.isValidation { endValidation(&actions) }
        // Parts of several responses can't be combined.
        rangeSupport = .unsupported
        return (left, actions + reconsider())
    }

    private func isServed(_ reader: ReaderState, onlyBy id: TransferID) -> Bool {
        if transfers[id]?.isValidation == true { return !reader.mayUseStored }
        guard reader.mayUseStored, reader.isWaiting, !reader.hasRead else { return false }
        let offset = nextHole(of: reader)
        return !transfers.contains { other, transfer in
            other != id && transfer.isLive && !transfer.isValidation && transfer.position <= offset
                && offset < transfer.end ?? .max
        }
    }

    /// Stored bytes turned out bad and are gone.
    mutating func invalidated(_ range: Range<Int64>) -> [Action] {
        let range = range.addressable
        guard !range.isEmpty else { return [] }
        landed.remove(range)
        var actions: [Action] = []
        discardHeadless(in: range, &actions)
        enqueue(wanting: range)
        return actions + plan()
    }

    /// What has landed of a block is a prefix of it: a transfer inside one that has lost its beginning begins it anew.
    mutating func discardHeadless(in range: Range<Int64>, _ actions: inout [Action]) {
        for id in transfers.keys.sorted() {
            guard let position = transfers[id]?.position else { continue }
            let begun = Range(from: Block.roundDown(position), to: position)
            if begun.overlaps(range), !landed.contains(begun) { discard(id, &actions) }
        }
    }

    // MARK: - Closing

    /// The shell is closing: nothing is started, and what is not nearly done is cancelled.
    mutating func close() -> [Action] {
        isClosing = true
        var actions: [Action] = []
        wakeConcerned(&actions)
        queue.removeAll()
        for id in readers.keys.sorted() { readers[id]?.queued = nil }
        for id in transfers.keys.sorted() {
            guard let transfer = transfers[id], transfer.isLive else { continue }
            guard transfer.isStreaming, isNearlyDone(transfer) else {
                cancel(id, &actions)
                continue
            }
            transfers[id]?.interest = .drains
            resume(id, &actions)
        }
        return actions
    }

    /// What was let in at closing took too long.
    mutating func cancelAll() -> [Action] {
        guard isClosing else { return [] }
        var actions: [Action] = []
        for id in transfers.keys.sorted() { cancel(id, &actions) }
        return actions
    }

    /// A closing resource is wanted again.
    mutating func reopen() -> [Action] {
        guard isClosing else { return [] }
        isClosing = false
        for id in readers.keys.sorted() { enqueue(id) }
        return plan()
    }

    /// Something has changed that may concern every reader.
    private mutating func reconsider() -> [Action] {
        var actions: [Action] = []
        renewDemands()
        wakeConcerned(&actions)
        return actions + plan()
    }
}
