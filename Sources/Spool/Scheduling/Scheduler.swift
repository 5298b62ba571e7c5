import ByteRanges
import Foundation
import SpoolStorage
import Synchronization

/// Keeps one open media file moving: feeds its ``StateMachine``, starts and cancels transfers, wakes readers, sets
/// timers.
///
/// It decides nothing (the machine does), touches no byte (``Generation`` does) and knows no origin. Everything that has
/// to change together stands in one ``State`` behind one lock, held for a step of the machine; actions are performed
/// after it is let go.
final class Scheduler: Sendable {
    /// What the machine's actions lead to, beside readers that wake; called without the lock.
    struct Handlers: Sendable {
        /// Runs a transfer to its end, and tells how it ended.
        var run: @Sendable (TransferStart) async -> Void
        /// A transfer was given up where it stood.
        var cancelled: @Sendable (Int64) -> Void
        /// Players begin to wait here, or none does any more.
        var playbackWaits: @Sendable (Bool) -> Void
    }

    /// A request that is to be sent.
    struct TransferStart: Sendable {
        var id: TransferID
        var lower: Int64
        var upper: Int64?
        /// Whose reader caused it.
        var credentials: SourceCredentials
        var priority: Priority
        /// Whether its reader lets what it brings be kept.
        var mayKeep = true

        /// What is asked for; to `Int64.max` where that is all there is.
        var range: Range<Int64> { lower..<max(lower, upper ?? .max) }

        /// What is asked for, in words.
        var rangeInWords: String { range.inWords }
    }

    struct State: ~Copyable {
        var machine: StateMachine
        /// The version whose bytes the machine plans.
        var lease: Lease?
        var readers: [ReaderID: ReaderPlace] = [:]
        var versions = ReaderVersions()
        var failures: [FailureID: CacheError] = [:]
        /// Those of whoever opened a reader last, for what no reader that is still there has caused.
        var credentials: SourceCredentials
        fileprivate var handlers: Handlers?
        fileprivate var transfers: [TransferID: Task<Void, Never>] = [:]
        fileprivate var holds: [TransferID: CheckedContinuation<Void, Never>] = [:]
        /// Transfers that somebody preloads with, and who is to be told when a player waits for them.
        fileprivate var hurries: [TransferID: CheckedContinuation<Void, Never>] = [:]
        fileprivate var idleWaiters: [CheckedContinuation<Void, Never>] = []
        fileprivate var isPlaybackWaiting = false
    }

    private let state: Mutex<State>
    private let clock: CacheClock
    private let executor: BlockingExecutor
    private let closed = Atomic(false)

    init(
        machine: consuming StateMachine, credentials: SourceCredentials, clock: CacheClock, executor: BlockingExecutor
    ) {
        self.state = Mutex(State(machine: machine, credentials: credentials))
        self.clock = clock
        self.executor = executor
    }

    /// Says what actions lead to; once, before anything is fed.
    func attach(_ handlers: Handlers) { state.withLock { $0.handlers = handlers } }

    /// Feeds the machine under the lock and performs its actions afterwards.
    func feed(_ input: (inout State) -> [StateMachine.Action]) {
        ask { ((), input(&$0)) }
    }

    /// As ``feed(_:)``, for an input that has a result beside what is to be done.
    ///
    /// - Parameter tell: Called without the lock, before anybody wakes: who hears of it hears of it in order.
    func ask<R: Sendable>(
        telling tell: (R) -> Void = { _ in }, _ input: (inout State) -> (R, [StateMachine.Action])
    ) -> R {
        let (result, effects) = state.withLock { state -> (R, Effects) in
            let (result, actions) = input(&state)
            return (result, Effects(actions, &state, self))
        }
        tell(result)
        effects.perform(self)
        return result
    }

    /// Looks at the state; what is asked here changes nothing of the plan.
    func look<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: - Effects

    /// What is left to do after unlocking.
    private struct Effects {
        var waiters: [CheckedContinuation<Void, Never>] = []
        var cancelled: [(task: Task<Void, Never>, position: Int64)] = []
        var timers: [(id: TimerID, delay: Duration)] = []
        var playbackWaits: Bool?
        var handlers: Handlers?

        init(_ actions: [StateMachine.Action], _ state: inout State, _ scheduler: Scheduler) {
            for action in actions {
                switch action {
                case .start(let id, let lower, let upper, let reader):
                    state.transfers[id] = scheduler.start(id, lower: lower, upper: upper, for: reader, &state)
                case .cancel(let id):
                    if let task = state.transfers[id] { cancelled.append((task, state.machine.position(of: id) ?? 0)) }
                    if let hold = state.holds.removeValue(forKey: id) { waiters.append(hold) }
                case .resume(let id):
                    if let hold = state.holds.removeValue(forKey: id) { waiters.append(hold) }
                case .wake(let id):
                    waiters += state.readers[id]?.takeWaiters() ?? []
                case .setTimer(let id, let delay):
                    timers.append((id, delay))
                case .discard(let id):
                    state.failures[id] = nil
                }
            }
            if !state.hurries.isEmpty {
                for id in Array(state.hurries.keys) where state.machine.isAwaitedByPlayer(id) {
                    if let hurry = state.hurries.removeValue(forKey: id) { waiters.append(hurry) }
                }
            }
            if state.transfers.isEmpty, !state.idleWaiters.isEmpty {
                waiters += state.idleWaiters
                state.idleWaiters = []
            }
            if state.isPlaybackWaiting != state.machine.isPlaybackWaiting {
                state.isPlaybackWaiting.toggle()
                playbackWaits = state.isPlaybackWaiting
            }
            handlers = state.handlers
        }

