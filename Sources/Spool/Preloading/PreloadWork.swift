import SpoolStorage
import Synchronization

/// The queue of a preloader, and the running preloads.
final class PreloadWork: Sendable {
    /// A reason why preloads are paused.
    enum Reason: Hashable {
        /// The app has paused the preloads.
        case asked
        /// A background session fetches the bytes of downloads.
        case handedOver
        /// The state of the network or the power mode does not satisfy the conditions.
        case system
    }

    private struct State {
        var queue = PreloadQueue<Preload>(lineCount: PreloadPriority.all.count)
        var running: [ObjectIdentifier: Preload] = [:]
        var reasons: Set<Reason> = []
        var conditions: PreloadConditions? = .standard
        /// A reference to this object while preloads are paused because of the system's state. They start later, even
        /// if their preloader was released.
        var itself: PreloadWork?
    }

    private let cache: MediaCache
    private let maximumConcurrentDownloads: Int
    private let state = Mutex(State())
    private let system: SystemStateMonitor
    private let observation = Mutex<SystemStateMonitor.Observation?>(nil)

    init(_ cache: MediaCache, maximumConcurrentDownloads: Int) {
        self.cache = cache
        self.maximumConcurrentDownloads = maximumConcurrentDownloads
        system = cache.context.system
        let observation = system.observe { [weak self] in self?.systemChanged() }
        self.observation.withLock { $0 = observation }
        systemChanged()
    }

    func add(_ preload: Preload) {
        update { $0.queue.append(preload, in: preload.priority.line) }
    }

    /// The conditions under which preloads pause.
    var conditions: PreloadConditions? {
        get { state.withLock { $0.conditions } }
        set { update { $0.conditions = newValue } }
    }

    private func systemChanged() { update { _ in } }

    func isPaused(because reason: Reason) -> Bool { state.withLock { $0.reasons.contains(reason) } }

    func pause(_ isPaused: Bool, because reason: Reason) {
        update { state in
            if isPaused { state.reasons.insert(reason) } else { state.reasons.remove(reason) }
        }
    }

    /// Changes the state, and then pauses or starts preloads.
    private func update(_ change: (inout State) -> Void) {
        let interrupted = state.withLock { state -> [Preload] in
            change(&state)
            // The state is read under the lock, so that concurrent changes don't apply an earlier state last.
            let isAllowed = state.conditions?.allow(system.current) ?? true
            if isAllowed { state.reasons.remove(.system) } else { state.reasons.insert(.system) }
            state.itself = isAllowed || state.queue.isEmpty && state.running.isEmpty ? nil : self
            return state.reasons.isEmpty ? [] : Array(state.running.values)
        }
        for preload in interrupted { preload.interrupt() }
        fill()
    }

    func cancelAll() {
        let all = state.withLock { state in
            state.itself = nil
            return state.queue.removeAll() + state.running.values
        }
        for preload in all { preload.cancel() }
    }

    /// Starts preloads for the free slots.
    private func fill() {
        while let preload = next() {
            let executor = cache.context.executor.executor(for: .background)
            let hasBegun = preload.begin { Task(executorPreference: executor) { await self.run(preload) } }
            guard hasBegun else {
                // The preload was cancelled in the meantime.
                state.withLock { _ = $0.running.removeValue(forKey: ObjectIdentifier(preload)) }
                continue
            }
            // Preloads may have been paused before this preload could be interrupted.
            if state.withLock({ !$0.reasons.isEmpty }) { preload.interrupt() }
        }
    }

    /// Returns the next preload, which then uses a slot.
    private func next() -> Preload? {
        state.withLock { state in
            guard state.reasons.isEmpty, state.running.count < maximumConcurrentDownloads else { return nil }
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
                preload.note(stored: $0, of: $1)
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
            if state.running.isEmpty, state.queue.isEmpty { state.itself = nil }
            guard failure is CancellationError, !preload.isCancelled else { return false }
            preload.requeue()
            state.queue.putBack(preload, in: preload.priority.line)
            return true
        }
        if isPutOff {
            // If the preload was cancelled at the same moment, it ends now.
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

/// The waiting preloads: the highest priority first, and first come, first served within a priority.
struct PreloadQueue<Item> {
    private struct Line {
        var items: [Item?] = []
        var first = 0
    }

    private var lines: [Line]

    /// Creates an empty queue.
    ///
    /// - Parameter lineCount: The number of priorities, of which 0 is the last.
    init(lineCount: Int) { lines = Array(repeating: Line(), count: max(1, lineCount)) }

    /// Adds an item after the other items with the same priority.
    mutating func append(_ item: Item, in line: Int) { lines[line].items.append(item) }

    /// Puts an item back before the other items with the same priority.
    mutating func putBack(_ item: Item, in line: Int) {
        if lines[line].first > 0 {
            lines[line].first -= 1
            lines[line].items[lines[line].first] = item
        } else {
            lines[line].items.insert(item, at: 0)
        }
    }

    /// Removes and returns the next item.
    mutating func popFirst() -> Item? {
        for line in lines.indices.reversed() where lines[line].first < lines[line].items.count {
            let first = lines[line].first
            let item = lines[line].items[first]
            lines[line].items[first] = nil
            lines[line].first += 1
            // Removed items are released periodically.
            if lines[line].first > 64, lines[line].first * 2 > lines[line].items.count {
                lines[line].items.removeFirst(lines[line].first)
                lines[line].first = 0
            }
            return item
        }
        return nil
    }

    /// Whether no item is waiting.
    var isEmpty: Bool { lines.allSatisfy { $0.first == $0.items.count } }

    /// Removes and returns all items.
    mutating func removeAll() -> [Item] {
        defer { lines = Array(repeating: Line(), count: lines.count) }
        return lines.reversed().flatMap { $0.items.compactMap { $0 } }
    }
}
