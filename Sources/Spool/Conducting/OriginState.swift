import SpoolStorage
import Synchronization

/// What is known of one origin while a cache is open, whichever resources come from it: the line, its connections, and
/// until when it is to be left alone.
///
/// Waiting for a connection ends early by cancellation, or when none is given back for too long. Players go before
/// preloads, and among equals who came first.
///
/// A long response without ranges occupies its connection until its reader leaves, and an endless stream never releases
/// it. Up to ``streamLimit`` such responses therefore do not count toward the connection limit.
final class OriginState: Sendable {
    /// The maximum number of long responses without ranges that do not count toward the connection limit. Others count.
    static let streamLimit = 64

    private struct Waiter {
        var id: UInt64
        var priority: Priority
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var link = LinkEstimate()
        var active = 0
        /// The number of active connections that carry a long response without ranges.
        var streams = 0
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
        var cancelled: Set<UInt64> = []
        /// How many connections have been given back.
        var given: UInt64 = 0
        /// Elapsed time before which preloads do not ask.
        var restUntil = Duration.zero
        var loss: (kind: OriginLoss, at: Duration)?
    }

    private let connectionLimit: Int
    private let state = Mutex(State())

    init(connectionLimit: Int) { self.connectionLimit = max(1, connectionLimit) }

    /// What has been measured of the line.
    var link: LinkEstimate { state.withLock { $0.link } }

    /// A request's head came after `seconds`.
    func note(roundTrip seconds: Double) -> LinkEstimate {
        state.withLock { state in
            state.link.note(roundTrip: seconds)
            return state.link
        }
    }

    /// So many bytes came in so many seconds.
    func note(bytes: Int64, seconds: Double) -> LinkEstimate {
        state.withLock { state in
            state.link.note(bytes: bytes, seconds: seconds)
            return state.link
        }
    }

    /// A request failed for want of the line, or of a server that can serve, at an elapsed time.
    func lost(_ kind: OriginLoss, at time: Duration) { state.withLock { $0.loss = (kind, time) } }

    /// It has responded.
    func found() { state.withLock { $0.loss = nil } }

    /// What the last request failed for, at an elapsed time: nil two minutes after it, or after the time for which the
    /// origin asked to be left alone.
    func loss(at now: Duration) -> OriginLoss? {
        state.withLock { state in
            state.loss.flatMap { max($0.at + .seconds(120), state.restUntil) > now ? $0.kind : nil }
        }
    }

    /// The origin said that it is overloaded, or could not be reached: preloads leave it alone until `time`.
    func rest(until time: Duration) {
        state.withLock { $0.restUntil = max($0.restUntil, time) }
    }

    /// Elapsed time before which preloads do not ask.
    var restUntil: Duration { state.withLock { $0.restUntil } }

    /// How long one waits for a connection.
    struct Patience {
        /// The time in which no connection at all is given back.
        var limit: Duration
        /// Waits by the network's time.
        let sleep: @Sendable (Duration) async throws -> Void

        /// A player's error should not come later than the one for an origin that fails; a preload is in no hurry, and may
        /// come after long ones.
        init(_ priority: Priority, _ policy: RetryPolicy, _ clock: CacheClock) {
            sleep = clock.networkSleep
            limit = max(policy.clamped.longestWait, .seconds(1)) * (priority == .playback ? 1 : 20)
        }
    }

    /// No connection was given back for as long as anybody would wait.
    struct AllConnectionsBusy: Error {
        var limit: Duration
    }

    /// Takes one of the origin's connections, waiting until one is free.
    ///
    /// - Throws: ``AllConnectionsBusy``, and `CancellationError` when the task is cancelled while it waits.
    func connect(_ priority: Priority, _ patience: Patience) async throws -> OriginConnection {
        if let connection = connectAtOnce(priority) { return connection }
        return try await withThrowingTaskGroup(of: OriginConnection.self) { group in
            group.addTask { try await self.connect(priority) }
            group.addTask {
                var given: UInt64?
                while given != self.state.withLock({ $0.given }) {
                    given = self.state.withLock { $0.given }
                    try await patience.sleep(patience.limit)
                }
                throw AllConnectionsBusy(limit: patience.limit)
            }
            let first = await group.nextResult()
            group.cancelAll()
            // A connection that came at the last moment is given back as it is let go of.
            guard let first else { throw CancellationError() }
            return try first.get()
        }
    }

