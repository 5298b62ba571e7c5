import Synchronization

/// A clock that stands still until a test moves it: time-outs, back-off and pacing without waiting for them.
///
/// Code under test sleeps on it as on any `Clock`; the test waits until it does (``waitForSleepers(_:)``), then moves the
/// clock (``advance(by:)``). It never moves by itself. Safe to use from any task.
///
/// ```swift
/// let clock = ManualClock()
/// async let response = fetch(timeout: .seconds(15), clock: clock)
/// try await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(15))
/// ```
public final class ManualClock: Clock, Sendable {
    /// A time on the clock, as what has passed since the clock was made.
    public struct Instant: InstantProtocol {
        /// The time since the clock was made.
        public var offset: Duration

        /// A time `offset` after the clock was made.
        public init(offset: Duration = .zero) { self.offset = offset }

        /// This time moved by `duration`.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// The time from this instant to `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether `lhs` is earlier than `rhs`.
        public static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }

    private struct Sleeper {
        var id: UInt64
        var deadline: Instant
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct Watcher {
        var id: UInt64
        var count: Int
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant()
        var nextID: UInt64 = 0
        var sleepers: [Sleeper] = []
        var watchers: [Watcher] = []
        /// Identities cancelled before they had begun to wait.
        var cancelled: Set<UInt64> = []

        mutating func takeID() -> UInt64 {
            nextID += 1
            return nextID
        }

        /// Takes out the watchers whose number of sleepers is reached.
        mutating func takeSatisfied() -> [Watcher] {
            let satisfied = watchers.filter { $0.count <= sleepers.count }
            watchers.removeAll { $0.count <= sleepers.count }
            return satisfied
        }
    }

    private let state = Mutex(State())

    /// A clock at offset zero.
    public init() {}

    /// The time that the test has set.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: the clock tells any two times apart.
    public var minimumResolution: Duration { .zero }

    /// How many tasks sleep now.
    package var sleepers: Int { state.withLock { $0.sleepers.count } }

    /// The earliest time that anyone sleeps until, or nil if no one sleeps.
    package var nextDeadline: Instant? { state.withLock { $0.sleepers.map(\.deadline).min() } }

    /// Moves the clock and wakes those whose time has come, earliest first.
    public func advance(by duration: Duration) {
        advance(to: state.withLock { $0.now.advanced(by: duration) })
    }

    /// Moves the clock to `instant`, unless that is past, and wakes those whose time has come, earliest first.
    public func advance(to instant: Instant) {
        let due = state.withLock { state in
            state.now = max(state.now, instant)
            let now = state.now
            let due = state.sleepers.filter { $0.deadline <= now }.sorted {
                ($0.deadline, $0.id) < ($1.deadline, $1.id)
            }
            state.sleepers.removeAll { $0.deadline <= now }
            return due
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Sleeps until the test has moved the clock to `deadline` or past it. The tolerance is not used.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let id = state.withLock { $0.takeID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                enum Outcome { case cancelled, due, sleeps([Watcher]) }
                let outcome = state.withLock { state -> Outcome in
                    if state.cancelled.remove(id) != nil { return .cancelled }
                    if deadline <= state.now { return .due }
                    state.sleepers.append(Sleeper(id: id, deadline: deadline, continuation: continuation))
                    return .sleeps(state.takeSatisfied())
                }
                switch outcome {
                case .cancelled: continuation.resume(throwing: CancellationError())
                case .due: continuation.resume()
                case .sleeps(let watchers): for watcher in watchers { watcher.continuation.resume() }
                }
            }
        } onCancel: {
            cancel(id)
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    /// Waits until at least `count` tasks sleep.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForSleepers(_ count: Int) async throws {
        let id = state.withLock { $0.takeID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.sleepers.count >= count { return .success(()) }
                    state.watchers.append(Watcher(id: id, count: count, continuation: continuation))
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            cancel(id)
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    private func cancel(_ id: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            if let index = state.sleepers.firstIndex(where: { $0.id == id }) {
                return state.sleepers.remove(at: index).continuation
            }
            if let index = state.watchers.firstIndex(where: { $0.id == id }) {
                return state.watchers.remove(at: index).continuation
            }
            state.cancelled.insert(id)
            return nil
        }
        continuation?.resume(throwing: CancellationError())
    }
}

extension ManualClock {
    /// Lets time go by as fast as somebody waits for it, while `body` runs.
    package func flowing<R>(_ body: () async throws -> R) async rethrows -> R {
        let driver = Task {
            while true {
                try await waitForSleepers(1)
                if let next = nextDeadline { advance(to: next) }
                await Task.yield()
            }
        }
        defer { driver.cancel() }
        return try await body()
    }
}
