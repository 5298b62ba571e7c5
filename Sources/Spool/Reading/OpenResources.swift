import Synchronization

/// The resources that are open now: one scheduler each, however many players read it.
final class OpenResources: Sendable {
    private struct Entry {
        let scheduler: Scheduler
        var holders: Int
        /// How often it has been opened, to tell a closing that has been overtaken by an opening.
        var openings = 1
    }

    private struct State {
        var entries: [CacheKey: Entry] = [:]
        var closing: [Int: Task<Void, Never>] = [:]
        var lastClosing = 0
        var isClosed = false

        var schedulers: [Scheduler] { entries.values.map(\.scheduler).sorted { $0.key.hash < $1.key.hash } }
    }

    private let state = Mutex(State())
    private let executor: BlockingExecutor

    /// No resource is open; `executor` runs what closes them.
    init(executor: BlockingExecutor) { self.executor = executor }

    /// The scheduler of the resource, made if it is not open; to be given back with ``release(_:)``.
    func acquire(_ key: CacheKey, make: () -> Scheduler) -> Scheduler {
        let (scheduler, opening) = state.withLock { state in
            if var entry = state.entries[key] {
                entry.holders += 1
                entry.openings += 1
                state.entries[key] = entry
                return (entry.scheduler, entry.openings)
            }
            let scheduler = make()
            state.entries[key] = Entry(scheduler: scheduler, holders: 1)
            return (scheduler, 1)
        }
        scheduler.reopen(opening)
        return scheduler
    }

    /// The resource's open scheduler, if there is one.
    func scheduler(of key: CacheKey) -> Scheduler? {
        state.withLock { $0.entries[key]?.scheduler }
    }

    /// All open schedulers, by key.
    var all: [Scheduler] { state.withLock { $0.schedulers } }

    /// Keys that are open.
    var keys: Set<CacheKey> { state.withLock { Set($0.entries.keys) } }

    /// One holder less; the last one lets what is nearly done land, and closes.
    func release(_ scheduler: Scheduler) {
        state.withLock { state in
            guard let entry = state.entries[scheduler.key], entry.scheduler === scheduler else { return }
            guard entry.holders <= 1 else {
                state.entries[scheduler.key]?.holders -= 1
                return
            }
            state.entries[scheduler.key]?.holders = 0
            state.lastClosing += 1
            let id = state.lastClosing
            state.closing[id] = Task(executorPreference: executor) {
                await scheduler.close(opening: entry.openings)
                self.state.withLock { state in
                    state.closing[id] = nil
                    if state.entries[scheduler.key]?.holders == 0 { state.entries[scheduler.key] = nil }
                }
            }
        }
    }

    /// Forgets the resource, so that the next opening starts anew.
    func detach(_ key: CacheKey) -> Scheduler? {
        state.withLock { $0.entries.removeValue(forKey: key)?.scheduler }
    }

    /// Closes all and waits for it.
    func closeAll() async {
        let (schedulers, closing) = state.withLock { state in
            state.isClosed = true
            return (state.schedulers, state.closing.sorted { $0.key < $1.key }.map(\.value))
        }
        for scheduler in schedulers { await scheduler.close() }
        for task in closing { await task.value }
    }
}
