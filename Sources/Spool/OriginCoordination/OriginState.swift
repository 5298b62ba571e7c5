import SpoolScheduling
import SpoolStorage
import Synchronization

/// The state of one origin while a cache is open, for all of its resources. It contains the measured link, the
/// connections, and the time before which preloads must not send requests.
///
/// A wait for a connection fails if it is cancelled, or if no connection is returned for too long. Players are served
/// before preloads, and otherwise in the order of their requests.
///
/// A long response without ranges occupies its connection until its reader closes, and an endless or slow response may
/// never release it. Up to ``streamLimit`` such responses therefore do not count toward the connection limit.
final class OriginState: Sendable {
    /// The maximum number of long or slow responses that do not count toward the connection limit. Additional responses
    /// count.
    static let streamLimit = 64
    /// The time after which a response counts as slow, if a player is waiting and no connection is returned in the
    /// meantime.
    static let slowTime = Duration.seconds(2)

    private struct Waiter {
        var id: UInt64
        var priority: Priority
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct OpenConnection {
        weak var connection: OriginConnection?
    }

    private struct State {
        var link = LinkEstimate()
        var active = 0
        /// The number of active connections that do not count toward the limit.
        var streams = 0
        /// The connections that have not ended, in the order in which they were opened.
        var open: [OpenConnection] = []
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
        var cancelled: Set<UInt64> = []
        /// The number of connections that have been returned.
        var returned: UInt64 = 0
        /// The elapsed time before which preloads must not send requests.
        var retryAfterDeadline = Duration.zero
        var lastFailure: (kind: OriginFailure, at: Duration)?
        /// The failures that also occurred for requests without a range, with the elapsed time of the last occurrence.
        var failuresWithoutRange: [SimplerRequest.Failure: Duration] = [:]
    }

    private let connectionLimit: Int
    /// The open connections, including paused ones.
    let openConnections: OpenConnections
    private let state = Mutex(State())

    /// - Parameters:
    ///   - connectionLimit: The maximum number of connections in use, excluding paused ones and long responses.
    ///   - openLimit: The maximum number of open connections, or `nil` to learn it from the origin's responses.
    init(connectionLimit: Int, openLimit: Int? = nil) {
        self.connectionLimit = max(1, connectionLimit)
        openConnections = OpenConnections(limit: openLimit)
    }

    /// The measured bandwidth and response time of the link.
    var link: LinkEstimate { state.withLock { $0.link } }

    /// Records that the headers of a response were received `seconds` after the request.
    func record(roundTrip seconds: Double) -> LinkEstimate {
        state.withLock { state in
            state.link.note(roundTrip: seconds)
            return state.link
        }
    }

    /// Records that `bytes` bytes were received in `seconds` seconds.
    func record(bytes: Int64, seconds: Double) -> LinkEstimate {
        state.withLock { state in
            state.link.note(bytes: bytes, seconds: seconds)
            return state.link
        }
    }

    /// Records that a request failed, because of the network or because the origin could not serve it. `time` is the
    /// elapsed time of the failure.
    func recordFailure(_ kind: OriginFailure, at time: Duration) { state.withLock { $0.lastFailure = (kind, time) } }

    /// Records that the origin has responded.
    func recordResponse() { state.withLock { $0.lastFailure = nil } }

    /// Returns the reason why the last request failed. Returns `nil` two minutes after that request, or after the time
    /// set by ``delayPreloads(until:)`` if that is later.
    func lastFailure(at now: Duration) -> OriginFailure? {
        state.withLock { state in
            state.lastFailure.flatMap { max($0.at + .seconds(120), state.retryAfterDeadline) > now ? $0.kind : nil }
        }
    }

    /// The time after which a failure that also occurred without a range may again count as a rejection of ranges. Many
    /// failures are temporary.
    private static let rangeTime = Duration.seconds(120)

    /// Returns whether a request may have failed in this way only because it contained a range. See ``SimplerRequest``.
    func mayRejectRanges(by failure: SimplerRequest.Failure, at now: Duration) -> Bool {
        state.withLock { $0.failuresWithoutRange[failure].map { $0 + Self.rangeTime <= now } ?? true }
    }

    /// Records whether a request that failed in this way succeeds without its range.
    func record(_ failure: SimplerRequest.Failure, succeedsWithoutRange: Bool, at now: Duration) {
        state.withLock { $0.failuresWithoutRange[failure] = succeedsWithoutRange ? nil : now }
    }

    /// Records that preloads must not send requests before `time`, because the origin is overloaded.
    func delayPreloads(until time: Duration) {
        state.withLock { $0.retryAfterDeadline = max($0.retryAfterDeadline, time) }
    }

    /// The elapsed time before which preloads must not send requests.
    var retryAfterDeadline: Duration { state.withLock { $0.retryAfterDeadline } }

    /// The time limit for waiting for a connection.
    struct WaitLimit {
        /// The maximum time without a returned connection.
        var limit: Duration
        /// A function that waits for a duration, as measured by the clock for the network.
        let sleep: @Sendable (Duration) async throws -> Void
        /// A function that returns the elapsed time.
        let now: @Sendable () -> Duration

