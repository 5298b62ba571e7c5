import Synchronization

/// The preload of one resource, or part of it, by a ``Preloader``: its progress, and a way to cancel it.
///
/// You need not retain this object, because a started preload continues.
public final class Preload: Sendable {
    private struct Progress {
        var state = PreloadState()
        var isCancelled = false
        var task: Task<Void, Never>?
    }

    /// The source of the bytes.
    public let source: MediaSource
    /// The amount to preload.
    public let amount: PreloadAmount
    /// The priority of the preload.
    public let priority: PreloadPriority
    /// The checks for a download that must stay stored; `nil` for a preload that may be evicted.
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

    /// The current progress.
    public var state: PreloadState { progress.withLock { $0.state } }

    /// A stream of the progress: the current state first, then the newest state after each change, and the final state
    /// last.
    ///
    /// A slow listener misses intermediate states. Each call returns a new stream. Iterate over it from one task.
    public var states: AsyncStream<PreloadState> {
        let seen = Mutex<UInt64?>(nil)
        return AsyncStream { [changes, self] in
            if let version = seen.withLock({ $0 }), !(await changes.wait(beyond: version)) { return nil }
            let version = changes.version
            seen.withLock { $0 = version }
            return state
        }
    }

    /// Waits until the preload has ended, and returns its final state. Cancelling the waiting task does not cancel the
    /// preload.
    @discardableResult
    public func finished() async -> PreloadState {
        for await state in states where state.phase.isFinal { return state }
        return state
    }

    /// Cancels the preload. Stored bytes stay in the cache, and are not fetched again. This method has no effect after
    /// the preload has ended.
    public func cancel() {
        let (isWaiting, task) = progress.withLock { progress in
            progress.isCancelled = true
            return (progress.state.phase == .waiting, progress.task)
        }
        // A waiting preload stays in its queue until its turn, and is then skipped.
        if isWaiting { end(.cancelled) } else { task?.cancel() }
    }

    // MARK: - For the preloader

    /// Whether the preload was cancelled.
    var isCancelled: Bool { progress.withLock { $0.isCancelled } }

    /// Starts the preload by calling `start`. Returns `false` if the preload was cancelled.
    func begin(_ start: () -> Task<Void, Never>) -> Bool {
        let mayBegin = progress.withLock { progress in
            guard !progress.isCancelled, !progress.state.phase.isFinal else { return false }
            progress.task = start()
            progress.state.phase = .running
            return true
        }
        if mayBegin { changes.change() }
        return mayBegin
    }

    /// Records the numbers of stored bytes and of bytes to preload.
    func note(stored: Int64, of wanted: Int64?) {
        progress.withLock { progress in
            progress.state.storedByteCount = stored
            progress.state.targetByteCount = wanted
        }
        changes.change()
    }

    /// Records that the preload is waiting in the queue again, to be started later.
    func requeue() {
        progress.withLock { progress in
            progress.task = nil
            progress.state.phase = .waiting
        }
        changes.change()
    }

    /// Ends the preload.
    func end(_ phase: PreloadState.Phase, _ error: (any Error)? = nil) {
        let hasChanged = progress.withLock { progress in
            guard !progress.state.phase.isFinal else { return false }
            progress.task = nil
            progress.state.phase = phase
            progress.state.error = error
            return true
        }
        guard hasChanged else { return }
        changes.change()
        changes.finish()
    }

    /// Cancels the preload's task. The preload is then queued again.
    func interrupt() { progress.withLock { $0.task }?.cancel() }
}

/// The amount of a resource to preload.
public struct PreloadAmount: Sendable, Hashable {
    enum Kind: Hashable {
        case startup
        case seconds(Double)
        case bytes(Int64)
        case entire
    }

    let kind: Kind

