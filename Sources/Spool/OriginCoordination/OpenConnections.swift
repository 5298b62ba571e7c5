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

    /// A limit that was learned from a rejection.
    private struct LearnedLimit {
        var limit: Int
        /// The elapsed time at which the limit expires.
        var deadline: Duration
        /// The elapsed time at which the limit may be exceeded once.
        var probe: Duration
        /// Whether the rejected request has not been accepted yet, so that the limit may not exist.
        var isAssumed = false
    }

    private struct State {
        var count = 0
        /// The number of open connections on which the origin has accepted the request.
        var accepted = 0
        /// The largest number of accepted connections that were open at the same time, and the elapsed time at which it
        /// was last reached. The number is ignored after ``peakTime``.
        var peak = (count: 0, time: Duration.zero)
        /// The waiting requests, players before preloads, otherwise in the order in which they started to wait.
        var tickets: [Ticket] = []
        var nextID: UInt64 = 0
        var learned: LearnedLimit?
        /// The number of accepted connections that have been closed.
        var closed: UInt64 = 0
        /// The elapsed time at which an accepted connection was last closed.
        var lastClosing: Duration?
        /// The elapsed time at which a connection was last closed before the end of its response.
        var lastCancellation: Duration?
        /// The measured time after which the origin notices that a connection was closed.
        var closingDelay = Duration.zero
        /// The elapsed time until which rejections are not attributed to the number of connections.
        var otherReasonDeadline = Duration.zero
    }

    /// The time for which a learned limit is used.
    private static let learnedTime = Duration.seconds(86_400)
    /// The interval at which a learned limit is exceeded by one, to determine whether it still applies.
    private static let probeInterval = Duration.seconds(60)
    /// The time for which a limit is assumed while a rejected request is sent again.
    private static let assumedTime = Duration.seconds(10)
    /// The maximum limit that is learned. If more connections are open, a rejection probably has another reason.
    private static let maximumLearnedLimit = 16
    /// The time for which the largest number of accepted connections is known.
    private static let peakTime = Duration.seconds(60)
    /// The maximum time that an origin may need to notice that a connection was closed.
    private static let closingTime = Duration.seconds(3)
    /// The time for which rejections are not attributed to the number of connections, after an origin has rejected a
    /// request again despite ``Remedy/openFewer(than:)``.
    private static let otherReasonTime = Duration.seconds(120)

    private let configuredLimit: Int?
    private let state = Mutex(State())

    /// - Parameter limit: The configured limit, or `nil` to learn the limit from the origin's responses.
    init(limit: Int?) { configuredLimit = limit.map { max(1, $0) } }

    /// The number of accepted connections that have been closed.
    var closedCount: UInt64 { state.withLock { $0.closed } }
    /// Whether the limit is configured, so that it is never exceeded.
    var isFixed: Bool { configuredLimit != nil }

    /// Returns the maximum number of open connections, or `nil` if no limit is known.
    func limit(at now: Duration) -> Int? { state.withLock { limit($0, at: now) } }

    private func limit(_ state: State, at now: Duration) -> Int? {
        configuredLimit ?? state.learned.flatMap { $0.deadline > now ? $0.limit : nil }
    }

    /// Returns the number of connections that may be open now, or `nil` if no limit is known.
    private func capacity(_ state: State, at now: Duration) -> Int? {
        guard let limit = limit(state, at: now) else { return nil }
        let mayExceed = !isFixed && state.learned.map { $0.probe <= now } ?? false
        return mayExceed ? limit + 1 : limit
    }

    /// Counts a new connection.
    private func add(to state: inout State, at now: Duration) {
        if let learned = state.learned, state.count >= learned.limit { state.learned?.probe = now + Self.probeInterval }
        state.count += 1
    }

    /// Returns whether the origin has probably not noticed yet that a response was cancelled.
    private func isClosing(_ state: State, at now: Duration) -> Bool {
        state.lastCancellation.map { now - $0 < state.closingDelay } ?? false
    }

    // MARK: - Opening and closing

    /// Counts a new connection if the limit permits it and no other request has to be served first. Returns whether the
    /// connection may be opened.
    func open(as priority: Priority, at now: Duration) -> Bool {
        state.withLock { state in
            if let capacity = capacity(state, at: now) {
                guard state.count < capacity, !isClosing(state, at: now) else { return false }
                let isNext = !state.tickets.contains {
                    $0.priority >= priority && state.count < $0.maximum ?? capacity
                }
                guard isNext else { return false }
            }
            add(to: &state, at: now)
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
            let capacity = capacity(state, at: now) ?? .max
            guard state.count < ticket.maximum ?? capacity, !isClosing(state, at: now) else { return false }
            let earlier = state.tickets.prefix { $0.id != ticket.id }
            guard !earlier.contains(where: { state.count < $0.maximum ?? capacity }) else { return false }
            add(to: &state, at: now)
            return true
        }
    }

    /// Returns whether a waiting request needs a connection that is open now. Otherwise, it waits for other requests,
    /// or until the origin has noticed that a connection was closed.
    func mustClose(for ticket: Ticket, at now: Duration) -> Bool {
        state.withLock { state in
            guard let maximum = ticket.maximum ?? capacity(state, at: now) else { return false }
            return state.count >= maximum
        }
    }

    /// Whether the limit is configured or was learned, so that players take turns.
    func hasLimit(at now: Duration) -> Bool {
        state.withLock { limit($0, at: now) != nil && $0.learned?.isAssumed != true }
    }

    /// Removes a request from those that wait for a connection.
    func endWaiting(_ ticket: Ticket) { state.withLock { $0.tickets.removeAll { $0.id == ticket.id } } }

    /// Counts a new connection even if it exceeds the limit.
    func openBeyondLimit(at now: Duration) { state.withLock { add(to: &$0, at: now) } }

    /// The outcome of a connection's request when the connection is closed.
    enum Closing: Sendable {
        /// The origin did not accept the request.
        case notAccepted
        /// The response was not received to its end, so the origin may need time to notice that the connection was
        /// closed.
        case cancelled
        /// The response was received to its end.
        case ended
    }

    /// Records that a connection is closed.
    func close(_ closing: Closing, at now: Duration) {
        state.withLock { state in
            state.count -= 1
            guard closing != .notAccepted else { return }
            state.closed += 1
            state.accepted -= 1
            state.lastClosing = now
            if closing == .cancelled { state.lastCancellation = now }
        }
    }

    // MARK: - Rejections

    /// The wait before a rejected request is sent again.
    enum Remedy: Equatable, Sendable {
        /// A short wait, because the origin may not have noticed that a connection was closed.
        case wait
        /// A wait until fewer than this number of connections are open, including the connection of the request.
        case openFewer(than: Int)
        /// A wait until the number of open connections is within the known limit.
        case openWithinLimit
    }

    /// Returns the wait before a rejected request is sent again. The request's own connection is open.
    ///
    /// The result is `nil` if the number of connections is probably not the reason for the rejection. This is the case
    /// if no other request is accepted, or if the origin has accepted more connections within the last minute.
    ///
    /// With ``Remedy/openFewer(than:)``, the number of accepted connections is assumed to be the limit. This applies
    /// until the request is accepted, for at most ten seconds.
    ///
    /// - Parameter isRepeated: Whether the request was sent again after ``Remedy/openFewer(than:)``.
    func remedy(isRepeated: Bool = false, at now: Duration) -> Remedy? {
        state.withLock { state in
            let limit = limit(state, at: now)
            if let limit, state.count > limit {
                // No connection was closed in time, so it is not known whether there is a limit.
                return isRepeated && state.learned?.isAssumed == true ? nil : .openWithinLimit
            }
            guard now >= state.otherReasonDeadline else { return nil }
            if limit != nil, let time = state.lastClosing, now - time < Self.closingTime { return .wait }
            guard !isFixed, (1...Self.maximumLearnedLimit).contains(state.accepted),
                peak(state, at: now) <= state.accepted
            else { return nil }
            let deadline = now + Self.assumedTime
            if limit == nil {
                state.learned = LearnedLimit(
                    limit: state.accepted, deadline: deadline, probe: deadline, isAssumed: true)
            }
            return .openFewer(than: state.accepted + 1)
        }
    }

    private func peak(_ state: State, at now: Duration) -> Int {
        now - state.peak.time > Self.peakTime ? 0 : state.peak.count
    }

    /// Records that a request failed again after ``Remedy/openFewer(than:)``, so that the rejection probably has
    /// another reason.
    func recordOtherReason(at now: Duration) {
        state.withLock { state in
            // If no connection was closed in time, it is not known whether their number was the reason.
            let isKnown = limit(state, at: now).map { state.count <= $0 } ?? true
            state.otherReasonDeadline = now + (isKnown ? Self.otherReasonTime : Self.assumedTime)
            if state.learned?.isAssumed == true { state.learned = nil }
        }
    }

    /// Records that the origin accepted the request of an open connection for the first time. A learned limit increases
    /// if it was exceeded.
    ///
    /// - Parameters:
    ///   - bound: The number of connections that was too large when the origin rejected the same request. The value is
    ///     `nil` if the number was not the reason for a rejection.
    ///   - hasWaited: Whether the request was sent again because the origin had not noticed a closed connection.
    /// - Returns: The new limit if it was learned from the rejection, otherwise `nil`.
    func recordAcceptance(afterRejectionOf bound: Int? = nil, hasWaited: Bool = false, at now: Duration) -> Int? {
        state.withLock { state -> Int? in
            state.accepted += 1
            if state.accepted >= peak(state, at: now) { state.peak = (state.accepted, now) }
            if hasWaited, let time = state.lastCancellation, time == state.lastClosing {
                state.closingDelay = max(state.closingDelay, min(now - time, Self.closingTime))
            } else {
                // The delay may have become shorter.
                state.closingDelay = state.closingDelay * 9 / 10
            }
            guard !isFixed else { return nil }
            if var learned = state.learned, learned.limit < state.accepted {
                // The limit may be too low, so the next request may exceed it too.
                (learned.limit, learned.probe) = (state.accepted, now)
                state.learned = learned
            }
            guard let bound else { return nil }
            guard peak(state, at: now) < bound else {
                if state.learned?.isAssumed == true { state.learned = nil }
                return nil
            }
            state.learned = LearnedLimit(
                limit: bound - 1, deadline: now + Self.learnedTime, probe: now + Self.probeInterval)
            return bound - 1
        }
    }
}
