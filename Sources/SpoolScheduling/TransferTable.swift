import ByteRanges

/// The requests of one open resource that are in progress, and the ends of earlier requests.
///
/// The table determines where each transfer stops: at its end, at stored bytes, or at the next transfer. It does not
/// depend on the readers. No two transfers fetch the same byte, except that a transfer of the whole body passes over
/// all bytes.
struct TransferTable {
    private var transfers: [TransferID: TransferState] = [:]
    /// The offsets at which the most recent requests ended, each with the size of the next request at that offset.
    private var runs: [Run] = []
    private let initialRequestSize: Int64
    private var maximumRequestSize: Int64
    /// Whether the origin has rejected a request with an open end.
    private(set) var hasOpenEndLimit = false
    /// Whether a transfer was cancelled because another request needed its connection.
    var takesTurns = false
    /// Whether the origin has rejected a request, perhaps because of its size.
    private var isSizeLimited = false

    /// An offset at which a request has ended, and the size of the next request at that offset.
    private struct Run {
        var end: Int64
        var nextSize: Int64
    }

    /// The maximum number of offsets in `runs`.
    private static let runLimit = 16

    /// The minimum number of new bytes in a response that ends early. A response with fewer new bytes counts as a
    /// failure. Some origins limit the size of a part, so a shorter response may be correct.
    private static let smallestPart: Int64 = 1024

    init(_ policy: ReadAheadPolicy) {
        initialRequestSize = policy.initialRequestSize
        maximumRequestSize = policy.maximumRequestSize
    }

    // MARK: - Lookup

    subscript(id: TransferID) -> TransferState? { transfers[id] }

    /// All transfers, oldest first.
    var ids: [TransferID] { transfers.keys.sorted() }

    /// All transfers, in no particular order.
    var states: some Collection<TransferState> { transfers.values }

    var liveCount: Int { transfers.values.count(where: \.isLive) }

    /// Returns the lowest position of all transfers of a whole body other than `id`.
    func firstSequentialPosition(except id: TransferID) -> Int64? {
        transfers.filter { $0.key != id && $0.value.isSequential && $0.value.isLive }.values.map(\.position).min()
    }

    /// Returns whether a transfer other than `id` satisfies the condition.
    func contains(except id: TransferID?, where predicate: (TransferState) -> Bool) -> Bool {
        transfers.contains { $0.key != id && predicate($0.value) }
    }

    // MARK: - Start and end

    /// - Parameters:
    ///   - upper: The exclusive end; `nil` for the end of the resource.
    ///   - isSequential: Whether the whole body is requested, because the origin does not support ranges.
    ///   - reader: The reader that needs the bytes.
    mutating func begin(
        _ id: TransferID, at lower: Int64, upper: Int64?, isSequential: Bool, for reader: ReaderID,
        priority: Priority, isValidation: Bool, retrying place: FailedRanges.Number?
    ) {
        let size = upper.map { $0 - lower } ?? (isSequential ? maximumRequestSize : initialRequestSize)
        transfers[id] = TransferState(
            range: (lower, upper), size: size, isSequential: isSequential, reader: reader, priority: priority,
            isValidation: isValidation, place: place)
    }

