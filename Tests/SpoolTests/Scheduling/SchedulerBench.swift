import ByteRanges

@testable import Spool

let kib: Int64 = 1 << 10
let mib: Int64 = 1 << 20

/// Plays the shell for a scheduler's state machine, one input at a time, and remembers what it was told to do.
final class SchedulerBench {
    typealias Action = Scheduler.StateMachine.Action

    var machine: Scheduler.StateMachine
    /// What has been asked of the origin and is not over, also if it was cut.
    private(set) var asked: [TransferID: (lower: Int64, upper: Int64?)] = [:]
    /// Grace periods that run.
    private(set) var graces: [(id: TransferID, epoch: Int)] = []
    /// Retries that are due.
    private(set) var retries: [(epoch: Int, after: Duration)] = []
    private(set) var woken: Set<ReaderID> = []
    private(set) var resumed: Set<TransferID> = []
    /// Everything since the bench was made.
    private(set) var actions: [Action] = []

    init(
        length: Int64? = 100 * mib, landed: ByteRangeSet = ByteRangeSet(), window: Int64 = 32 * mib,
        retries: Int = 5, policy: ReadAheadPolicy = ReadAheadPolicy(), needsValidation: Bool = false
    ) {
        var retryPolicy = RetryPolicy()
        retryPolicy.retries = retries
        machine = Scheduler.StateMachine(policy: policy, retryPolicy: retryPolicy, window: window)
        perform(machine.opened(landed: landed, length: length, needsValidation: needsValidation))
    }

    @discardableResult
    func perform(_ new: [Action]) -> [Action] {
        actions += new
        for action in new {
            switch action {
            case .start(let id, let lower, let upper): asked[id] = (lower, upper)
            case .cut: break
            case .resume(let id): resumed.insert(id)
            case .wake(let id): woken.insert(id)
            case .grace(let id, let epoch, _): graces.append((id, epoch))
            case .retry(let epoch, let after): retries.append((epoch, after))
            }
        }
        return new
    }

    // MARK: - Questions, since a macro can't take what can't be copied

    var landed: ByteRangeSet { machine.landed }
    var length: Int64? { machine.length }
    var hasGivenUp: Bool { machine.hasGivenUp }
    func isCut(_ id: TransferID) -> Bool { machine.isCut(id) }
    func isHeld(_ id: TransferID) -> Bool { machine.isHeld(id) }
    func isAwaited(_ id: TransferID) -> Bool { machine.isAwaited(id) }
    func position(of id: TransferID) -> Int64? { machine.position(of: id) }
    func permission(_ id: TransferID) -> Scheduler.StateMachine.Permission { machine.permission(id) }
    func release(_ count: Int64) -> [Range<Int64>] { machine.release(count) }

    // MARK: - Readers

    /// Opens a reader and lets it look once; what it finds.
    @discardableResult
    func open(at start: Int64, end: Int64? = nil, _ priority: Priority = .playback) -> ReaderID {
        let (id, actions) = machine.openReader(at: start, end: end, priority: priority)
        perform(actions)
        look(id)
        return id
    }

    @discardableResult
    func look(_ id: ReaderID, limit: Int64 = 256 << 10) -> Scheduler.StateMachine.Look {
        woken.remove(id)
        let (look, actions) = machine.look(id, limit: limit)
        perform(actions)
        return look
    }

    func advance(_ id: ReaderID, to position: Int64) { perform(machine.advance(id, to: position)) }

    /// Reads all that has landed before it; where the reader is then.
    func read(_ id: ReaderID) {
        while case .landed(let range) = look(id) { advance(id, to: range.upperBound) }
    }

    func close(_ id: ReaderID) { perform(machine.closeReader(id)) }

    // MARK: - Transfers

    /// The ranges asked for that are not over and not cut, by offset.
    var live: [Range<Int64>] {
        asked.filter { !machine.isCut($0.key) }.map { $0.value.lower..<($0.value.upper ?? .max) }
            .sorted { ($0.lowerBound, $0.upperBound) < ($1.lowerBound, $1.upperBound) }
    }

    var liveIDs: [TransferID] { asked.keys.filter { !machine.isCut($0) }.sorted() }

    /// The transfer that asked from `lower`.
    func transfer(at lower: Int64) -> TransferID? {
        asked.filter { $0.value.lower == lower && !machine.isCut($0.key) }.keys.min()
    }

    /// The head has come as asked.
    func stream(_ id: TransferID) {
        guard let (lower, upper) = asked[id] else { return }
        perform(
            machine.transferStreams(id, at: lower, end: upper ?? machine.length, isWhole: false, isSequential: false))
    }

    /// A whole body has come instead.
    func streamWhole(_ id: TransferID, isSequential: Bool) {
        perform(
            machine.transferStreams(id, at: 0, end: machine.length, isWhole: true, isSequential: isSequential))
    }

    /// Lands up to `count` bytes, as permitted; whether it went on.
    @discardableResult
    func land(_ id: TransferID, _ count: Int64) -> Scheduler.StateMachine.Permission {
        resumed.remove(id)
        let permission = machine.permission(id)
        switch permission {
        case .go(let limit):
            guard let position = machine.position(of: id) else { return .stop }
            let upper = min(position + count, limit)
            perform(machine.landed(position..<upper, by: id))
        case .hold: break
        case .stop: end(id)
        }
        return permission
    }

    /// Streams and lands the whole of a transfer.
    func finish(_ id: TransferID, piece: Int64 = 64 << 10) {
        stream(id)
        for _ in 0..<10_000 {
            guard case .go = land(id, piece) else { return }
        }
    }

    /// Its next bytes find no room.
    @discardableResult
    func lackSpace(_ id: TransferID) -> Scheduler.StateMachine.Permission {
        resumed.remove(id)
        let (permission, actions) = machine.transferLacksSpace(id)
        perform(actions)
        return permission
    }

    func end(_ id: TransferID) {
        asked[id] = nil
        perform(machine.transferEnded(id))
    }

    func fail(_ id: TransferID, retryAfter: Duration? = nil) {
        asked[id] = nil
        perform(machine.transferFailed(id, retryAfter: retryAfter, jitter: 0))
    }

    func refuse(_ id: TransferID) {
        asked[id] = nil
        perform(machine.transferRefused(id))
    }

    func restart(_ id: TransferID) {
        asked[id] = nil
        perform(machine.transferRestarts(id))
    }

    /// The task of a cut transfer ends.
    func reap() {
        for id in asked.keys.filter({ machine.isCut($0) }).sorted() { end(id) }
    }

    // MARK: - Timers

    /// Lets all grace periods end.
    func endGraces() {
        let due = graces
        graces = []
        for grace in due { perform(machine.graceEnded(grace.id, epoch: grace.epoch)) }
    }

    /// Lets all retries come due.
    func retryNow() {
        let due = retries
        retries = []
        for retry in due { perform(machine.retryDue(epoch: retry.epoch)) }
    }
}

extension ByteRangeSet {
    init(_ ranges: Range<Int64>...) {
        self.init()
        for range in ranges { insert(range) }
    }
}
