package import Foundation
import Synchronization

/// What several sources have to find out before they can ask, found once for all: an account's token, a link.
///
/// Single-flight: however many transfers are refused at once, one question is asked, and what it gives serves all. May be
/// used from any task.
package final class SharedResolution<Value: Sendable>: Sendable {
    private struct Resolved: Sendable {
        var value: Value
        var number: Int
    }

    private struct State {
        var resolved: Resolved?
        var resolving: Task<Resolved, any Error>?
    }

    /// One of those that share it. Knows what it was given last, so that a refusal of what others have replaced since
    /// does not ask anew.
    package final class Share: Sendable {
        private let shared: SharedResolution
        private let last = Mutex(-1)

        fileprivate init(_ shared: SharedResolution) { self.shared = shared }

        /// What was found, or is found now: where nothing was, it has expired, or this share was refused the newest.
        ///
        /// - Throws: What the finding throws.
        package func value(_ reason: MediaSource.Reason) async throws -> Value {
            let refused: Int? = if case .refused = reason { last.withLock { $0 } } else { nil }
            let resolved = try await shared.resolved(reason, since: refused)
            last.withLock { $0 = resolved.number }
            return resolved.value
        }
    }

    private let now: @Sendable () -> Date
    private let expiration: @Sendable (Value) -> Date?
    private let resolve: @Sendable (MediaSource.Reason) async throws -> Value
    private let state = Mutex(State())

    /// - Parameters:
    ///   - now: The calendar by which values expire.
    ///   - expiration: When a value ceases to be accepted; nil: when it is refused.
    ///   - resolve: Finds a value.
    package init(
        now: @escaping @Sendable () -> Date, expiration: @escaping @Sendable (Value) -> Date?,
        resolve: @escaping @Sendable (MediaSource.Reason) async throws -> Value
    ) {
        self.now = now
        self.expiration = expiration
        self.resolve = resolve
    }

    /// A share for one source.
    package func share() -> Share { Share(self) }

    private func resolved(_ reason: MediaSource.Reason, since refused: Int?) async throws -> Resolved {
        let (known, task) = state.withLock { state -> (Resolved?, Task<Resolved, any Error>?) in
            if let resolving = state.resolving { return (nil, resolving) }
            var reason = reason
            if let known = state.resolved {
                if let expiration = expiration(known.value), expiration <= now() {
                    reason = .expired
                } else if refused.map({ known.number > $0 }) ?? true {
                    return (known, nil)
                }
            }
            let number = (state.resolved?.number ?? -1) + 1
            let task = Task { [reason] in
                do {
                    let resolved = Resolved(value: try await resolve(reason), number: number)
                    self.state.withLock { ($0.resolved, $0.resolving) = (resolved, nil) }
                    return resolved
                } catch {
                    self.state.withLock { $0.resolving = nil }
                    throw error
                }
            }
            state.resolving = task
            return (nil, task)
        }
        if let known { return known }
        guard let task else { throw CancellationError() }
        return try await task.value
    }
}
