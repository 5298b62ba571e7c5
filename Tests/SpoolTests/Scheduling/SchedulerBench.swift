import ByteRanges

@testable import Spool
@testable import SpoolScheduling

let kib: Int64 = 1 << 10
let mib: Int64 = 1 << 20

/// A test double for the class that drives a scheduler's state machine. It passes one input at a time, and records the
/// resulting actions.
final class SchedulerBench {
    typealias Action = Planner.Action
    typealias Outcome = Planner.Outcome
    typealias Permission = Planner.Permission
    typealias ReadDecision = Planner.ReadDecision

    var machine: Planner
    /// The time of the next input.
    var now = Duration.zero
    /// The requests that have not ended, including cancelled requests.
    private(set) var asked: [TransferID: (lower: Int64, upper: Int64?)] = [:]
    /// The reader that each request was sent for.
    private(set) var askedFor: [TransferID: ReaderID] = [:]
    /// The running timers, for cancelling unneeded transfers and for retries.
    private(set) var delays: [TimerID] = []
    private(set) var retries: [(id: TimerID, after: Duration, due: Duration)] = []
    private(set) var woken: Set<ReaderID> = []
    private(set) var resumed: Set<TransferID> = []
    /// The failures that a reader may receive.
    private(set) var remembered: Set<FailureID> = []
    /// All actions since the bench was created.
    private(set) var actions: [Action] = []

    init(
        length: Int64? = 100 * mib, storedRanges: ByteRangeSet = ByteRangeSet(), window: Int64 = 32 * mib,
        retries: Int = 5, policy: ReadAheadPolicy = ReadAheadPolicy(), needsValidation: Bool = false
    ) {
        var retryPolicy = RetryPolicy()
        retryPolicy.maximumRetryCount = retries
        machine = Planner(policy: policy, retryPolicy: retryPolicy, window: window)
        perform(machine.opened(storedRanges: storedRanges, length: length, needsValidation: needsValidation))
    }

    @discardableResult
    func perform(_ new: [Action]) -> [Action] {
        actions += new
        for action in new {
            switch action {
            case .start(let id, let lower, let upper, let reader):
                asked[id] = (lower, upper)
                askedFor[id] = reader
            case .cancel: break
            case .resume(let id): resumed.insert(id)
            case .wake(let id): woken.insert(id)
            case .setTimer(let id, let after):
                if machine.plan.failures.place(awaiting: id) == nil {
                    delays.append(id)
                } else {
                    retries.append((id, after, now + after))
                }
            case .discard(let id): remembered.remove(id)
            }
        }
        return new
    }

    // MARK: - Queries (macros can't take noncopyable values)

    /// All readers, the oldest first.
    var readers: [(id: ReaderID, state: ReaderState)] {
        machine.plan.readers.ids.compactMap { id in machine.plan.readers[id].map { (id, $0) } }
    }
    /// All transfers, the oldest first.
    var transfers: [(id: TransferID, state: TransferState)] {
        machine.plan.transfers.ids.compactMap { id in machine.plan.transfers[id].map { (id, $0) } }
    }
    var storedRanges: ByteRangeSet { machine.storedRanges }
    var length: Int64? { machine.length }
    var isPlaybackWaiting: Bool { machine.isPlaybackWaiting }
    func isCancelled(_ id: TransferID) -> Bool { machine.isCancelled(id) }
    func isStale(_ id: TransferID) -> Bool { machine.isStale(id) }
    func isHeld(_ id: TransferID) -> Bool { machine.isHeld(id) }
    func isAwaited(_ id: TransferID) -> Bool { machine.isAwaited(id) }
    func isValidation(_ id: TransferID) -> Bool { machine.isValidation(id) }
    func position(of id: TransferID) -> Int64? { machine.position(of: id) }
    func permission(_ id: TransferID) -> Permission { machine.permission(id) }
    func offerEvictable(_ count: Int64, positions: [ReaderID: Int64] = [:]) -> [Range<Int64>] {
        machine.offerEvictable(count, positions: positions)
    }

    // MARK: - Readers

    /// Opens a reader, makes it read once, and returns its identifier.
    @discardableResult
    func open(at start: Int64, end: Int64? = nil, _ priority: Priority = .playback) -> ReaderID {
        let (id, actions) = machine.openReader(at: start, end: end, priority: priority, now: now)
        perform(actions)
        read(id)
        return id
    }

    /// Reads at the reader's position, and returns the decision.
    @discardableResult
    func read(_ id: ReaderID, limit: Int64 = 256 << 10) -> ReadDecision {
        woken.remove(id)
        let (decision, actions) = machine.read(id, limit: limit, now: now)
        perform(actions)
        return decision
    }

    /// Returns only the range of stored bytes at the reader's position, without the offset up to which planning is not
    /// needed.
    func found(_ id: ReaderID, limit: Int64 = 256 << 10) -> Range<Int64>? {
        if case .stored(let range, _) = read(id, limit: limit) { range } else { nil }
    }

    func advance(_ id: ReaderID, to position: Int64) { perform(machine.advance(id, to: position, now: now)) }

    /// Reads all stored bytes that follow the reader's position.
    func take(_ id: ReaderID) {
        while case .stored(let range, _) = read(id) { advance(id, to: range.upperBound) }
    }

