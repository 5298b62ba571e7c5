import Foundation
import SpoolScheduling
import SpoolStorage
import Synchronization

/// The coordinator of all resources of a cache. It manages the information that no single resource contains: the
/// origins, and whether any player is waiting.
///
/// The coordinator pauses preloads while players wait, according to ``PreloadYielding``. It does not start transfers
/// itself.
final class OriginCoordinator: Sendable {
    private struct State {
        var origins = KnownOrigins()
        var yielding = PreloadYielding()
        /// The task that waits for the next deadline, and the deadline.
        var timer: (deadline: Duration, task: Task<Void, Never>)?
    }

    private let maximumConnectionsPerOrigin: Int
    private let maximumOpenConnectionsPerOrigin: Int?
    private let clock: CacheClock
    private let executor: any TaskExecutor
    private let state = Mutex(State())

    /// Creates a coordinator without resources.
    ///
    /// - Parameter executor: The executor of the task that waits for deadlines.
    init(
        maximumConnectionsPerOrigin: Int, maximumOpenConnectionsPerOrigin: Int? = nil, clock: CacheClock,
        executor: any TaskExecutor
    ) {
        self.maximumConnectionsPerOrigin = maximumConnectionsPerOrigin
        self.maximumOpenConnectionsPerOrigin = maximumOpenConnectionsPerOrigin
        self.clock = clock
        self.executor = executor
    }

    deinit { state.withLock { $0.timer?.task.cancel() } }

    /// Returns the state of the origin of `url`. An origin consists of scheme, host and port (RFC 6454 §4).
    func origin(of url: URL) -> OriginState {
        let (name, now) = (Self.name(of: url), clock.elapsed())
        return state.withLock { $0.origins.origin(name, at: now, make: makeOrigin) }
    }

    private func makeOrigin() -> OriginState {
        OriginState(connectionLimit: maximumConnectionsPerOrigin, openLimit: maximumOpenConnectionsPerOrigin)
    }

    /// Returns the name of the origin of `url`.
    static func name(of url: URL) -> String {
        let scheme = url.scheme?.lowercased() ?? ""
        let port = url.port ?? (scheme == "https" ? 443 : 80)
        return "\(scheme)://\(url.host?.lowercased() ?? ""):\(port)"
    }

    /// Records that the resource at `url` can't be played without the resources at `others`.
    func needs(_ others: [URL], for url: URL) {
        let (name, now) = (Self.name(of: url), clock.elapsed())
        let names = Set(others.prefix(64).map(Self.name)).subtracting([name])
        guard !names.isEmpty else { return }
        state.withLock { state in
            _ = state.origins.origin(name, at: now, make: makeOrigin)
            state.origins.note(name, needs: names)
        }
    }

    /// Returns the reasons why the last requests failed, for all origins on which the resource at `url` depends.
    ///
    /// A failure counts for two minutes, or until the time in the origin's `Retry-After` if that is later.
    func losses(for url: URL) -> Set<OriginFailure> {
        let (name, now) = (Self.name(of: url), clock.elapsed())
        return state.withLock { $0.origins.losses(of: name, at: now) }
    }

    /// Returns whether a player is waiting for bytes from an origin on which the resource at `url` depends.
    func isPlayerWaiting(for url: URL) -> Bool {
        state.withLock { state in
            state.yielding.isPlayerWaiting
                && state.origins.names(neededBy: Self.name(of: url)).contains {
                    state.yielding.waitingCount(at: $0) > 0
                }
        }
    }

    /// Whether a player is waiting for bytes from any origin.
    var isPlayerWaiting: Bool { state.withLock { $0.yielding.isPlayerWaiting } }

    /// Returns the decision on a holder's preloads while players wait.
    func preloadPermission(of holder: AnyObject) -> PreloadPermission {
        state.withLock { $0.yielding.permission(of: ObjectIdentifier(holder)) }
    }

    /// Records that players of a resource from an origin are waiting for bytes, or that they no longer wait.
    func playbackWaits(_ isWaiting: Bool, at origin: String) {
        change { yielding, now in yielding.note(isWaiting: isWaiting, at: origin, now: now) }
    }

    /// Records that `holder` preloads resources from an origin. `changed` is called now, and whenever
    /// ``preloadPermission(of:)`` changes.
    func beginPreloading(_ holder: AnyObject, of origin: String, changed: @escaping @Sendable () -> Void) {
        let holder = ObjectIdentifier(holder)
        change { yielding, _ in
            yielding.begin(holder, of: origin, changed: changed)
            return true
        }
        changed()
    }

    /// Records that `holder` no longer preloads.
    func endPreloading(_ holder: AnyObject) {
        let holder = ObjectIdentifier(holder)
        change { yielding, _ in
            yielding.end(holder)
            return false
        }
    }

    /// Changes the state, and reports each decision that has changed to its preload.
    ///
    /// - Parameter body: A function that makes the change. It returns whether the decisions have to be reviewed.
    private func change(_ body: (inout PreloadYielding, Duration) -> Bool) {
        let now = clock.elapsed()
        let (changed, obsolete) = state.withLock { state -> ([@Sendable () -> Void], Task<Void, Never>?) in
            let changed = body(&state.yielding, now) ? state.yielding.review(at: now, among: state.origins) : []
            return (changed, startTimer(&state, now))
        }
        obsolete?.cancel()
        for report in changed { report() }
    }

    /// Starts a task that reviews the decisions at the next deadline, unless another task will do so earlier.
    ///
    /// - Returns: The task that is no longer needed.
    private func startTimer(_ state: inout State, _ now: Duration) -> Task<Void, Never>? {
        let obsolete = state.timer?.task
        guard let deadline = state.yielding.deadline else {
            guard !state.yielding.hasPreloads else { return nil }
            state.timer = nil
            return obsolete
        }
        if let timer = state.timer, timer.deadline <= deadline { return nil }
        let task = Task(executorPreference: executor) { [weak self, clock] in
            guard (try? await clock.sleep(deadline - now)) != nil else { return }  // An earlier deadline cancels it.
            self?.timerEnded(deadline)
        }
        state.timer = (deadline, task)
        return obsolete
    }

    private func timerEnded(_ deadline: Duration) {
        state.withLock { state in
            if state.timer?.deadline == deadline { state.timer = nil }
        }
        change { _, _ in true }
    }
}
