import ByteRanges
import Foundation
import HTTPRanges
import Synchronization

/// Keeps one open media file moving: feeds the state machine, runs its transfers, wakes its readers.
///
/// It decides nothing itself (``StateMachine`` does) and touches no byte (``Generation`` does). All state is behind
/// one lock; actions are performed, readers woken and events sent after it is let go.
package final class Scheduler: Sendable {
    /// A reader's place in the scheduler.
    struct ReaderBinding {
        var waiter: CheckedContinuation<Void, Never>?
        /// The version that the reader is in, once another has taken its place.
        var former: Generation?
        var position: Int64
        var end: Int64?
        var generation: Generation?
        var error: CacheError?
    }

    struct State: ~Copyable {
        var machine: StateMachine
        var generation: Generation?
        var readers: [ReaderID: ReaderBinding] = [:]
        var tasks: [TransferID: Task<Void, Never>] = [:]
        var holds: [TransferID: CheckedContinuation<Void, Never>] = [:]
        var failure: CacheError?
        var loading: Task<Void, any Error>?
        var isLoaded = false
        /// The address to ask, and how many have been resolved.
        var source: MediaSource.Address?
        var sourceNumber = 0
        var refreshing: Task<Void, any Error>?
        var hasRefreshed = false
        /// The opening that is under way; see ``OpenResources``.
        var opening = 1
        var unserved = ByteRangeSet()
        var statistics = Statistics()
        var isComplete = false
        var hasReportedFull = false
        var settled: [CheckedContinuation<Void, Never>] = []
        var requestFields: StoredFreshness?
    }

    let key: CacheKey
    let source: MediaSource
    let services: CacheServices
    /// Scheme, host and path, for messages.
    let address: String
    let state: Mutex<State>
    /// Responses are evaluated one at a time; held over calls to the catalog, on the blocking executor only.
    let evaluating = Mutex(())

    init(key: CacheKey, source: MediaSource, services: CacheServices) {
        self.key = key
        self.source = source
        self.services = services
        self.address = source.displayAddress
        self.state = Mutex(
            State(
                machine: StateMachine(
                    policy: services.configuration.readAhead, retryPolicy: services.configuration.retry,
                    window: services.window)))
    }

    // MARK: - Feeding the machine

    /// As ``feed(_:)``, for an input that responds something beside what is to be done.
    func ask<R: Sendable>(_ input: (inout State) -> (R, [StateMachine.Action])) -> R {
        let (result, effects) = state.withLock { state -> (R, Effects) in
            let (result, actions) = input(&state)
            return (result, Effects(actions, &state, self))
        }
        effects.perform(self)
        return result
    }

    /// Feeds the machine under the lock and acts on its response afterwards.
    func feed(_ input: (inout State) -> [StateMachine.Action]) {
        ask { ((), input(&$0)) }
    }

    /// What is left to do after unlocking.
    private struct Effects {
        var waiters: [CheckedContinuation<Void, Never>] = []
        var cut: [Task<Void, Never>] = []
        var cutAt: [Int64] = []
        var timers: [StateMachine.Action] = []
        var settled: [CheckedContinuation<Void, Never>] = []

        init(_ actions: [StateMachine.Action], _ state: inout State, _ scheduler: Scheduler) {
            for action in actions {
                switch action {
                case .start(let id, let lower, let upper):
                    state.tasks[id] = scheduler.task(id, lower: lower, upper: upper)
                case .cut(let id):
                    if let task = state.tasks[id] {
                        cut.append(task)
                        cutAt.append(state.machine.position(of: id) ?? 0)
                    }
                    if let hold = state.holds.removeValue(forKey: id) { waiters.append(hold) }
                case .resume(let id):
                    if let hold = state.holds.removeValue(forKey: id) { waiters.append(hold) }
                case .wake(let id):
                    if let waiter = state.readers[id]?.waiter {
                        state.readers[id]?.waiter = nil
                        waiters.append(waiter)
                    }
                case .grace, .retry:
                    timers.append(action)
                }
            }
            if state.tasks.isEmpty, !state.settled.isEmpty {
                settled = state.settled
                state.settled = []
            }
        }

        func perform(_ scheduler: Scheduler) {
            for waiter in waiters { waiter.resume() }
            for task in cut { task.cancel() }
            for offset in cutAt { scheduler.send(.cancelled(at: offset)) }
            for timer in timers { scheduler.setTimer(timer) }
            for waiter in settled { waiter.resume() }
        }
    }

    private func task(_ id: TransferID, lower: Int64, upper: Int64?) -> Task<Void, Never> {
        let transfer = Transfer(id: id, lower: lower, upper: upper, scheduler: self, services: services)
        return Task(executorPreference: services.executor) {
            self.ended(id, await transfer.run())
        }
    }

    private func setTimer(_ action: StateMachine.Action) {
        let time = services.time
        Task(executorPreference: services.executor) { [weak self] in
            switch action {
            case .grace(let id, let epoch, let delay):
                try? await time.sleep(delay)
                self?.feed { $0.machine.graceEnded(id, epoch: epoch) }
            case .retry(let epoch, let delay):
                try? await time.sleep(delay)
                self?.feed { $0.machine.retryDue(epoch: epoch) }
            default: break
            }
        }
    }

    func send(_ kind: CacheEvent.Kind) {
        services.events.send(kind, key: key, address: address)
    }

    func count(_ change: (inout Statistics) -> Void) {
        state.withLock { change(&$0.statistics) }
    }

    /// What has been counted since the resource was opened.
    var statistics: Statistics { state.withLock { $0.statistics } }

    /// All that can be read now.
    var landed: ByteRangeSet { state.withLock { $0.machine.landed } }

    // MARK: - How transfers end

    private func ended(_ id: TransferID, _ outcome: Transfer.Outcome) {
        var event: CacheEvent.Kind?
        releaseTail(of: id)
        // Now that a player has its first bytes, the next one's file can be made.
        services.prepareFile()
        feed { state in
            state.tasks[id] = nil
            switch outcome {
            case .ended, .restart:
                let isRestart = if case .restart = outcome { true } else { false }
                let actions = isRestart ? state.machine.transferRestarts(id) : state.machine.transferEnded(id)
                if state.machine.hasGivenUp {
                    let error = CacheError(.malformedResponse, "\(address): the origin's responses lead nowhere")
                    state.failure = error
                    event = .failed(error)
                }
                return actions
            case .failed(let error, let delay):
                let isCut = state.machine.isCut(id)
                state.failure = error
                let actions = state.machine.transferFailed(
                    id, retryAfter: delay, jitter: services.time.jitter)
                for case .retry(_, let after) in actions { event = .retrying(after: after, cause: error) }
                // What is stored is not held back by an origin that can't be asked; holes wait for the retry.
                if state.machine.needsValidation, state.mayServeStale { return actions + state.machine.validated() }
                if event == nil, !isCut, state.machine.hasGivenUp { event = .failed(error) }
                return actions
            case .refused(let error):
                if !state.machine.isCut(id) {
                    state.failure = error
                    event = .failed(error)
                }
                return state.machine.transferRefused(id)
            }
        }
        if let event { send(event) }
    }

    /// Seals what the transfer leaves of its last block. Blocks.
    private func releaseTail(of id: TransferID) {
        let (generation, position) = state.withLock { ($0.generation, $0.machine.position(of: id)) }
        guard let generation, let disk = generation.disk, let position else { return }
        disk.releaseTail(at: position)
        services.flusher.note(generation)
    }

    /// Waits until no transfer is in flight.
    func settle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.tasks.isEmpty { return true }
                state.settled.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Lets in what is nearly done, within twice the time that this may take, cuts the rest, and waits for both.
    ///
    /// - Parameter opening: The opening that ends; does nothing if a later one has begun. Nil: whichever.
    func close(opening: Int? = nil) async {
        let isOvertaken = ask { state in
            if let opening, state.opening > opening { return (true, []) }
            return (false, state.machine.close())
        }
        guard !isOvertaken else { return }
        let deadline = Task(executorPreference: services.executor) {
            try await self.services.time.sleep(self.services.configuration.readAhead.drainTime * 2)
            self.feed { $0.machine.cutAll() }
        }
        await settle()
        deadline.cancel()
    }
}

extension Scheduler.State {
    /// Whether what is stored may be used although the origin can't be asked (RFC 9111 §4.2.4).
    var mayServeStale: Bool { !(requestFields?.mustRevalidate ?? false) && generation != nil }
}