        /// Creates the limit for a priority. A player waits no longer than it would for a failing origin. A preload
        /// waits longer, because other transfers may be long.
        init(_ priority: Priority, _ policy: RetryPolicy, _ clock: CacheClock) {
            sleep = clock.networkSleep
            now = clock.elapsed
            limit = max(policy.clamped.maximumWait, .seconds(1)) * (priority == .playback ? 1 : 20)
        }
    }

    /// An error that is thrown if no connection was returned within the limit.
    struct AllConnectionsBusy: Error {
        var limit: Duration
    }

    /// Takes one of the origin's connections and counts it as open. Waits until a connection is free.
    ///
    /// - Parameter cancelPaused: See ``open(_:as:_:_:cancelPaused:)``.
    /// - Throws: ``AllConnectionsBusy``; `CancellationError` if the task is cancelled while it waits.
    func connect(
        _ priority: Priority, _ waitLimit: WaitLimit, cancelPaused: @Sendable () -> Bool = { false }
    ) async throws -> OriginConnection {
        let connection = try await takeConnection(priority, waitLimit)
        do {
            try await open(connection, as: priority, .standard, waitLimit, cancelPaused: cancelPaused)
            return connection
        } catch {
            connection.end()
            throw error
        }
    }

    private func takeConnection(_ priority: Priority, _ waitLimit: WaitLimit) async throws -> OriginConnection {
        if let connection = takeIfAvailable(priority) { return connection }
        return try await withThrowingTaskGroup(of: OriginConnection.self) { group in
            group.addTask { try await self.connect(priority) }
            group.addTask { throw try await self.waitUntilTimeout(priority, waitLimit) }
            let first = await group.nextResult()
            group.cancelAll()
            // If another connection was taken at the last moment, it is returned when it is released.
            guard let first else { throw CancellationError() }
            return try first.get()
        }
    }

    /// A rule for opening a connection.
    enum Opening: Sendable {
        /// Wait until the number of open connections is below the limit. If no connection is closed for too long,
        /// exceed a learned limit, because it may result from an unrelated error.
        case standard
        /// Wait until fewer than this number of connections are open, including the new one. After
        /// ``OriginState/slowTime``, open the connection anyway.
        case fewer(than: Int)
        /// Wait until the number of open connections is below the limit. Fail if no connection is closed for too long.
        case limited
    }

    /// The time between two attempts to open a connection.
    private static let openingInterval = Duration.milliseconds(100)

    /// Waits as `opening` requires, and then counts a connection as open.
    ///
    /// - Parameter cancelPaused: A function that cancels a paused transfer of the same resource, for example after a
    ///   seek. Returns whether it did.
    /// - Throws: ``AllConnectionsBusy`` if no connection is closed for too long; `CancellationError` if the task is
    ///   cancelled while it waits.
    func open(
        _ connection: OriginConnection, as priority: Priority, _ opening: Opening, _ waitLimit: WaitLimit,
        cancelPaused: @Sendable () -> Bool
    ) async throws {
        if case .standard = opening, openConnections.open(as: priority, at: waitLimit.now()) {
            return connection.recordOpen(clock: waitLimit.now)
        }
        var (maximum, time, mayExceed): (Int?, Duration, Bool) = (nil, waitLimit.limit, false)
        switch opening {
        case .standard:
            mayExceed = !openConnections.isFixed
            if mayExceed, priority == .playback { time = min(Self.slowTime, time) }
        case .fewer(let number): (maximum, time, mayExceed) = (number - 1, min(Self.slowTime, time), true)
        case .limited: time = min(RetryPolicy().maximumWait, time)
        }
        let ticket = openConnections.beginWaiting(as: priority, maximum: maximum)
        defer { openConnections.endWaiting(ticket) }
        var (closed, waited, mayCancel) = (openConnections.closedCount, Duration.zero, true)
        while !openConnections.open(ticket, at: waitLimit.now()) {
            try Task.checkCancellation()
            if waited >= time {
                guard mayExceed else { throw AllConnectionsBusy(limit: time) }
                openConnections.openBeyondLimit(at: waitLimit.now())
                break
            }
            let hasLimit = openConnections.hasLimit(at: waitLimit.now())
            // Without a known limit, a rejection may have another reason, so the rejected request cancels only one
            // transfer, and others cancel none.
            if hasLimit || maximum != nil && mayCancel, openConnections.mustClose(for: ticket, at: waitLimit.now()) {
                mayCancel = !cancelPaused() && !endTurn(for: priority, at: waitLimit.now())
            }
            try await waitLimit.sleep(Self.openingInterval)
            waited += Self.openingInterval
            let count = openConnections.closedCount
            if count != closed, maximum == nil { (closed, waited) = (count, .zero) }
        }
        connection.recordOpen(clock: waitLimit.now)
    }