    /// The bytes that a player needs to start: the container's headers, its index at any position, and about the first
    /// second of media.
    ///
    /// The supported formats are MPEG-4 and QuickTime (including fragmented files), MP3, FLAC, WAVE, AIFF, CAF, Ogg,
    /// Matroska and WebM. For other formats, the amount is 256 KiB at the start and 64 KiB at the end. The maximum is
    /// 64 MiB.
    public static let startup = PreloadAmount(kind: .startup)

    /// Every byte.
    public static let entire = PreloadAmount(kind: .entire)

    /// The bytes that a player needs for the first `seconds`, calculated from the bit rate in the container. Without a
    /// bit rate, this is the same as ``startup``. The maximum is 64 MiB.
    public static func seconds(_ seconds: Double) -> PreloadAmount { PreloadAmount(kind: .seconds(seconds)) }

    /// The number of seconds; 0 for amounts that are not specified in seconds, and `nil` for the entire resource.
    package var firstSeconds: Double? {
        switch kind {
        case .startup, .bytes: 0
        case .seconds(let seconds): seconds
        case .entire: nil
        }
    }

    /// The first `count` bytes.
    public static func bytes(_ count: Int64) -> PreloadAmount { PreloadAmount(kind: .bytes(max(count, 0))) }
}

/// The order in which preloads start. Playback takes precedence over all of them.
public struct PreloadPriority: Sendable, Hashable, Comparable {
    /// The order, with 0 last.
    let line: Int

    /// The priority of preloads that start after all others.
    public static let low = PreloadPriority(line: 0)
    /// The default priority.
    public static let normal = PreloadPriority(line: 1)
    /// The priority of media that will be played next.
    public static let high = PreloadPriority(line: 2)

    static let all = [low, normal, high]

    /// Returns whether preloads with priority `left` start after those with priority `right`.
    public static func < (left: PreloadPriority, right: PreloadPriority) -> Bool { left.line < right.line }
}

/// The progress of a preload.
public struct PreloadState: Sendable {
    /// The phase. More phases may be added, so use a default case.
    public struct Phase: Sendable, Hashable {
        private enum Name { case waiting, running, finished, failed, cancelled }

        private let name: Name

        /// The preload is waiting for its turn, or is paused; see ``Preloader/isPaused`` and ``Preloader/conditions``.
        public static let waiting = Phase(name: .waiting)
        /// Bytes are being fetched.
        public static let running = Phase(name: .running)
        /// All bytes to preload are stored.
        public static let finished = Phase(name: .finished)
        /// The preload failed; see ``PreloadState/error``.
        public static let failed = Phase(name: .failed)
        /// The preload was cancelled. Stored bytes stay in the cache.
        public static let cancelled = Phase(name: .cancelled)

        /// Whether the preload has ended.
        public var isFinal: Bool { name != .waiting && name != .running }
    }

    /// The current phase.
    public internal(set) var phase = Phase.waiting
    /// The number of bytes to preload that are already stored.
    public internal(set) var storedByteCount: Int64 = 0
    /// The number of bytes to preload; `nil` while it is unknown, for example because the container has to be examined
    /// first.
    public internal(set) var targetByteCount: Int64?
    /// The error, if the preload failed.
    public internal(set) var error: (any Error)?

    /// The stored fraction, from 0 to 1; `nil` while the number of bytes to preload is unknown.
    public var fractionCompleted: Double? {
        targetByteCount.map { $0 > 0 ? min(Double(storedByteCount) / Double($0), 1) : 1 }
    }

    /// Whether all bytes to preload are stored.
    public var isComplete: Bool { phase == .finished }
}

/// Additional checks for a preload whose bytes must stay stored.
struct PreloadKeeping: Sendable {
    /// A function that throws an error if this number of bytes does not fit. It is called with the length when that
    /// becomes known. Until then, it is called with the number of bytes received so far.
    let checkFits: @Sendable (_ byteCount: Int64, _ isLengthKnown: Bool) async throws -> Void
    /// A function that throws an error if bytes were not stored. It is called when the preload ends.
    let check: @Sendable (MediaResource) async throws -> Void
}
