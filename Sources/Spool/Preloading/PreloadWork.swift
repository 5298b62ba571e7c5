import SpoolStorage
import Synchronization

/// The line of a preloader, and those that run.
final class PreloadWork: Sendable {
    /// Why preloads are put off.
    enum Reason: Hashable {
        /// The app has said so.
        case asked
        /// The person's data plan or battery is to be spared.
        case system
    }

    private struct State {
        var queue = PreloadQueue<Preload>(lineCount: PreloadPriority.all.count)
        var running: [ObjectIdentifier: Preload] = [:]
        var reasons: Set<Reason> = []
    }

    private let cache: MediaCache
    private let jobs: Int
    private let state = Mutex(State())
    /// What follows the system's state, where it does.
    let follower = Mutex<(any Sendable)?>(nil)

    init(_ cache: MediaCache, jobs: Int) {
        self.cache = cache
        self.jobs = jobs
    }

    func add(_ preload: Preload) {
        state.withLock { $0.queue.append(preload, in: preload.priority.line) }
        fill()
    }

    func isPaused(because reason: Reason) -> Bool { state.withLock { $0.reasons.contains(reason) } }

    func pause(_ isPaused: Bool, because reason: Reason) {
        let interrupted = state.withLock { state -> [Preload] in
            if isPaused { state.reasons.insert(reason) } else { state.reasons.remove(reason) }
            return isPaused ? Array(state.running.values) : []
        }
        for preload in interrupted { preload.interrupt() }
        fill()
    }

    func cancelAll() {
        let all = state.withLock { $0.queue.removeAll() + $0.running.values }
        for preload in all { preload.cancel() }
    }

    /// Begins what there is a place for.
    private func fill() {
        while let preload = next() {
            let executor = cache.context.executor.executor(for: .background)
            let hasBegun = preload.begin { Task(executorPreference: executor) { await self.run(preload) } }
            guard hasBegun else {
                // Given up at this moment.
                state.withLock { _ = $0.running.removeValue(forKey: ObjectIdentifier(preload)) }
                continue
            }
            // Put off before it could be told.
            if state.withLock({ !$0.reasons.isEmpty }) { preload.interrupt() }
        }
    }

    /// The next one, which has a place then.
    private func next() -> Preload? {
        state.withLock { state in
            guard state.reasons.isEmpty, state.running.count < jobs else { return nil }
            while let preload = state.queue.popFirst() {
                guard !preload.isCancelled else { continue }
                state.running[ObjectIdentifier(preload)] = preload
                return preload
            }
            return nil
        }
    }

    private func run(_ preload: Preload) async {
        var failure: (any Error)?
        do {
            try Task.checkCancellation()
            let media = cache.media(for: preload.source)
            try await media.load()
            let run = PreloadRun(media: media, capacity: cache.capacity, keeping: preload.keeping) {
                preload.note(landed: $0, of: $1)
            }
            try await run.run(preload.amount)
            try await preload.keeping?.check(media)
        } catch {
            failure = error
        }
        end(preload, failure)
        fill()
    }

    private func end(_ preload: Preload, _ failure: (any Error)?) {
        let isPutOff = state.withLock { state in
            state.running[ObjectIdentifier(preload)] = nil
            guard failure is CancellationError, !preload.isCancelled else { return false }
            preload.putOff()
            state.queue.putBack(preload, in: preload.priority.line)
            return true
        }
        if isPutOff {
            // Given up at the same moment, it is no longer looked at.
            if preload.isCancelled { preload.end(.cancelled) }
        } else if preload.isCancelled, failure != nil {
            preload.end(.cancelled)
        } else if let failure {
            preload.end(.failed, failure)
        } else {
            preload.end(.finished)
        }
    }
}