    /// Takes one if it is free; nil if not.
    func connectAtOnce(_ priority: Priority) -> OriginConnection? {
        let isFree = state.withLock { state in
            guard hasConnection(for: priority, state) else { return false }
            state.active += 1
            return true
        }
        return isFree ? OriginConnection(self) : nil
    }

    /// Takes one of the origin's connections, however long that takes.
    ///
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    func connect(_ priority: Priority) async throws -> OriginConnection {
        let id: UInt64? = state.withLock { state in
            if hasConnection(for: priority, state) {
                state.active += 1
                return nil
            }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return OriginConnection(self) }
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
        return OriginConnection(self)
    }

    /// Preloads leave one connection to players: an origin that keeps silent on all the others must not stop those.
    private func hasConnection(for priority: Priority, _ state: State) -> Bool {
        let limit = priority == .preload ? max(1, connectionLimit - 1) : connectionLimit
        return state.active - min(state.streams, Self.streamLimit) < limit
    }

    /// Connections in use, and transfers that wait for one.
    var activeCount: Int { state.withLock { $0.active } }
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// One connection less is in use; who has waited longest gets it.
    fileprivate func disconnect(isStream: Bool) {
        giveToNext { state in
            state.active -= 1
            if isStream { state.streams -= 1 }
        }
    }

    /// Records that a connection carries a long response without ranges, so that the next waiting transfer can connect.
    fileprivate func noteStream() { giveToNext { $0.streams += 1 } }

    private func giveToNext(_ change: (inout State) -> Void) {
        let next = state.withLock { state -> Waiter? in
            change(&state)
            state.given += 1
            guard let first = state.waiters.first, hasConnection(for: first.priority, state) else { return nil }
            state.active += 1
            return state.waiters.removeFirst()
        }
        next?.continuation.resume()
    }

    /// One that was paused is in use again, whether or not there is room: it can't be put off without being lost.
    fileprivate func reconnect(isStream: Bool) {
        state.withLock { state in
            state.active += 1
            if isStream { state.streams += 1 }
        }
    }
}

/// How an origin can't be had, though it may be before long.
package enum OriginLoss: Sendable {
    /// Nobody responds.
    case unreachable
    /// It responds that it can't serve now.
    case refusing
}

/// A transfer's connection to its origin, counted while bytes flow: one that back-pressure holds makes room for others.
final class OriginConnection: Sendable {
    private enum Phase { case flowing, paused, ended }

    private struct State {
        var phase = Phase.flowing
        var isStream = false
    }

    private let origin: OriginState
    private let state = Mutex(State())

    fileprivate init(_ origin: OriginState) { self.origin = origin }

    deinit { end() }

    /// Back-pressure holds the transfer.
    func pause() {
        change(from: .flowing, to: .paused) { origin.disconnect(isStream: $0) }
    }

    /// The transfer goes on.
    func resume() {
        change(from: .paused, to: .flowing) { origin.reconnect(isStream: $0) }
    }

    /// Records that the transfer's response is long and can't be fetched in parts.
    func noteStream() {
        let isFlowing = state.withLock { state in
            guard !state.isStream, state.phase != .ended else { return false }
            state.isStream = true
            return state.phase == .flowing
        }
        if isFlowing { origin.noteStream() }
    }

    /// The transfer is over.
    func end() {
        change(from: .flowing, to: .ended) { origin.disconnect(isStream: $0) }
        state.withLock { $0.phase = .ended }
    }

    private func change(from former: Phase, to phase: Phase, _ tell: (_ isStream: Bool) -> Void) {
        let isStream = state.withLock { state -> Bool? in
            guard state.phase == former else { return nil }
            state.phase = phase
            return state.isStream
        }
        if let isStream { tell(isStream) }
    }
}
