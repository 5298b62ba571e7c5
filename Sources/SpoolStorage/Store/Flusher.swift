import Foundation
import Synchronization

/// The changes that are not in the catalog yet, and the time at which to write them.
///
/// Changes are written 10 ms after a block is complete or a transfer has ended, and 100 ms after any other change.
/// After a failure, they are written later. If the process is killed, only the changes since the last round are lost.
/// No caller waits for these writes.
final class Flusher: Sendable {
    /// The changes to write.
    struct Pending: Sendable {
        var generations: [GenerationIdentifier: Generation] = [:]
        var used: [CacheKey: Date] = [:]
        /// The presentations that used resources belong to.
        var presentations: [CacheKey: CacheKey] = [:]
        /// The tags of used resources. They are written only together with other changes.
        var tags: [CacheKey: String] = [:]
        /// The positions at which playback stopped.
        var stops: [CacheKey: PlaybackStop] = [:]

        var isEmpty: Bool { generations.isEmpty && used.isEmpty && stops.isEmpty }
    }

    private struct State {
        var pending = Pending()
        var timer: Task<Void, Never>?
        /// Whether the timer was started for a complete block.
        var isSoon = false
        var failures = 0
        /// Whether a round that the timer started is waiting for its turn or being written. There is at most one such
        /// round.
        var isInRound = false
        /// Whether a block has been completed since the round started.
        var isSoonAfterRound = false
        var isStopped = false
    }

    private let state = ClassedMutex(State(), .neverWaits)
    private let executor: BlockingExecutor
    private let clock: CacheClock
    private let onDue = Mutex<(@Sendable () async -> Void)?>(nil)

    init(executor: BlockingExecutor, clock: CacheClock) {
        self.executor = executor
        self.clock = clock
    }

    /// Sets the action that runs when changes are due.
    func start(_ action: @escaping @Sendable () async -> Void) { onDue.withLock { $0 = action } }

    /// Whether any changes are waiting to be written.
    var isPending: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Adds a version that has changed.
    ///
    /// - Parameter isComplete: Whether a block of the version is now complete, or a transfer has ended.
    func note(_ generation: Generation, isComplete: Bool = false) {
        change(isSoon: isComplete) { $0.generations[generation.identifier] = generation }
    }

    /// Adds a use of a resource.
    func recordUse(of key: CacheKey, in presentation: CacheKey?, tag: String?, at date: Date) {
        change {
            $0.used[key] = date
            if let presentation { $0.presentations[key] = presentation }
            if let tag { $0.tags[key] = tag }
        }
    }

    /// Adds the position at which playback stopped.
    func recordStop(_ stop: PlaybackStop, of key: CacheKey) { change { $0.stops[key] = stop } }

    private func change(isSoon: Bool = false, _ body: (inout Pending) -> Void) {
        state.withLock { state in
            body(&state.pending)
            schedule(&state, isSoon: isSoon)
        }
    }

    private func schedule(_ state: inout State, isSoon: Bool = false) {
        guard !state.isStopped, !state.pending.isEmpty else { return }
        guard !state.isInRound else {
            state.isSoonAfterRound = state.isSoonAfterRound || isSoon
            return
        }
        let isSoon = isSoon && state.failures == 0
        if let timer = state.timer {
            guard isSoon, !state.isSoon else { return }
            timer.cancel()
        }
        state.isSoon = isSoon
        let interval = isSoon ? Duration.milliseconds(10) : .milliseconds(100 << min(state.failures, 6))
        state.timer = Task(executorPreference: executor.executor(for: .background)) { [weak self, clock] in
            // If the sleep was cancelled, the timer was stopped, or replaced by an earlier one.
            guard (try? await clock.sleep(interval)) != nil else { return }
            await self?.round()
        }
    }

    private func round() async {
        let isFirst = state.withLock { state in
            guard !state.isInRound else { return false }
            state.timer = nil
            state.isInRound = true
            return true
        }
        guard isFirst else { return }
        await onDue.withLock { $0 }?()
        state.withLock { state in
            state.isInRound = false
            schedule(&state, isSoon: state.isSoonAfterRound)
            state.isSoonAfterRound = false
        }
    }

    /// Takes all waiting changes.
    func take() -> Pending {
        state.withLock { state in
            defer { state.pending = Pending() }
            return state.pending
        }
    }

    /// Records that the changes were written, except for `rest`, which waits again.
    func recordSuccess(leaving rest: [Generation], tags: [CacheKey: String]) {
        state.withLock { state in
            state.pending.tags.merge(tags) { newer, _ in newer }
            state.failures = 0
            for generation in rest { state.pending.generations[generation.identifier] = generation }
            schedule(&state)
        }
    }

    /// Puts back changes that could not be written, to be written after a longer delay.
    ///
    /// - Returns: Whether the previous write succeeded.
    func recordFailure(_ pending: Pending) -> Bool {
        state.withLock { state in
            state.pending.generations.merge(pending.generations) { newer, _ in newer }
            state.pending.used.merge(pending.used) { newer, _ in newer }
            state.pending.presentations.merge(pending.presentations) { newer, _ in newer }
            state.pending.tags.merge(pending.tags) { newer, _ in newer }
            state.pending.stops.merge(pending.stops) { newer, _ in newer }
            state.failures += 1
            schedule(&state)
            return state.failures == 1
        }
    }

    /// Stops the timer, so that no more rounds start.
    func stop() {
        let timer = state.withLock { state in
            state.isStopped = true
            defer { state.timer = nil }
            return state.timer
        }
        timer?.cancel()
    }
}

/// The position and the date at which playback of a resource stopped.
struct PlaybackStop: Sendable {
    /// The offset of the next byte; `nil` at the end of the resource.
    var offset: Int64?
    /// Whether the resource is to be played only once, and was played to its end.
    var isConsumed: Bool
    var date: Date
}
