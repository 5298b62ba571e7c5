import SpoolScheduling
import Synchronization

/// The open connections to one origin, and the maximum number that the origin accepts.
///
/// Some origins accept only a few connections for each account. The number is either configured, or learned when the
/// origin rejects a request while other connections are open and accepts the same request later. A learned limit is
/// used for a day. Paused connections count, because they are still open at the origin.
final class OpenConnections: Sendable {
    /// A request that waits for a connection.
    struct Ticket: Sendable {
        fileprivate let id: UInt64
        let priority: Priority
        /// The maximum number of open connections, including the connection of this request; `nil` for the limit of the
        /// origin.
        let maximum: Int?
    }

    private struct State {
        var count = 0
        /// The number of open connections on which the origin has accepted the request.
        var accepted = 0
        /// The largest number of accepted connections that were open at a time, and the elapsed time of the last one.
        /// Numbers before ``peakTime`` are forgotten.
        var peak = (count: 0, time: Duration.zero)
        /// The waiting requests, players before preloads, otherwise in the order in which they started to wait.
        var tickets: [Ticket] = []
        var nextID: UInt64 = 0
        /// The learned limit, and the elapsed time at which it expires.
        var learned: (limit: Int, deadline: Duration)?
        /// The number of connections that have been closed.
        var closed: UInt64 = 0
        /// The elapsed time at which a connection was last closed.
        var lastClosing: Duration?
        /// The elapsed time until which rejections are not attributed to the number of connections.
        var otherReasonDeadline = Duration.zero
    }

    /// The time for which a learned limit is used.
    static let learnedTime = Duration.seconds(86_400)
    /// The maximum limit that is learned. If more connections are open, a rejection probably has another
    /// reason.
    static let maximumLearnedLimit = 16
    /// The time for which the largest number of accepted connections is known.
    private static let peakTime = Duration.seconds(60)
    /// The time that an origin may need to notice that a connection was closed.
    private static let closingTime = Duration.seconds(2)
    /// The time for which rejections are not attributed to the number of connections, after an origin has rejected a
    /// request on its only connection.
    private static let otherReasonTime = Duration.seconds(120)

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

    // MARK: - Opening and closing

    /// Counts a new connection if the limit permits it and no other request has to be served first. Returns whether the
    /// connection may be opened.
    func open(as priority: Priority, at now: Duration) -> Bool {
        state.withLock { state in
            guard let limit = limit(state, at: now) else {
                state.count += 1
                return true
            }
            let isPreceded = state.tickets.contains { $0.priority >= priority && state.count < $0.maximum ?? limit }
            guard state.count < limit, !isPreceded else { return false }
            state.count += 1
            return true
        }
    }

    /// Adds a request to those that wait for a connection.
    ///
    /// - Parameter maximum: The maximum number of open connections, including the connection of this request; `nil` for
    ///   the limit of the origin.
    func beginWaiting(as priority: Priority, maximum: Int?) -> Ticket {
        state.withLock { state in
            state.nextID += 1
            let ticket = Ticket(id: state.nextID, priority: priority, maximum: maximum)
            let place = state.tickets.firstIndex { $0.priority < priority } ?? state.tickets.endIndex
            state.tickets.insert(ticket, at: place)
            return ticket
        }
    }

    /// Counts a waiting request's connection if the limit permits it and no other request has to be served first.
    /// Returns whether the connection may be opened.
    func open(_ ticket: Ticket, at now: Duration) -> Bool {
        state.withLock { state in
            let limit = limit(state, at: now) ?? .max
            guard state.count < ticket.maximum ?? limit else { return false }
            let earlier = state.tickets.prefix { $0.id != ticket.id }
            guard !earlier.contains(where: { state.count < $0.maximum ?? limit }) else { return false }
            state.count += 1
            return true
        }
    }

    /// Removes a request from those that wait for a connection.
    func endWaiting(_ ticket: Ticket) { state.withLock { $0.tickets.removeAll { $0.id == ticket.id } } }

    /// Counts a new connection even if it exceeds the limit.
    func openBeyondLimit() { state.withLock { $0.count += 1 } }

    /// Records that a connection is closed.
    ///
    /// - Parameter isAccepted: Whether the origin had accepted the connection's request.
    func close(isAccepted: Bool, at now: Duration) {
        state.withLock { state in
            state.count -= 1
            if isAccepted { state.accepted -= 1 }
            state.closed += 1
            state.lastClosing = now
        }
    }

    // MARK: - Rejections

    /// The wait before a rejected request is sent again.
    enum Remedy: Equatable, Sendable {
        /// A short wait, because the origin may not have noticed that a connection was closed.
        case wait
        /// A wait until no other connection is open.
        case openAlone
        /// A wait until the number of open connections is within the known limit.
        case openWithinLimit
    }

    /// Returns the wait before a rejected request is sent again. The request's own connection is open.
    ///
    /// The result is `nil` if the number of connections is probably not the reason for the rejection.
    func remedy(at now: Duration) -> Remedy? {
        state.withLock { state in
            let others = state.count - 1
            guard let limit = limit(state, at: now) else {
                let mayLackConnections = (1...Self.maximumLearnedLimit).contains(others)
                return mayLackConnections && now >= state.otherReasonDeadline ? .openAlone : nil
            }
            if others >= limit { return .openWithinLimit }
            if let time = state.lastClosing, now - time < Self.closingTime { return .wait }
            return others > 0 && !isFixed ? .openAlone : nil
        }
    }

    /// Records that the origin rejected a request again after it was sent again.
    func recordRejection(at now: Duration) {
        state.withLock { if $0.count == 1 { $0.otherReasonDeadline = now + Self.otherReasonTime } }
    }

    /// Records that the origin accepted a request while the current number of connections was open. A learned limit
    /// increases if it was exceeded.
    ///
    /// - Parameters:
    ///   - isFirst: Whether this is the first accepted request of its connection.
    ///   - others: The number of other connections that were open when the origin rejected the same request, or `nil` if
    ///     it did not reject it. Some of them may have been rejected too.
    /// - Returns: The new limit if it was learned from the rejection, otherwise `nil`.
    func recordAcceptance(isFirst: Bool, afterRejectionWith others: Int? = nil, at now: Duration) -> Int? {
        state.withLock { state in
            if isFirst { state.accepted += 1 }
            if state.accepted >= state.peak.count || now - state.peak.time > Self.peakTime {
                state.peak = (state.accepted, now)
            }
            guard !isFixed else { return nil }
            if let learned = state.learned, learned.limit < state.accepted { state.learned?.limit = state.accepted }
            guard let others, others > 0, state.count <= others else { return nil }
            let limit = min(others, max(1, state.peak.count), limit(state, at: now) ?? others)
            state.learned = (limit, now + Self.learnedTime)
            return limit
        }
    }
}
