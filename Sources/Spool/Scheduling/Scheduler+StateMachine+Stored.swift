import ByteRanges
import SpoolStorage

// MARK: - Stored bytes and versions

extension Scheduler.StateMachine {
    /// The stored version has been opened.
    mutating func opened(landed: ByteRangeSet, length: Int64?, needsValidation: Bool) -> [Action] {
        stored = StoredRanges(landed, length: length)
        self.needsValidation = needsValidation
        letUseStored(!needsValidation)
        return reconsider()
    }

    /// Readers that open from now on wait for a validation. Open readers continue.
    mutating func requireValidation() -> [Action] {
        needsValidation = true
        return []
    }

    /// The stored version is current, or may be used as if it were.
    mutating func validated() -> [Action] {
        var actions: [Action] = []
        endValidation(&actions)
        return actions + reconsider()
    }

    /// All readers may use stored bytes, and validations in progress are no longer needed.
    private mutating func endValidation(_ actions: inout [Action]) {
        needsValidation = false
        letUseStored(true)
        for id in transfers.ids { transfers.update(id) { $0.noteAnswered() } }
        endValidationPlaces(&actions)
    }

    /// The total length is known.
    ///
    /// - Returns: `false`, without a change, if bytes are stored beyond it, because then it is of another version.
    mutating func lengthLearnt(_ length: Int64) -> (isPlausible: Bool, actions: [Action]) {
        if self.length == length { return (true, []) }
        guard stored.learn(length: length) else { return (false, []) }
        return (true, reconsider())
    }

    /// The origin supports range requests.
    mutating func rangesSupported() -> [Action] { note(.supported) }

    /// The origin ignores range requests, or parts of its responses can't be combined.
    mutating func rangesUnsupported() -> [Action] { note(.unsupported) }

    private mutating func note(_ support: RangeSupport) -> [Action] {
        guard rangeSupport != support else { return [] }
        rangeSupport = support
        return reconsider()
    }

    /// Another version becomes current.
    ///
    /// - Parameter kept: The transfer that receives its bytes, or `nil` if there is none.
    /// - Returns: The readers of the previous version, which are removed here, and the actions to perform.
    mutating func generationChanged(
        length: Int64?, keeping kept: TransferID?
    ) -> (left: [ReaderID], actions: [Action]) {
        stored = StoredRanges(length: length)
        transfers.forgetRuns()
        let left = readers.ids.filter { readers[$0]?.hasRead == true }
        for id in left { readers.remove(id) }
        var actions: [Action] = []
        endValidation(&actions)
        for id in transfers.ids where id != kept { discard(id, &actions) }
        if let kept { transfers.update(kept) { $0.skipToBlock() } }
        return (left, actions + reconsider())
    }

    /// Whether a reader of the current version needs bytes from a transfer other than `other`.
    func isFeeding(besides other: TransferID? = nil) -> Bool {
        transfers.contains(besides: other) { $0.isLive && !$0.isValidation }
            && readers.states.contains { $0.hasRead && lacksBytes($0) }
    }

    /// Whether a reader of the current version needs bytes from any transfer, even if it has not read yet.
    var isFilling: Bool {
        transfers.contains(besides: nil) { $0.isLive && !$0.isValidation }
            && readers.states.contains { $0.mayUseStored && lacksBytes($0) }
    }

    private func lacksBytes(_ reader: ReaderState) -> Bool {
        let bound = readAhead.bound(of: reader)
        return reader.position < bound && !stored.contains(reader.position..<bound)
    }

    /// Handles a transfer's response that nothing proves to be of the current version, which other transfers serve.
    ///
    /// The readers of that version continue, and no byte of the response may be stored.
    ///
    /// - Returns: The readers that only this response could serve, which are removed here, and the actions to perform.
    ///   `nil` if no reader needs another transfer, so that the response may start another version.
    mutating func responseUnproven(_ id: TransferID) -> (left: [ReaderID], actions: [Action])? {
        guard let transfer = transfers[id] else { return nil }
        // No reader needs the response of a cancelled transfer.
        guard transfer.isLive else { return ([], []) }
        guard isFeeding(besides: id) else { return nil }
        let left = readers.ids.filter { readers[$0].map { isServed($0, onlyBy: id) } ?? false }
        for id in left { readers.remove(id) }
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
        return !transfers.contains(besides: id) { transfer in
            transfer.isLive && !transfer.isValidation && transfer.position <= offset && offset < transfer.end ?? .max
        }
    }