    func close(_ id: ReaderID) { perform(machine.closeReader(id)) }

    // MARK: - Transfers

    /// The ranges of requests that have neither ended nor been cancelled, by offset.
    var live: [Range<Int64>] {
        asked.filter { !machine.isCancelled($0.key) }.map { $0.value.lower..<($0.value.upper ?? .max) }
            .sorted { ($0.lowerBound, $0.upperBound) < ($1.lowerBound, $1.upperBound) }
    }

    var liveIDs: [TransferID] { asked.keys.filter { !machine.isCancelled($0) }.sorted() }

    /// Returns the transfer whose request starts at `lower`.
    func transfer(at lower: Int64) -> TransferID? {
        asked.filter { $0.value.lower == lower && !machine.isCancelled($0.key) }.keys.min()
    }

    /// Reports that a transfer has a connection. Returns whether it may send its request.
    func maySendRequest(_ id: TransferID) -> Bool {
        let (maySendRequest, actions) = machine.maySendRequest(id)
        perform(actions)
        return maySendRequest
    }

    /// Starts the response to a request. The response contains the requested range or less.
    func stream(_ id: TransferID, end: Int64? = nil) {
        guard let (asked, upper) = asked[id] else { return }
        let end = end ?? upper ?? machine.length
        // Bytes are stored from the start of a block, or after its stored bytes.
        let block = Block.roundDown(asked)
        let lower = block == asked || machine.storedRanges.contains(block..<asked) ? asked : Block.roundUp(asked)
        perform(machine.responseStarted(id, at: lower, end: end, isWhole: false, isSequential: false))
    }

    /// Starts a response that contains the whole body.
    func streamWhole(_ id: TransferID, isSequential: Bool) {
        perform(
            machine.responseStarted(id, at: 0, end: machine.length, isWhole: true, isSequential: isSequential))
    }

    /// Receives up to `count` bytes if this is permitted, and returns the permission.
    @discardableResult
    func store(_ id: TransferID, _ count: Int64) -> Permission {
        resumed.remove(id)
        let permission = machine.permission(id)
        switch permission {
        case .proceed(let limit):
            guard let position = machine.position(of: id) else { return .stop }
            let upper = min(position + count, limit)
            perform(machine.stored(position..<upper, by: id, now: now))
        case .hold: break
        case .stop: end(id)
        }
        return permission
    }

    /// Starts a response and receives all of its bytes.
    func finish(_ id: TransferID, piece: Int64 = 64 << 10) {
        stream(id)
        for _ in 0..<10_000 {
            guard case .proceed = store(id, piece) else { return }
        }
    }

    /// Reports that there is no space for the next bytes.
    @discardableResult
    func lackSpace(_ id: TransferID) -> Permission {
        resumed.remove(id)
        let (permission, actions) = machine.transferLacksSpace(id)
        perform(actions)
        return permission
    }

    @discardableResult
    func end(_ id: TransferID) -> Outcome { over(id, machine.transferEnded(id, now: now)) }

    @discardableResult
    func interrupt(_ id: TransferID, retryAfter: Duration? = nil, jitter: Double = 0) -> Outcome {
        over(id, machine.transferInterrupted(id, retryAfter: retryAfter, jitter: jitter, now: now))
    }

    @discardableResult
    func refuse(_ id: TransferID, isCredentialFailure: Bool = false) -> Outcome {
        over(id, machine.transferRefused(id, isCredentialFailure: isCredentialFailure, now: now))
    }

    @discardableResult
    func restart(_ id: TransferID) -> Outcome { over(id, machine.transferRestarts(id, now: now)) }

    private func over(_ id: TransferID, _ result: (outcome: Outcome, actions: [Action])) -> Outcome {
        asked[id] = nil
        if case .failed(let failure) = result.outcome { remembered.insert(failure) }
        perform(result.actions)
        return result.outcome
    }

    /// Ends the tasks of cancelled transfers.
    func reap() {
        for id in asked.keys.filter({ machine.isCancelled($0) }).sorted() { end(id) }
    }

    // MARK: - Timers

    /// Fires the timers that cancel unneeded transfers.
    func endDelays() {
        let due = delays
        delays = []
        for timer in due { perform(machine.timerFired(timer, now: now)) }
    }

    /// Fires one timer.
    func fire(_ timer: TimerID) {
        retries.removeAll { $0.id == timer }
        perform(machine.timerFired(timer, now: now))
    }

    /// Fires the timers of all retries.
    func retryNow() {
        let due = retries
        retries = []
        for retry in due {
            now = max(now, retry.due)
            perform(machine.timerFired(retry.id, now: now))
        }
    }
}

extension ByteRangeSet {
    init(_ ranges: Range<Int64>...) {
        self.init()
        for range in ranges { insert(range) }
    }
}

extension Planner {
    mutating func responseStarted(
        _ id: TransferID, at offset: Int64, end: Int64?, isWhole: Bool, isSequential: Bool
    ) -> [Action] {
        let support: RangeSupport? = isSequential ? .unsupported : nil
        return responseStarted(id, ResponseBody(offset: offset, end: end, isWhole: isWhole, support: support))
    }
}