    /// Removes a transfer, and records the size of the next request at its end.
    mutating func remove(_ id: TransferID) -> TransferState? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        runs.removeAll { $0.end == transfer.position }
        // A transfer that received nothing does not justify a larger request.
        let nextSize = transfer.hasStored ? grown(transfer.size) : transfer.size
        runs.append(Run(end: transfer.position, nextSize: nextSize))
        if runs.count > Self.runLimit { runs.removeFirst() }
        return transfer
    }

    /// Records that the origin rejected a request, perhaps because of its size. Returns whether a smaller request is
    /// worth trying.
    ///
    /// - Parameter areRangesSupported: Whether the origin has sent part of the resource. Otherwise, the origin may
    ///   reject all requests, and only a request with an open end is repeated.
    mutating func limitSize(after refused: TransferState, areRangesSupported: Bool) -> Bool {
        if refused.isOpenEnded, !refused.isSequential {
            defer { hasOpenEndLimit = true }
            return !hasOpenEndLimit
        }
        guard areRangesSupported, refused.size > initialRequestSize else { return false }
        isSizeLimited = true
        maximumRequestSize = min(maximumRequestSize, max(initialRequestSize, refused.size / 2))
        return true
    }

    /// Forgets the sizes of earlier requests, because another version becomes current.
    mutating func forgetRuns() { runs = [] }

    /// Changes the transfer, if it exists.
    @discardableResult
    mutating func update<R>(_ id: TransferID, _ change: (inout TransferState) -> R) -> R? {
        guard var transfer = transfers[id] else { return nil }
        defer { transfers[id] = transfer }
        return change(&transfer)
    }

    // MARK: - Reach

    /// Returns the offset at which the transfer has to stop: its end, or where stored bytes or another transfer start.
    func limit(of id: TransferID, _ transfer: TransferState, in stored: StoredRanges) -> Int64 {
        let position = transfer.position
        var limit = min(transfer.end ?? .max, stored.length ?? .max)
        if !transfer.isSequential, position < limit {
            let missing = stored.firstMissingRange(in: position..<limit)
            limit = missing.map { $0.lowerBound == position ? $0.upperBound : position } ?? position
        }
        for (other, state) in transfers
        where other != id && !state.isStale && state.isSequential == transfer.isSequential {
            if state.position > position { limit = min(limit, Block.roundDown(state.position)) }
            // A transfer that reaches the start of another transfer stops. If two transfers start at the same offset,
            // the newer one stops.
            let isFirst = transfer.hasStored == state.hasStored ? id < other : state.hasStored
            if state.position == position, !isFirst { limit = min(limit, position) }
        }
        limit = max(min(limit, Block.offsetLimit), position)
        // A body that can't be requested again from this offset would be lost if its transfer stopped.
        if transfer.isSequential { return limit }
        return stored.firstEvicting(in: Range(from: position, to: limit)) ?? limit
    }

    func limit(of id: TransferID, in stored: StoredRanges) -> Int64? {
        transfers[id].map { limit(of: id, $0, in: stored) }
    }

    /// The transfer that fetches the byte at an offset.
    enum Carrier {
        case transfer(TransferID, TransferState)
        /// A transfer that is about to end may still receive the byte. The bytes that it does not deliver are requested
        /// after that.
        case ending
        case none
    }

    func carrier(of offset: Int64, in stored: StoredRanges) -> Carrier {
        var best: (id: TransferID, state: TransferState)?
        for (id, transfer) in transfers where !transfer.isStale {
            guard transfer.position <= offset else { continue }
            if transfer.hasEndedShort, offset < Block.end(at: transfer.position) { return .ending }
            guard offset < transfer.end ?? .max, offset < limit(of: id, transfer, in: stored) else { continue }
            if !transfer.isLive { return .ending }
            guard let (other, state) = best else {
                best = (id, transfer)
                continue
            }
            if (transfer.position, other) > (state.position, id) { best = (id, transfer) }
        }
        return best.map { .transfer($0.id, $0.state) } ?? .none
    }

    /// Returns whether a live transfer fetches the byte at `run`.
    func fetches(_ run: Int64) -> Bool {
        transfers.values.contains { $0.isLive && $0.position <= run && run < $0.end ?? .max }
    }

    /// Returns the end of a request for a missing range. The size grows with each follow-up request, and the request
    /// does not contain bytes that are stored or being fetched.
    func upperBound(of missing: Range<Int64>, takes: Int64, in stored: StoredRanges) -> Int64 {
        let lower = missing.lowerBound
        var size = initialRequestSize
        if let run = runs.last(where: { $0.end == lower }) { size = min(run.nextSize, maximumRequestSize) }
        let previous = transfers.values.filter { $0.end == lower && $0.isLive }.map(\.size).max()
        if let previous { size = grown(previous) }
        var upper = lower + min(size, takes - lower)
        if upper < takes {
            upper = max(Block.roundDown(upper), min(Block.end(at: lower), takes))
        }
        return bounded(min(upper, missing.upperBound), from: lower, in: stored)
    }

    /// Returns the end of a request for an entire missing range, without the limit on its size. If the origin has
    /// rejected a request because of its size, the result is the same as that of ``upperBound(of:takes:in:)``.
    func longUpperBound(of missing: Range<Int64>, takes: Int64, in stored: StoredRanges) -> Int64 {
        guard !isSizeLimited else { return upperBound(of: missing, takes: takes, in: stored) }
        return bounded(missing.upperBound, from: missing.lowerBound, in: stored)
    }

    /// Returns the lowest of three offsets: `end`, the position of the next transfer, and the start of bytes that are
    /// being evicted.
    private func bounded(_ end: Int64, from lower: Int64, in stored: StoredRanges) -> Int64 {
        var upper = end
        for transfer in transfers.values where !transfer.isStale && transfer.position > lower {
            upper = min(upper, Block.roundDown(transfer.position))
        }
        return stored.firstEvicting(in: lower..<max(lower, upper)) ?? upper
    }

    private func grown(_ size: Int64) -> Int64 { min(max(size.adding(size), initialRequestSize), maximumRequestSize) }

    // MARK: - Progress

    /// Returns the offset before which all bytes that the transfer requested are stored. An origin may send different
    /// bytes.
    func reached(by transfer: TransferState, in stored: StoredRanges) -> Int64 {
        if transfer.isSequential { return transfer.position }
        guard let found = stored.prefix(at: transfer.start) else { return transfer.start }
        return min(found.upperBound, max(transfer.position, transfer.start))
    }

    /// Returns whether the transfer has ended with almost no bytes, even though more were requested and no other
    /// transfer fetches them.
    func isUnproductive(_ id: TransferID, _ transfer: TransferState, in stored: StoredRanges) -> Bool {
        guard transfer.isLive || transfer.startsAtOtherOffset, transfer.purpose != .answered else { return false }
        let length = stored.length ?? .max
        // Bytes at other offsets may be new, but the same request would return them again.
        if transfer.purpose == .bytes, reached(by: transfer, in: stored) <= transfer.start, transfer.start < length {
            return true
        }
        guard transfer.fresh < Self.smallestPart else { return false }
        let position = transfer.position
        guard transfer.hasStored else { return true }
        guard position < min(transfer.requestedEnd ?? .max, length) else { return false }
        var asked = transfer
        asked.resetEnd()
        return limit(of: id, asked, in: stored) > position
    }

    /// Returns the transfers that are inside a block of `range` whose first bytes are no longer stored. Such a block
    /// has to be requested again.
    func headless(in range: Range<Int64>, of stored: StoredRanges) -> [TransferID] {
        ids.filter { id in
            guard let position = transfers[id]?.position else { return false }
            let started = Range(from: Block.roundDown(position), to: position)
            return started.overlaps(range) && !stored.contains(started)
        }
    }
}

