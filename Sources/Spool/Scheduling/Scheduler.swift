import ByteRanges
import Foundation
import SpoolScheduling
import SpoolStorage
import Synchronization

/// The scheduler of one open resource. It starts and cancels transfers, wakes readers, and sets timers, as its
/// ``Planner`` decides.
///
/// The scheduler does not read or write bytes, and does not depend on the origin. One lock guards all state that has to
/// change together. The lock is held for one step of the machine and while the tasks of new transfers are created. All
/// other actions are performed after unlocking. No closure from a caller runs under the lock.
///
/// The scheduler's operations for other types are in `Scheduler+Readers`, `Scheduler+Transfers` and
/// `Scheduler+Versions`. Only these extensions and tests use ``feed(_:)``, ``ask`` and ``inspect(_:)``.
final class Scheduler: Sendable {
    /// The functions through which the machine's actions affect other types. They are called without the lock.
    struct Handlers: Sendable {
        /// A function that runs a transfer until it has ended, and reports that it has ended.
        var run: @Sendable (TransferStart) async -> Void
        /// A function that is called with the position of a transfer when the transfer is cancelled.
        var cancelled: @Sendable (Int64) -> Void
        /// A function that is called when a player starts or stops waiting for this resource.
        var playbackWaits: @Sendable (Bool) -> Void
    }

    struct State: ~Copyable {
        var machine: Planner
        /// The current version, for whose bytes the machine plans requests.
        var lease: Lease?
        /// Whether a response has just started the current version, and its freshness is not recorded yet.
        var isJustReceived = false
        var readers: [ReaderID: ReaderContext] = [:]
        var versions = ReaderVersions()
        var failures: [FailureID: CacheError] = [:]
        /// The credentials of the last reader that was opened, for requests whose reader has been closed.
        var credentials: SourceCredentials
        /// Whether bytes for the last reader that was opened may be stored.
        var mayKeep = true
        fileprivate var handlers: Handlers?
        fileprivate var transfers: [TransferID: Task<Void, Never>] = [:]
        fileprivate var holds: [TransferID: CheckedContinuation<Void, Never>] = [:]
        /// The transfers for preloads that wait for a connection. They are resumed when a player waits for their bytes.
        fileprivate var connectionWaiters: [TransferID: CheckedContinuation<Void, Never>] = [:]
        fileprivate var idleWaiters: [CheckedContinuation<Void, Never>] = []
        fileprivate var isPlaybackWaiting = false

        /// Records that the task of a transfer has ended.
        mutating func removeTransfer(_ id: TransferID) { transfers[id] = nil }
    }

    private let state: Mutex<State>
    private let revisions = Atomic(0)
    private let unserved: UnservedBytes
    private let clock: CacheClock
    private let executor: BlockingExecutor
    private let closed = Atomic(false)

    /// Creates a scheduler that acts as `machine` decides.
    ///
    /// - Parameter unserved: The object that tracks stored bytes that no reader has read yet.
    init(
        machine: consuming Planner, credentials: SourceCredentials, unserved: UnservedBytes, clock: CacheClock,
        executor: BlockingExecutor
    ) {
        self.state = Mutex(State(machine: machine, credentials: credentials))
        self.unserved = unserved
        self.clock = clock
        self.executor = executor
    }

    /// Sets the handlers that perform actions. This method is called once, before the first input.
    func attach(_ handlers: Handlers) { state.withLock { $0.handlers = handlers } }

    /// Feeds the machine under the lock and performs its actions afterwards.
    func feed(_ input: (inout State) -> [Planner.Action]) { ask { ((), input(&$0)) } }

    /// Feeds the machine as ``feed(_:)`` does, for an input that also has a result.
    ///
    /// - Parameter report: A function that reports the result. It is called after unlocking, before readers are woken.
    func ask<R: Sendable>(
        reporting report: (R) -> Void = { _ in }, _ input: (inout State) -> (R, [Planner.Action])
    ) -> R {
        let (result, effects) = state.withLock { state -> (R, Effects) in
            let (result, actions) = input(&state)
            return (result, Effects(actions, &state, self))
        }
        report(result)
        effects.perform(self)
        return result
    }

    /// The number of changes to the current version and its freshness. It increases only under the lock. A decision on
    /// the use of the version is valid if it was made after the last change.
    var revision: Int { revisions.load(ordering: .acquiring) }

    /// Makes earlier decisions on the use of the current version invalid. The caller holds the lock.
    func recordRevision() { revisions.add(1, ordering: .acquiringAndReleasing) }

    /// Counts bytes that readers may read after this step, and could not read before. The caller holds the lock.
    func count(_ fresh: ByteRangeSet, isStored: Bool) { unserved.add(fresh, isStored: isStored) }

    /// Reads the state, or changes a part of it that the plan does not depend on.
    func inspect<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: - Effects

