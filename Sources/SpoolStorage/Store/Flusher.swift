import Foundation
import Synchronization

/// Keeps the list of what the catalog has to be told, and says when: a hundredth of a second after a block is complete, or
/// a transfer has ended; a tenth of a second after anything else; later after a failure.
///
/// What a kill leaves unrecorded is at most what arrived since the last round. Nothing waits for it.
final class Flusher: Sendable {
    /// What is to be written.
    struct Pending: Sendable {
        var generations: [GenerationIdentifier: Generation] = [:]
        var used: [CacheKey: Date] = [:]
        /// What used resources are parts of.
        var presentations: [CacheKey: CacheKey] = [:]
        /// What used resources are called; it waits for something else to be written.
        var tags: [CacheKey: String] = [:]
        /// Where plays have stopped.
        var stops: [CacheKey: PlayStop] = [:]

        var isEmpty: Bool { generations.isEmpty && used.isEmpty && stops.isEmpty }
    }

    private struct State {
        var pending = Pending()
        var timer: Task<Void, Never>?
        /// Whether the timer is one for what is complete.
        var isSoon = false
        var failures = 0
        var isStopped = false
    }

    private let state = Mutex(State())
    private let executor: BlockingExecutor
    private let clock: CacheClock
    private let onDue = Mutex<(@Sendable () -> Void)?>(nil)

    init(executor: BlockingExecutor, clock: CacheClock) {
        self.executor = executor
        self.clock = clock
    }

    /// Sets what happens, on the blocking executor, when something is due.
    func start(_ action: @escaping @Sendable () -> Void) { onDue.withLock { $0 = action } }

    /// Whether anything waits to be written.
    var isPending: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Something of the generation has changed.
    ///
    /// - Parameter isComplete: Whether a block of it is complete, or a transfer has ended.
    func note(_ generation: Generation, isComplete: Bool = false) {
        change(isSoon: isComplete) { $0.generations[generation.identifier] = generation }
    }

    /// The resource has been used.
    func noteUse(of key: CacheKey, in presentation: CacheKey?, tag: String?, at date: Date) {
        change {
            $0.used[key] = date
            if let presentation { $0.presentations[key] = presentation }
            if let tag { $0.tags[key] = tag }
        }
    }

    /// A play of the resource has stopped.
    func noteStop(_ stop: PlayStop, of key: CacheKey) { change { $0.stops[key] = stop } }

    private func change(isSoon: Bool = false, _ body: (inout Pending) -> Void) {
        state.withLock { state in
            body(&state.pending)
            schedule(&state, isSoon: isSoon)
        }
    }

    private func schedule(_ state: inout State, isSoon: Bool = false) {
        guard !state.isStopped, !state.pending.isEmpty else { return }
        let isSoon = isSoon && state.failures == 0
        if let timer = state.timer {
            guard isSoon, !state.isSoon else { return }
            timer.cancel()
        }
        state.isSoon = isSoon
        let interval = isSoon ? Duration.milliseconds(10) : .milliseconds(100 << min(state.failures, 6))
        state.timer = Task(executorPreference: executor.executor(for: .background)) { [weak self, clock] in
            // Cancelled: nothing is due any more.
            guard (try? await clock.sleep(interval)) != nil else { return }
            self?.round()
        }
    }

    private func round() {
        state.withLock { $0.timer = nil }
        onDue.withLock { $0 }?()
    }

    /// Hands out all that waits.
    func take() -> Pending {
        state.withLock { state in
            defer { state.pending = Pending() }
            return state.pending
        }
    }

    /// What was taken is written; `rest` of it was passed over and waits again.
    func noteSuccess(leaving rest: [Generation], tags: [CacheKey: String]) {
        state.withLock { state in
            state.pending.tags.merge(tags) { newer, _ in newer }
            state.failures = 0
            for generation in rest { state.pending.generations[generation.identifier] = generation }
            schedule(&state)
        }
    }

    /// What was taken could not be written and waits again, for a longer time.
    ///
    /// - Returns: Whether this is news.
    func noteFailure(_ pending: Pending) -> Bool {
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

    /// No round is begun any more.
    func stop() {
        let timer = state.withLock { state in
            state.isStopped = true
            defer { state.timer = nil }
            return state.timer
        }
        timer?.cancel()
    }
}