/// The properties of a body that the headers of its response report.
package struct ResponseBody: Equatable, Sendable {
    /// The offset at which the body's first byte is stored.
    package var offset: Int64
    /// The exclusive end of the body's bytes, or `nil` if it is not known.
    package var end: Int64?
    /// Whether the response contains the whole resource instead of the requested range.
    package var isWhole: Bool
    /// The origin's support for range requests, if the response shows it.
    package var support: RangeSupport?

    package init(offset: Int64, end: Int64? = nil, isWhole: Bool, support: RangeSupport? = nil) {
        self.offset = offset
        self.end = end
        self.isWhole = isWhole
        self.support = support
    }

    /// Whether the body is a part that can't be combined with the bytes of another response.
    package var isUnprovenPart: Bool { !isWhole && support == .unsupported }
}

/// The planner's state of one request in progress.
struct TransferState {
    /// The phase of a transfer. A transfer may end in any phase.
    enum Phase: Equatable {
        /// The response headers have not been received. → streaming, draining, stale
        case requesting(Interest)
        /// The body is being received. → draining, stale
        case streaming(Interest, Flow)
        /// The transfer was cancelled. Received bytes are still stored, and are not requested again in the meantime. →
        /// stale
        case draining
        /// The transfer's bytes belong to a different version, and none of them may be stored. → nothing
        case stale
    }

    /// Whether readers need the transfer's bytes.
    enum Interest: Equatable {
        /// A reader needs the bytes. → drains, unwanted
        case wanted
        /// No reader needs the bytes. The rest is so small that it was probably sent already, and is stored. → wanted
        case drains
        /// No reader needs the bytes. The transfer is paused, and is cancelled when the timer fires. → wanted
        case unwanted(TimerID)
    }

    enum Purpose: Equatable {
        /// The transfer fetches bytes for readers.
        case bytes
        /// The transfer validates the stored bytes. → `answered`
        case validation
        /// The transfer has validated the stored bytes.
        case answered
    }

    /// Whether the transfer receives the bytes that the origin sends.
    enum Flow: Equatable {
        /// The transfer receives bytes. → held, lacksSpace
        case flowing
        /// The transfer has been paused, and not resumed since. → flowing
        case held
        /// The transfer is paused until the number of movements exceeds this number. → flowing
        case lacksSpace(movements: Int)
    }

    private(set) var phase = Phase.requesting(.wanted)
    /// The start of the request.
    let start: Int64
    /// The offset of the next byte to store.
    private(set) var position: Int64
    /// The end of the bytes, exclusive; `nil` for the end of the body.
    private(set) var end: Int64?
    /// The end of the request, exclusive; `nil` for the end of the body.
    let requestedEnd: Int64?
    /// The size of the request. The next request, at its end, is twice as large.
    let size: Int64
    /// The reader that needs the bytes.
    let reader: ReaderID
    let priority: Priority
    private(set) var purpose: Purpose
    /// Whether the origin sends the whole body from its first byte. The position passes over stored bytes.
    private(set) var isSequential: Bool
    /// Whether the response contains all bytes of the resource.
    private var isWhole = false
    /// The number of received bytes that were missing when they were stored.
    private(set) var fresh: Int64 = 0
    private(set) var hasStored = false
    /// Whether the response starts at an offset other than the request's.
    private(set) var startsAtOtherOffset = false
    /// The failed range that the transfer requests again.
    private(set) var place: FailedRanges.Number?

