import Observation
import Synchronization

/// A clock that only a test advances, for timeouts, back-off and pacing without real waits.
///
/// Code under test sleeps on it as on any `Clock`. The test calls ``waitForSleepers(_:)`` to wait until the code is
/// sleeping, and then advances the clock with ``advance(by:)``. The clock may be used from any task.
///
/// ```swift
/// let clock = ManualClock()
/// async let response = fetch(timeout: .seconds(15), clock: clock)
/// try await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(15))
/// ```
public final class ManualClock: Clock, Sendable {
    /// A time on the clock, as the duration since the clock was created.
    public struct Instant: InstantProtocol {
        /// The duration since the creation of the clock.
        public var offset: Duration

        /// Creates a time `offset` after the creation of the clock.
        public init(offset: Duration = .zero) { self.offset = offset }

        /// Returns this time plus `duration`.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// Returns the duration from this instant to `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Returns whether `lhs` is earlier than `rhs`.
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
        /// The identifiers of sleepers that were cancelled before they started to wait.
        var cancelled: Set<UInt64> = []

        mutating func takeID() -> UInt64 {
            nextID += 1
            return nextID
        }

        /// Removes and returns the watchers whose required number of sleepers has been reached.
        mutating func takeSatisfied() -> [Watcher] {
            let satisfied = watchers.filter { $0.count <= sleepers.count }
            watchers.removeAll { $0.count <= sleepers.count }
            return satisfied
        }
    }

    private let state = Mutex(State())

    /// Creates a clock at offset zero.
    public init() {}

    /// The current time, as set by the test.
    public var now: Instant { state.withLock { $0.now } }

    /// The minimum resolution, which is zero, because the clock distinguishes any two times.
    public var minimumResolution: Duration { .zero }

    /// The number of sleeping tasks.
    package var sleepers: Int { state.withLock { $0.sleepers.count } }

    /// The earliest deadline of the sleeping tasks; `nil` if no task is sleeping.
    package var nextDeadline: Instant? { state.withLock { $0.sleepers.map(\.deadline).min() } }

    /// Advances the clock, and resumes the tasks whose deadlines have been reached, earliest first.
    public func advance(by duration: Duration) {
        advance(to: state.withLock { $0.now.advanced(by: duration) })
    }

    /// Advances the clock to `instant`, unless it is in the past, and resumes the tasks whose deadlines have been
    /// reached, earliest first.
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

    /// Sleeps until the test has advanced the clock to `deadline` or later. The tolerance is not used.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
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

    /// Waits until at least `count` tasks are sleeping.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
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
    /// Runs `body`. Until it returns, the clock is advanced to the deadline of each sleeper, so that waits take no
    /// time.
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

/// Waits until an observable condition becomes true, even if only briefly, or the task is cancelled.
///
/// The wait ends even if the condition is false again when this task runs, because the task may run late on a busy
/// machine.
@MainActor package func observed(_ condition: @escaping @MainActor () -> Bool) async {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let observation = ObservedCondition(of: condition) { continuation.finish() }
    observation.check()
    for await _ in stream {}
    observation.end()
}

@MainActor private final class ObservedCondition {
    private let condition: @MainActor () -> Bool
    private var whenMet: (() -> Void)?
    private var looks = 0

    init(of condition: @escaping @MainActor () -> Bool, whenMet: @escaping () -> Void) {
        (self.condition, self.whenMet) = (condition, whenMet)
    }

    func check() {
        guard let whenMet else { return }
        looks += 1
        let number = looks
        let holds = withObservationTracking(condition) { [weak self] in
            MainActor.assumeIsolated { self?.willChange(after: number) }
        }
        if holds { whenMet() }
    }

    /// Handles a change that takes effect when the caller returns. The current state may already differ from the state
    /// at the last check.
    private func willChange(after number: Int) {
        guard number == looks else { return }
        check()
        Task { check() }
    }

    func end() { whenMet = nil }
}
