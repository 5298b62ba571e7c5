import SpoolScheduling
import Synchronization

/// The open connections to one origin, and the number of them that the origin accepts.
///
/// Some origins accept only a few connections for each account. The number is either configured, or learned when the
/// origin rejects a request while other connections are open and accepts the same request later. A learned limit is
/// used for a day. Paused connections count, because the origin has not closed them.
final class OpenConnections: Sendable {
    private struct State {
        var count = 0
        /// The number of players' transfers that wait for a connection.
        var waitingPlayers = 0
        /// The learned limit, and the elapsed time at which it expires.
        var learned: (limit: Int, deadline: Duration)?
        /// The number of connections that have been closed.
        var closed: UInt64 = 0
    }

    /// The time for which a learned limit is used.
    static let learnedTime = Duration.seconds(86_400)

    private let configuredLimit: Int?
    private let state = Mutex(State())

    /// - Parameter limit: The configured limit, or `nil` to learn the limit from the origin's responses.
    init(limit: Int?) { configuredLimit = limit.map { max(1, $0) } }

    /// The number of open connections.
    var count: Int { state.withLock { $0.count } }
    /// The number of connections that have been closed.
    var closedCount: UInt64 { state.withLock { $0.closed } }
    /// Whether the limit is configured, so that it is never exceeded.
    var isFixed: Bool { configuredLimit != nil }

    /// Returns the maximum number of open connections, or `nil` if no limit is known.
    func limit(at now: Duration) -> Int? { state.withLock { limit($0, at: now) } }

    private func limit(_ state: State, at now: Duration) -> Int? {
        configuredLimit ?? state.learned.flatMap { $0.deadline > now ? $0.limit : nil }
    }

    /// Counts a new connection if the limit permits it. Returns whether it does.
    ///
    /// - Parameter isAlone: Whether the connection is permitted only if no other connection is open.
    func open(as priority: Priority, isAlone: Bool, at now: Duration) -> Bool {
        state.withLock { state in
            if let limit = isAlone ? 1 : limit(state, at: now) {
                guard state.count < limit, priority == .playback || state.waitingPlayers == 0 else { return false }
            }
            state.count += 1
            return true
        }
    }

    /// Counts a new connection even if it exceeds the limit.
    func openBeyondLimit() { state.withLock { $0.count += 1 } }

    /// Records that a connection is closed.
    func close() {
        state.withLock { state in
            state.count -= 1
            state.closed += 1
        }
    }

    /// Records that a player's transfer starts or stops to wait for a connection.
    func recordWait(isWaiting: Bool) { state.withLock { $0.waitingPlayers += isWaiting ? 1 : -1 } }

    /// Records that the origin rejected a request while `others` other connections were open, and accepts it now.
    ///
    /// - Returns: The new limit, or `nil` if the number of connections was not the reason.
    func recordAcceptance(afterRejectionWith others: Int, at now: Duration) -> Int? {
        state.withLock { state in
            guard others > 0, state.count <= others else { return nil }
            let limit = min(others, limit(state, at: now) ?? others)
            state.learned = (limit, now + Self.learnedTime)
            return limit
        }
    }

    /// Records that the origin accepted a request with the open connections. The learned limit increases if it was
    /// exceeded.
    func recordAcceptance(at now: Duration) {
        state.withLock { state in
            guard let learned = state.learned, learned.limit < state.count else { return }
            state.learned = (state.count, learned.deadline)
        }
    }
}
