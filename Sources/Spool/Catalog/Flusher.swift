import Foundation
import Synchronization

/// Writes new generations, seals and use times to the catalog in the background, a few times a second, and at the end.
///
/// What a kill leaves unrecorded is at most what arrived since the last round. Nothing waits for it: a round that
/// fails leaves its blocks unclaimed, and they are fetched again in a later process.
final class Flusher: Sendable {
    private struct State {
        /// Writes that begin generations, in order.
        var beginnings: [(key: String, write: @Sendable () -> Void)] = []
        /// Resources whose beginning is not in the catalog yet.
        var beginning: Set<String> = []
        var dirty: [ObjectIdentifier: Generation] = [:]
        var used: [CacheKey: Date] = [:]
        var task: Task<Void, Never>?
        var isClosed = false
    }

    private let state = Mutex(State())
    /// One writer at a time, so that what a call of ``write()`` has found done is in the catalog.
    private let writing = Mutex(())
    private let catalog: Catalog
    private let executor: BlockingExecutor
    private let time: CacheClock
    private let interval: Duration
    private let report: @Sendable (any Error) -> Void

    init(
        catalog: Catalog, executor: BlockingExecutor, time: CacheClock, interval: Duration = .milliseconds(100),
        report: @escaping @Sendable (any Error) -> Void
    ) {
        self.catalog = catalog
        self.executor = executor
        self.time = time
        self.interval = interval
        self.report = report
    }

    /// Bytes of the generation have landed.
    func note(_ generation: Generation) {
        guard generation.disk != nil else { return }
        schedule { $0.dirty[ObjectIdentifier(generation)] = generation }
    }

    /// A generation of the resource has begun; `write` records it, before any seal of it is recorded. Players do not
    /// wait for this.
    func begin(_ key: CacheKey, write: @escaping @Sendable () -> Void) {
        schedule { state in
            state.beginnings.append((key.hash, write))
            state.beginning.insert(key.hash)
        }
    }

    /// Sees to it that a resource which has begun is in the catalog; blocks only if it is not.
    func settle(_ key: CacheKey) {
        if state.withLock({ $0.beginning.contains(key.hash) }) { write() }
    }

    /// The resource has been used.
    func noteUse(of key: CacheKey, at date: Date) {
        schedule { $0.used[key] = date }
    }

    private func schedule(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            guard state.task == nil, !state.isClosed else { return }
            state.task = Task(executorPreference: executor) { [weak self, time, interval] in
                try? await time.sleep(interval)
                await self?.round()
            }
        }
    }

    private func round() async {
        state.withLock { $0.task = nil }
        try? await executor.run { self.write() }
    }

    /// Writes all that is pending; blocks.
    func write() {
        writing.withLock { _ in writePending() }
    }

    /// Waits for a round that is under way, so that no seal taken before this call is recorded after it; blocks.
    func waitForRound() {
        writing.withLock { _ in }
    }

    private func writePending() {
        let (beginnings, dirty, used) = state.withLock { state in
            defer {
                state.beginnings = []
                state.dirty = [:]
                state.used = [:]
            }
            // In an order that does not depend on where objects lie in memory.
            return (
                state.beginnings, state.dirty.values.sorted { $0.identifier.hex < $1.identifier.hex },
                state.used.map { ($0.key.hash, $0.value) }.sorted { $0.0 < $1.0 }
            )
        }
        for (_, write) in beginnings { write() }
        state.withLock { state in
            for (key, _) in beginnings { state.beginning.remove(key) }
            for (key, _) in state.beginnings { state.beginning.insert(key) }
        }
        guard !dirty.isEmpty || !used.isEmpty else { return }
        var batch: [(Int64, [BlockRecord])] = []
        for generation in dirty {
            guard let row = generation.row, let disk = generation.disk else { continue }
            let seals = disk.takeSeals(partial: true)
            if !seals.isEmpty { batch.append((row, seals)) }
        }
        do {
            try catalog.record(batch, used: used)
        } catch {
            report(error)
        }
    }

    /// No round is begun any more; what is pending is for ``write()``.
    func close() {
        let task = state.withLock { state in
            state.isClosed = true
            defer { state.task = nil }
            return state.task
        }
        task?.cancel()
    }
}