    init(
        range: (lower: Int64, upper: Int64?), size: Int64, isSequential: Bool, reader: ReaderID, priority: Priority,
        isValidation: Bool, place: FailedRanges.Number?
    ) {
        start = range.lower
        position = range.lower
        end = range.upper
        requestedEnd = range.upper
        self.size = size
        self.reader = reader
        self.priority = priority
        purpose = isValidation ? .validation : .bytes
        self.isSequential = isSequential
        self.place = place
    }

    // MARK: - Questions

    /// Whether the transfer has neither been cancelled nor become stale.
    var isLive: Bool {
        switch phase {
        case .requesting, .streaming: true
        case .draining, .stale: false
        }
    }

    var isStale: Bool { phase == .stale }

    var isValidation: Bool { purpose == .validation }

    var isStreaming: Bool { if case .streaming = phase { true } else { false } }

    /// The interest of readers; `nil` if the transfer is not live.
    var interest: Interest? {
        switch phase {
        case .requesting(let interest), .streaming(let interest, _): interest
        case .draining, .stale: nil
        }
    }

    /// The flow of the body; `nil` if the transfer is not streaming.
    var flow: Flow? { if case .streaming(_, let flow) = phase { flow } else { nil } }

    /// Whether the transfer has been paused, and has not been resumed since.
    var isHeld: Bool {
        switch flow {
        case .held, .lacksSpace: true
        case .flowing, nil: false
        }
    }

    /// Whether no reader needs the transfer, and the rest of it is too large to be worth receiving.
    var isUnwanted: Bool { if case .unwanted = interest { true } else { false } }

    /// Whether the rest of a bounded range is at most as large as the buffers of two sockets. The origin has then
    /// probably sent it already.
    var isNearlyDone: Bool { end.map { $0 - position <= Self.socketBuffers } ?? false }

    static let socketBuffers: Int64 = 256 << 10

    /// Whether the transfer requests all bytes from its start to the end. Such a transfer is paused rather than
    /// cancelled, because another response may contain a different version.
    var isOpenEnded: Bool { requestedEnd == nil }

    /// Whether the response has ended inside a block, and the transfer has not been removed yet.
    ///
    /// The next request at that offset repeats the same bytes, and has to be counted as a retry.
    var hasEndedShort: Bool {
        guard isStreaming, position == end else { return false }
        return !hasStored || position % Block.size != 0
    }

    // MARK: - Changes

    mutating func note(_ interest: Interest) {
        switch phase {
        case .requesting: phase = .requesting(interest)
        case .streaming(_, let flow): phase = .streaming(interest, flow)
        case .draining, .stale: break
        }
    }

    /// Records that the response headers have been received.
    mutating func respond(_ body: ResponseBody, isSequential: Bool) {
        if case .requesting(let interest) = phase { phase = .streaming(interest, .flowing) }
        self.isSequential = isSequential
        isWhole = body.isWhole || isOpenEnded && body.offset == 0
        // The transfer has validated the stored bytes, and is now treated like any other transfer.
        if purpose == .answered { purpose = .bytes }
        startsAtOtherOffset = !body.isWhole && purpose == .bytes && body.offset != start
        position = min(max(body.offset, 0), Block.offsetLimit)
        let end = body.end.map { [position] in max($0, position) }
        self.end = body.isWhole ? end : (self.end.map { min($0, end ?? $0) } ?? end)
    }

    mutating func hold() { phase = .streaming(interest ?? .wanted, .held) }

    mutating func holdForSpace(movements: Int) {
        phase = .streaming(interest ?? .wanted, .lacksSpace(movements: movements))
    }

    mutating func resume() { if case .streaming(let interest, _) = phase { phase = .streaming(interest, .flowing) } }

    mutating func cancel() { phase = .draining }

    mutating func discard() { phase = .stale }

    /// Records that bytes have been stored, of which `fresh` were missing.
    mutating func store(_ range: Range<Int64>, fresh: Int64) {
        position = max(position, range.upperBound)
        hasStored = true
        self.fresh += fresh
    }

    /// Records that the origin does not support ranges, so that a whole body is the only source of its bytes.
    mutating func recordMissingRangeSupport() { if isWhole { isSequential = true } }

    /// Records that the transfer no longer counts as a retry.
    mutating func forgetPlace() { place = nil }

    /// Records that the stored bytes no longer have to be validated.
    mutating func recordAnswered() { if purpose == .validation { purpose = .answered } }

    /// Continues with the next block, because no byte of the current one is stored.
    mutating func skipToBlock() { position = Block.roundUp(position) }

    fileprivate mutating func resetEnd() { end = requestedEnd }
}
