import Foundation
import HTTPTypes
import Synchronization

/// The URL and the header fields with which one source's requests are sent. They are used until the origin rejects them
/// or they expire.
///
/// The credentials belong to the source, not to the resource. Each source of a resource has its own credentials, and
/// the bytes for a reader are requested with the credentials of the reader's source. If several transfers are rejected
/// at the same time, the source is resolved once.
final class SourceCredentials: Sendable {
    /// A resolved request, and its number.
    struct Resolved: Sendable {
        var request: ResolvedRequest
        var number: Int
    }

    private struct State {
        var resolved: Resolved?
        var resolving: Task<Resolved, any Error>?
        /// Whether the source has been resolved again since the origin last accepted a request.
        var hasRefreshed = false
    }

    let source: MediaSource
    private let now: @Sendable () -> Date
    private let executor: any TaskExecutor
    private let state = Mutex(State())

    /// Creates credentials that are resolved when they are first needed.
    ///
    /// - Parameter now: A function that returns the current date, which determines when requests expire.
    init(_ source: MediaSource, now: @escaping @Sendable () -> Date, executor: any TaskExecutor) {
        self.source = source
        self.now = now
        self.executor = executor
    }

    /// The last resolved request, or `nil` if there is none.
    var known: ResolvedRequest? { state.withLock { $0.resolved?.request } }

    /// Returns the request to send, and resolves the source if it has not been resolved, or if the request has expired.
    /// If the resolver returns a request that has already expired, that request is sent once.
    ///
    /// - Throws: `UpstreamError` if the source's resolver failed because of the network; other errors from the
    ///   resolver.
    func resolved() async throws -> Resolved {
        try await resolve { state in
            guard let known = state.resolved else { return .resolve(.initial) }
            if let expiration = known.request.expiration, expiration <= now() { return .resolve(.expired) }
            return .known(known)
        }
    }

    /// Resolves the source again after the origin rejected request number `number`. Does nothing if the source has no
    /// resolver, or has already been resolved again since the origin last accepted a request.
    ///
    /// - Returns: Whether there is a new request to try.
    /// - Throws: The errors from ``resolved()``.
    func refresh(_ number: Int, status: Int) async throws -> Bool {
        let resolved = try await resolve { state in
            if let known = state.resolved, known.number > number { return .known(known) }
            guard source.isResolved else { return .none }
            if state.hasRefreshed, state.resolving == nil {
                // The current playback ends. The next playback may start after a sign-in.
                state.hasRefreshed = false
                return .none
            }
            state.hasRefreshed = true
            return .resolve(.refused(status: status))
        }
        return resolved.number > number
    }

    /// Records that the origin has accepted a request. After the next rejection, the source may be resolved again.
    func accepted() {
        state.withLock { $0.hasRefreshed = false }
    }

    private enum Step {
        case known(Resolved)
        case resolve(MediaSource.ResolutionReason)
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
                    // The result is recorded here, even if no caller waits for it anymore.
                    do {
                        let resolved = Resolved(request: try await source.resolve(reason), number: number)
                        self.state.withLock { ($0.resolved, $0.resolving) = (resolved, nil) }
                        return resolved
                    } catch {
                        // There is no new request, so the source may be resolved again after the next rejection.
                        self.state.withLock { ($0.resolving, $0.hasRefreshed) = (nil, false) }
                        throw UpstreamError(resolving: error, of: source.redactedURL) ?? error
                    }
                }
                state.resolving = task
                return (nil, task)
            }
        }
        if let known { return known }
        guard let task else { return Resolved(request: .init(url: source.url), number: -1) }
        // A resolver may ignore cancellation. A cancelled caller does not wait for it.
        try await task.waitForEnd(on: executor)
        return try await task.value
    }
}