    /// Cancels a transfer, so that its connection becomes available for a waiting request. Returns whether a transfer
    /// was cancelled. The remaining bytes are requested when the player of that transfer needs them.
    private func endTurn(for priority: Priority, at now: Duration) -> Bool {
        let open = state.withLock { $0.open }
        if open.contains(where: { $0.connection?.cancelIfPaused(for: priority, at: now) == true }) { return true }
        guard priority == .playback else { return false }
        return open.contains { $0.connection?.cancelAfterTurn(at: now) == true }
    }

    /// Waits until no connection has been returned for as long as `waitLimit` allows, and returns the error to throw.
    /// While a player waits, slow responses stop counting toward the connection limit, one after another.
    private func waitUntilTimeout(_ priority: Priority, _ waitLimit: WaitLimit) async throws -> AllConnectionsBusy {
        let step = priority == .playback ? min(Self.slowTime, waitLimit.limit / 2) : waitLimit.limit
        var returned = state.withLock { $0.returned }
        var waited = Duration.zero
        while true {
            try await waitLimit.sleep(step)
            let count = state.withLock { $0.returned }
            if count != returned {
                (returned, waited) = (count, .zero)
                continue
            }
            waited += step
            guard waited < waitLimit.limit else { return AllConnectionsBusy(limit: waitLimit.limit) }
            if priority == .playback { passSlowResponse() }
        }
    }

    /// Stops counting the oldest of the connections that count toward the limit, so that a waiting transfer can
    /// connect.
    private func passSlowResponse() {
        let open = state.withLock { $0.streams < Self.streamLimit ? $0.open : [] }
        for entry in open where entry.connection?.passIfFlowing() == true { return }
    }

    /// Takes a connection and counts it as open. Returns `nil` if none is free.
    func connectIfAvailable(_ priority: Priority, now: @escaping @Sendable () -> Duration) -> OriginConnection? {
        guard let connection = takeIfAvailable(priority) else { return nil }
        guard openConnections.open(as: priority, at: now()) else {
            connection.end()
            return nil
        }
        connection.recordOpen(clock: now)
        return connection
    }

    private func takeIfAvailable(_ priority: Priority) -> OriginConnection? {
        let isFree = state.withLock { state in
            guard hasConnection(for: priority, state) else { return false }
            state.active += 1
            return true
        }
        return isFree ? makeConnection() : nil
    }

    /// Takes one of the origin's connections. Waits without a time limit until a connection is free.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    func connect(_ priority: Priority) async throws -> OriginConnection {
        let id: UInt64? = state.withLock { state in
            if hasConnection(for: priority, state) {
                state.active += 1
                return nil
            }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return makeConnection() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if hasConnection(for: priority, state) {
                        state.active += 1
                        return .success(())
                    }
                    let waiter = Waiter(id: id, priority: priority, continuation: continuation)
                    let place = state.waiters.firstIndex { $0.priority < priority } ?? state.waiters.endIndex
                    state.waiters.insert(waiter, at: place)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(id) }
        return makeConnection()
    }

    /// Creates the object for a connection that `active` already includes.
    private func makeConnection() -> OriginConnection {
        let connection = OriginConnection(self)
        // If the last reference to a connection were released under the lock, its `deinit` would acquire it again.
        let known = state.withLock { state in
            let known = state.open.map(\.connection)
            state.open.removeAll { $0.connection == nil }
            state.open.append(OpenConnection(connection: connection))
            return known
        }
        _ = consume known
        return connection
    }

    /// Returns whether a connection is free. Preloads leave one connection for players, in case the origin does not
    /// respond on any other connection.
    private func hasConnection(for priority: Priority, _ state: State) -> Bool {
        let limit = priority == .preload ? max(1, connectionLimit - 1) : connectionLimit
        return state.active - min(state.streams, Self.streamLimit) < limit
    }

    /// The number of connections in use.
    var activeCount: Int { state.withLock { $0.active } }
    /// The number of transfers that wait for a connection.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Takes back a connection, and gives it to the first waiting transfer.
    func disconnect(isStream: Bool) {
        giveToNext { state in
            state.active -= 1
            state.returned += 1
            if isStream { state.streams -= 1 }
        }
    }

    /// Records that a connection carries a long or slow response, so that the next waiting transfer can connect.
    func recordStream() { giveToNext { $0.streams += 1 } }

    private func giveToNext(_ change: (inout State) -> Void) {
        let next = state.withLock { state -> Waiter? in
            change(&state)
            guard let first = state.waiters.first, hasConnection(for: first.priority, state) else { return nil }
            state.active += 1
            return state.waiters.removeFirst()
        }
        next?.continuation.resume()
    }

    /// Records that a paused connection is in use again, even beyond the limit. If the transfer had to wait, its
    /// connection could be lost.
    func reconnect(isStream: Bool) {
        state.withLock { state in
            state.active += 1
            if isStream { state.streams += 1 }
        }
    }
}

/// A reason why an origin can't serve requests for some time.
package enum OriginFailure: Sendable {
    /// The origin does not respond.
    case unreachable
    /// The origin responds that it can't serve the request now.
    case refusing
}
