import Synchronization

/// One media file that a ``Preloader`` brings, or part of it: its progress, and a way to give it up.
///
/// It need not be held: what has been begun goes on.
public final class Preload: Sendable {
    private struct Progress {
        var state = PreloadState()
        var isCancelled = false
        var task: Task<Void, Never>?
    }

    /// Where the bytes come from.
    public let source: MediaSource
    /// How much of them.
    public let amount: PreloadAmount
    /// When it begins.
    public let priority: PreloadPriority
    /// Nil for one that is brought, and may go again.
    let keeping: PreloadKeeping?
    private let progress = Mutex(Progress())
    private let changes = ChangeSignal()

    init(
        _ source: MediaSource, _ amount: PreloadAmount, _ priority: PreloadPriority, keeping: PreloadKeeping? = nil
    ) {
        self.keeping = keeping
        self.source = source
        self.amount = amount
        self.priority = priority
    }

    /// How far it has come.
    public var state: PreloadState { progress.withLock { $0.state } }

    /// How far it has come: its present state at once, then the newest one whenever it has changed; the last one tells the
    /// end.
    ///
    /// States in between are left out where the listener is slow. Each call gives a stream of its own; one task iterates
    /// over it.
    public var states: AsyncStream<PreloadState> {
        let seen = Mutex<UInt64?>(nil)
        return AsyncStream { [changes, self] in
            if let version = seen.withLock({ $0 }), !(await changes.wait(beyond: version)) { return nil }
            let version = changes.version
            seen.withLock { $0 = version }
            return state
        }
    }

    /// Waits for the end, which it returns. A task that is cancelled waits no longer, and the preload goes on.
    @discardableResult
    public func finished() async -> PreloadState {
        for await state in states where state.phase.isEnd { return state }
        return state
    }

    /// Gives it up; what has landed stays, and is not brought again. Nothing happens after its end.
    public func cancel() {
        let (isWaiting, task) = progress.withLock { progress in
            progress.isCancelled = true
            return (progress.state.phase == .waiting, progress.task)
        }
        // One that waits is taken out of its line when its turn comes.
        if isWaiting { end(.cancelled) } else { task?.cancel() }
    }

    // MARK: - For the preloader

    /// Whether it has been given up.
    var isCancelled: Bool { progress.withLock { $0.isCancelled } }

    /// Its turn has come, and `start` starts it; false if it has been given up.
    func begin(_ start: () -> Task<Void, Never>) -> Bool {
        let mayBegin = progress.withLock { progress in
            guard !progress.isCancelled, !progress.state.phase.isEnd else { return false }
            progress.task = start()
            progress.state.phase = .running
            return true
        }
        if mayBegin { changes.change() }
        return mayBegin
    }

    /// So much of so much is there.
    func note(landed: Int64, of wanted: Int64?) {
        progress.withLock { progress in
            progress.state.landedByteCount = landed
            progress.state.wantedByteCount = wanted
        }
        changes.change()
    }

    /// It is put off, to be begun anew.
    func putOff() {
        progress.withLock { progress in
            progress.task = nil
            progress.state.phase = .waiting
        }
        changes.change()
    }

    /// It is over.
    func end(_ phase: PreloadState.Phase, _ error: (any Error)? = nil) {
        let isNews = progress.withLock { progress in
            guard !progress.state.phase.isEnd else { return false }
            progress.task = nil
            progress.state.phase = phase
            progress.state.error = error
            return true
        }
        guard isNews else { return }
        changes.change()
        changes.finish()
    }

    /// Has what runs end, to be put off.
    func interrupt() { progress.withLock { $0.task }?.cancel() }
}