    /// The actions to perform after unlocking.
    private struct Effects {
        var waiters: [CheckedContinuation<Void, Never>] = []
        var cancelled: [(task: Task<Void, Never>, position: Int64)] = []
        var timers: [(id: TimerID, delay: Duration)] = []
        var playbackWaits: Bool?
        var handlers: Handlers?

        init(_ actions: [Planner.Action], _ state: inout State, _ scheduler: Scheduler) {
            for action in actions {
                switch action {
                case .start(let id, let lower, let upper, let reader):
                    let start = TransferStart(id, lower: lower, upper: upper, for: reader, in: state)
                    state.transfers[id] = state.handlers.map { scheduler.run(start, $0) }
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
            if !state.connectionWaiters.isEmpty {
                for id in Array(state.connectionWaiters.keys) where state.machine.isAwaitedByPlayer(id) {
                    if let waiter = state.connectionWaiters.removeValue(forKey: id) { waiters.append(waiter) }
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
                // The handler is called first, because the cache may end with its last transfer.
                handlers?.cancelled(position)
                task.cancel()
            }
            // The handler is called before a player is woken. Otherwise, the player's next request could pause a
            // preload because the player still seems to be waiting.
            if let playbackWaits { handlers?.playbackWaits(playbackWaits) }
            for waiter in waiters { waiter.resume() }
            for (id, delay) in timers { scheduler.setTimer(id, delay) }
        }
    }

    private func run(_ start: TransferStart, _ handlers: Handlers) -> Task<Void, Never> {
        Task(executorPreference: executor.executor(for: .storing)) { await handlers.run(start) }
    }

    private func setTimer(_ id: TimerID, _ delay: Duration) {
        Task(executorPreference: executor.executor(for: .storing)) { [weak self, clock] in
            // The timer is never cancelled. It has no effect if it is no longer needed.
            guard (try? await clock.sleep(delay)) != nil, let self else { return }
            feed { $0.machine.timerFired(id, now: clock.elapsed()) }
        }
    }

    // MARK: - Waiting

    /// Waits until a reader that has to wait is woken. Returns immediately if it has been woken already.
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

    /// The permission to receive the next bytes of a transfer, and the version that stores them.
    struct Piece: Sendable {
        var permission: Planner.Permission
        /// The version that stores the bytes, or `nil` if no more bytes of the transfer may be stored.
        var lease: Lease?
        /// Whether a reader waits for bytes of the transfer.
        var isAwaited: Bool
    }

    /// Returns whether a player waits for bytes of the transfer, or the transfer has ended.
    func isAwaitedByPlayer(_ id: TransferID) -> Bool { state.withLock { $0.machine.isAwaitedByPlayer(id) } }

    /// Returns what a transfer may do with its next bytes.
    func piece(_ id: TransferID) -> Piece {
        state.withLock { state in
            Piece(
                permission: state.machine.permission(id), lease: state.machine.isStale(id) ? nil : state.lease,
                isAwaited: state.machine.isAwaited(id))
        }
    }

    /// Waits until a paused transfer is resumed or cancelled.
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

    /// Waits until a player waits for a transfer's bytes, or the task is cancelled.
    func waitForPlaybackPriority(_ id: TransferID) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.machine.isAwaitedByPlayer(id) { return true }
                    state.connectionWaiters[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.connectionWaiters.removeValue(forKey: id) }?.resume()
        }
    }

    /// Waits until no transfer is in progress.
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

    /// Whether readers have to stop, even if their bytes are stored.
    var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// Ends readers, even if their bytes are stored. This method is called once, when the cache is closed.
    func endReaders() { closed.store(true, ordering: .relaxed) }

    /// Waits for transfers that are nearly done, for at most `drainTimeout`, cancels the others, and waits until all
    /// have ended.
    ///
    /// - Parameter closing: The close operation. It has no effect if it was already superseded. If it is superseded
    ///   later, ``reopen()`` follows.
    func close(drainTimeout: Duration, _ closing: ResourceClosing) async {
        let isOvertaken = ask { closing.isOvertaken ? (true, []) : (false, $0.machine.close()) }
        guard !isOvertaken else { return }
        let deadline = Task(executorPreference: executor.executor(for: .storing)) { [clock] in
            try await clock.sleep(drainTimeout)
            self.feed { $0.machine.cancelAll() }
        }
        await waitUntilIdle()
        deadline.cancel()
    }
}

/// One close operation of a resource. It is superseded if the resource is opened again. If it has not started by then,
/// it has no effect.
final class ResourceClosing: Sendable {
    private let overtaken = Atomic(false)

    var isOvertaken: Bool { overtaken.load(ordering: .acquiring) }

    func overtake() { overtaken.store(true, ordering: .releasing) }
}