    /// Stored bytes were damaged and are gone.
    mutating func invalidated(_ range: Range<Int64>) -> [Action] {
        let range = range.addressable
        guard !range.isEmpty else { return [] }
        stored.remove(range)
        var actions: [Action] = []
        requestAgain(range, &actions)
        return actions + plan()
    }

    // MARK: - Eviction

    /// Chooses stored bytes to evict, outside every reader's window. They count as missing from now on.
    ///
    /// No transfer starts or stores bytes there before the store has evicted them.
    ///
    /// - Parameters:
    ///   - count: The number of bytes, which is rounded up to whole blocks.
    ///   - place: The bytes to choose from, or `nil` for all stored bytes.
    ///   - positions: The positions of readers that have moved on without reporting it.
    mutating func offerEvictable(
        _ count: Int64, within place: ByteRangeSet? = nil, positions: [ReaderID: Int64] = [:]
    ) -> [Range<Int64>] {
        var protected: [Range<Int64>] = []
        var foremost: Int64 = 0
        let readAhead = readAhead
        for id in readers.ids {
            if let position = positions[id], let reader = readers[id], !reader.isWaiting, position > reader.position {
                readers.pass(id, to: position)
                readers.renewDemand(of: id, readAhead)
                readers.enqueue(id)
            }
            guard let reader = readers[id] else { continue }
            foremost = max(foremost, min(reader.position, Block.offsetLimit))
            protected.append(readAhead.protectedRange(of: reader))
        }
        for transfer in transfers.states where !transfer.isStale {
            protected.append(Block.roundDown(transfer.position)..<Block.end(at: transfer.position))
        }
        return stored.evict(count, within: place, except: protected, foremost: foremost)
    }

    /// The store has evicted the ranges that ``offerEvictable(_:within:positions:)`` returned, except for
    /// `kept`, which was still in use.
    mutating func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet) -> [Action] {
        var actions: [Action] = []
        for range in ranges.map(\.addressable) where !range.isEmpty {
            for remaining in stored.endEviction(of: range, except: kept) { wake(in: remaining, &actions) }
            requestAgain(range, &actions)
        }
        // If nothing was evicted, there is no more space than before, and another attempt would offer the same ranges.
        if ranges.contains(where: { !kept.contains($0.addressable) }) { movements += 1 }
        return actions + plan()
    }

    /// Plans again for the readers that want a range whose bytes are gone.
    private mutating func requestAgain(_ range: Range<Int64>, _ actions: inout [Action]) {
        for id in transfers.headless(in: range, of: stored) { discard(id, &actions) }
        readers.enqueue(wanting: range)
    }

    // MARK: - Closing

    /// The shell is closing. No transfer starts, and transfers are cancelled unless they are nearly done.
    mutating func close() -> [Action] {
        isClosing = true
        var actions: [Action] = []
        wakeConcerned(&actions)
        readers.clearQueue()
        for id in transfers.ids {
            guard let transfer = transfers[id], transfer.isLive else { continue }
            guard transfer.isStreaming, transfer.isNearlyDone else {
                cancel(id, &actions)
                continue
            }
            transfers.update(id) { $0.note(.drains) }
            resume(id, &actions)
        }
        return actions
    }

    /// The transfers that were nearly done at closing took too long.
    mutating func cancelAll() -> [Action] {
        guard isClosing else { return [] }
        var actions: [Action] = []
        for id in transfers.ids { cancel(id, &actions) }
        return actions
    }

    /// A resource that is closing is opened again.
    mutating func reopen() -> [Action] {
        guard isClosing else { return [] }
        isClosing = false
        for id in readers.ids { readers.enqueue(id) }
        return plan()
    }

    /// Plans again after a change that may concern every reader.
    private mutating func reconsider() -> [Action] {
        var actions: [Action] = []
        readers.renewDemands(readAhead)
        wakeConcerned(&actions)
        return actions + plan()
    }
}
