import Foundation
import HTTPTypes
import Synchronization

/// What one source's requests are sent with: its resolved URL and header fields, kept until the origin refuses
/// them or they expire.
///
/// Belongs to the source, not to the resource: two sources of one resource each have their own, and a reader's bytes are
/// asked for with those of its source. Resolving is single-flight: however many transfers are refused at once, the
/// source is asked once.
final class SourceCredentials: Sendable {
    /// A resolved request, and the how-manieth it is.
    struct Resolved: Sendable {
        var request: ResolvedRequest
        var number: Int
    }

    private struct State {
        var resolved: Resolved?
        var resolving: Task<Resolved, any Error>?
        /// Whether a fresh one has been asked for since the origin last accepted one.
        var hasRefreshed = false
    }

    let source: MediaSource
    private let now: @Sendable () -> Date
    private let executor: any TaskExecutor
    private let state = Mutex(State())

    /// - Parameter now: The calendar by which requests expire.
    init(_ source: MediaSource, now: @escaping @Sendable () -> Date, executor: any TaskExecutor) {
        self.source = source
        self.now = now
        self.executor = executor
    }

    /// What was last resolved; nil if nothing was.
    var known: ResolvedRequest? { state.withLock { $0.resolved?.request } }

    /// What to send, resolving it if that has not been done, or has expired. One that comes expired is sent once.
    ///
    /// - Throws: `UpstreamError` where the source's resolver failed for want of a network; else whatever it throws.
    func resolved() async throws -> Resolved {
        try await resolve { state in
            guard let known = state.resolved else { return .resolve(.first) }
            if let expiration = known.request.expiration, expiration <= now() { return .resolve(.expired) }
            return .known(known)
        }
    }

    /// The origin refused request number `number`: asks the source for a fresh one, once in a row.
    ///
    /// - Returns: Whether there is something new to try.
    /// - Throws: As ``resolved()``.
    func refresh(_ number: Int, status: Int) async throws -> Bool {
        let resolved = try await resolve { state in
            if let known = state.resolved, known.number > number { return .known(known) }
            guard source.isResolved else { return .none }
            if state.hasRefreshed, state.resolving == nil {
                // That play ends with it; the next one may come after a sign-in.
                state.hasRefreshed = false
                return .none
            }
            state.hasRefreshed = true
            return .resolve(.refused(status: status))
        }
        return resolved.number > number
    }

    /// The origin has accepted what was sent: the next refusal may ask for a fresh one again.
    func accepted() {
        state.withLock { $0.hasRefreshed = false }
    }

    private enum Step {
        case known(Resolved)
        case resolve(MediaSource.Reason)
        case none
    }

    private func resolve(_ decide: (inout State) -> Step) async throws -> Resolved {
        let (known, task) = state.withLock { state -> (Resolved?, Task<Resolved, any Error>?) in
            switch decide(&state) {
            case .known(let resolved): return (resolved, nil)
            case .none: return (state.resolved, nil)
            case .resolve(let reason):
                if let resolving = state.resolving { return (nil, resolving) }
                let number = (state.resolved?.number ?? -1) + 1
                let task = Task(executorPreference: executor) { [source] in
                    // What it came to is noted here, whether or not anyone still waits for it.
                    do {
                        let resolved = Resolved(request: try await source.resolve(reason), number: number)
                        self.state.withLock { ($0.resolved, $0.resolving) = (resolved, nil) }
                        return resolved
                    } catch {
                        // Nothing fresh has come of it, so the next refusal may ask again.
                        self.state.withLock { ($0.resolving, $0.hasRefreshed) = (nil, false) }
                        throw UpstreamError(resolving: error, of: source.displayAddress) ?? error
                    }
                }
                state.resolving = task
                return (nil, task)
            }
        }
        if let known { return known }
        guard let task else { return Resolved(request: .init(url: source.url), number: -1) }
        // A resolver may take no notice of cancellation: who is cancelled waits for it no longer.
        try await task.waitForEnd(on: executor)
        return try await task.value
    }
}