        func perform(_ scheduler: Scheduler) {
            for (task, position) in cancelled {
                // First: the last transfer's end may be the cache's.
                handlers?.cancelled(position)
                task.cancel()
            }
            // Before a player wakes: what it does next must not find that it waits still, and hold a preload for that.
            if let playbackWaits { handlers?.playbackWaits(playbackWaits) }
            for waiter in waiters { waiter.resume() }
            for (id, delay) in timers { scheduler.setTimer(id, delay) }
        }
    }

    private func start(
        _ id: TransferID, lower: Int64, upper: Int64?, for reader: ReaderID, _ state: inout State
    ) -> Task<Void, Never>? {
        guard let handlers = state.handlers else { return nil }
        let place = state.readers[reader]
        let start = TransferStart(
            id: id, lower: lower, upper: upper, credentials: place?.credentials ?? state.credentials,
            priority: place?.priority ?? .playback, mayKeep: place?.mayKeep ?? true)
        return Task(executorPreference: executor.executor(for: .landing)) { await handlers.run(start) }
    }

    private func setTimer(_ id: TimerID, _ delay: Duration) {
        Task(executorPreference: executor.executor(for: .landing)) { [weak self, clock] in
            // Cancelled by nobody: a timer that is not wanted any more finds nothing to do.
            guard (try? await clock.sleep(delay)) != nil, let self else { return }
            feed { $0.machine.timerFired(id, now: clock.elapsed()) }
        }
    }

    // MARK: - Waiting

    /// Waits until a reader is woken that was told to wait. Returns at once if it has been woken since.
    ///
    /// - Parameter waitsForHeaders: Whether the reader is also woken when a response has been evaluated.
    func wait(for id: ReaderID, orHeaders waitsForHeaders: Bool = false) async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.machine.isWaiting(id), state.readers[id] != nil,
                    state.versions.awaitsHead(id) || !waitsForHeaders
                else { return false }
                state.readers[id]?.wait(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// Permission to take the next bytes of a transfer, and the version that stores them.
    struct Piece: Sendable {
        var permission: StateMachine.Permission
        /// `nil` if no more bytes of the transfer may be stored.
        var lease: Lease?
        /// Whether a reader waits for bytes of the transfer.
        var isAwaited: Bool
    }

    /// Returns what a transfer may do with its next bytes.
    func piece(_ id: TransferID) -> Piece {
        state.withLock { state in
            Piece(
                permission: state.machine.permission(id), lease: state.machine.isStale(id) ? nil : state.lease,
                isAwaited: state.machine.isAwaited(id))
        }
    }

    /// Waits until a held transfer may go on, or is cancelled.
    func hold(_ id: TransferID) async {
        await withCheckedContinuation { continuation in
            let mayGo = state.withLock { state in
                guard state.machine.isHeld(id) else { return true }
                state.holds[id] = continuation
                return false
            }
            if mayGo { continuation.resume() }
        }
    }

    /// Waits until a player waits for what a transfer brings, or the task is cancelled.
    func waitForHurry(_ id: TransferID) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.machine.isAwaitedByPlayer(id) { return true }
                    state.hurries[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.hurries.removeValue(forKey: id) }?.resume()
        }
    }

    /// The transfer's task is over; `input` tells the machine how it ended. A failure that follows has the error
    /// `error`; `tell` hears what becomes of it before its readers do.
    func ended(
        _ id: TransferID, error: CacheError?, telling tell: (StateMachine.Outcome) -> Void,
        _ input: (inout State) -> (StateMachine.Outcome, [StateMachine.Action])
    ) {
        _ = ask(telling: tell) { state in
            state.transfers[id] = nil
            let (outcome, actions) = input(&state)
            if case .failed(let failure) = outcome { state.failures[failure] = error }
            return (outcome, actions)
        }
    }

    /// Waits until no transfer is in flight.
    func waitUntilIdle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.transfers.isEmpty { return true }
                state.idleWaiters.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Whether readers are to stop, also in what has landed.
    var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// Readers end, also in what has landed; asked once, when the cache closes.
    func endReaders() { closed.store(true, ordering: .relaxed) }

    /// Waits for what is nearly done, within `drainTime`, cancels the rest, and waits for both.
    ///
    /// - Parameter isWanted: Whether it has been opened again meanwhile: asked in the same step, so that no reader meets a
    ///   closing that it has overtaken.
    func close(drainTime: Duration, unless isWanted: () -> Bool = { false }) async {
        let isOvertaken = ask { state in isWanted() ? (true, []) : (false, state.machine.close()) }
        guard !isOvertaken else { return }
        let deadline = Task(executorPreference: executor.executor(for: .landing)) { [clock] in
            try await clock.sleep(drainTime)
            self.feed { $0.machine.cancelAll() }
        }
        await waitUntilIdle()
        deadline.cancel()
    }
}
