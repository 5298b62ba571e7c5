import SpoolScheduling
import Synchronization

/// A transfer's connection to its origin.
///
/// The connection counts toward ``MediaCacheConfiguration/maximumConnectionsPerOrigin`` only while the transfer is not
/// paused. It counts toward the open connections until its response is released.
final class OriginConnection: Sendable {
    private enum Phase { case flowing, paused, ended }

    private struct State {
        var phase = Phase.flowing
        var isStream = false
        /// The clock that gives the closing time, or `nil` if the connection does not count as open.
        var openClock: (@Sendable () -> Duration)?
        /// The outcome of the request if the connection were closed now.
        var closing = OpenConnections.Closing.notAccepted
        /// The elapsed time at which the connection was opened, or at which the origin accepted its request.
        var openTime = Duration.zero
        /// The elapsed time at which the transfer was paused.
        var pauseTime: Duration?
        /// A function that cancels the transfer if its bytes can be requested again later. Returns whether it did.
        var cancel: (@Sendable (_ evenIfFlowing: Bool) -> Bool)?
    }

    /// The minimum time for which a connection is open before its paused transfer is cancelled for a player. Players
    /// that share a connection then take turns, with few requests.
    static let turnTime = Duration.seconds(2)
    /// The time after which the connection of a transfer that is not paused is given to a waiting player. Otherwise, a
    /// download would occupy it for as long as it takes.
    static let longTurnTime = Duration.seconds(5)
    /// The time after which a paused transfer is cancelled for a preload.
    static let idleTime = Duration.seconds(10)

    private let origin: OriginState
    private let state = Mutex(State())

    init(_ origin: OriginState) { self.origin = origin }

    deinit { end() }

    /// Records that the transfer is paused.
    func pause() {
        change(from: .flowing, to: .paused) { origin.disconnect(isStream: $0) }
        state.withLock { $0.pauseTime = $0.openClock?() }
    }

    /// Records that the transfer continues.
    func resume() {
        state.withLock { $0.pauseTime = nil }
        change(from: .paused, to: .flowing) { origin.reconnect(isStream: $0) }
    }

    /// Records that the transfer's response is long and can't be fetched in parts.
    func recordStream() {
        let isFlowing = state.withLock { state in
            guard !state.isStream, state.phase != .ended else { return false }
            state.isStream = true
            return state.phase == .flowing
        }
        if isFlowing { origin.recordStream() }
    }

    /// Records that the transfer's response is slow. Returns `false` if the connection did not count toward the limit
    /// before.
    func passIfFlowing() -> Bool {
        let isCounted = state.withLock { state in
            guard !state.isStream, state.phase == .flowing else { return false }
            state.isStream = true
            return true
        }
        if isCounted { origin.recordStream() }
        return isCounted
    }

    /// Records that the connection counts toward the open connections.
    func recordOpen(clock: @escaping @Sendable () -> Duration) {
        let now = clock()
        state.withLock { ($0.openClock, $0.openTime) = (clock, now) }
    }

    /// Records that the origin accepted the connection's request. Returns the new limit if it was learned; see
    /// ``OpenConnections/recordAcceptance(afterRejectionOf:hasWaited:at:)``.
    func recordAcceptance(afterRejectionOf bound: Int? = nil, hasWaited: Bool = false, at now: Duration) -> Int? {
        let isFirst = state.withLock { state in
            guard state.openClock != nil, state.closing == .notAccepted else { return false }
            (state.closing, state.openTime) = (.cancelled, now)
            return true
        }
        guard isFirst else { return nil }
        return origin.openConnections.recordAcceptance(afterRejectionOf: bound, hasWaited: hasWaited, at: now)
    }

    /// Records that the response has been received to its end.
    func recordBodyEnd() { state.withLock { if $0.closing == .cancelled { $0.closing = .ended } } }

    /// Records that the connection no longer counts toward the open connections, because its response was released.
    func close() {
        let (clock, closing) = state.withLock { state in
            defer { (state.openClock, state.closing) = (nil, .notAccepted) }
            return (state.openClock, state.closing)
        }
        if let clock { origin.openConnections.close(closing, at: clock()) }
    }

    /// Records that the transfer has ended.
    func end() {
        change(from: .flowing, to: .ended) { origin.disconnect(isStream: $0) }
        state.withLock { state in
            state.phase = .ended
            state.cancel = nil
        }
        close()
    }

    /// Sets the function that cancels the transfer when another request needs its connection.
    ///
    /// - Parameter cancel: A function that cancels the transfer if its bytes can be requested again later. Returns
    ///   whether it did. Its parameter is `false` if only a paused transfer may be cancelled.
    func cancelsForTurns(by cancel: @escaping @Sendable (_ evenIfFlowing: Bool) -> Bool) {
        state.withLock { $0.cancel = cancel }
    }

    /// Cancels the transfer if it is paused and a request with this priority waits for its connection. For a player,
    /// the connection must have been open for ``turnTime``. Otherwise, the pause must have lasted for ``idleTime``.
    /// Returns whether the transfer was cancelled.
    func cancelIfPaused(for priority: Priority, at now: Duration) -> Bool {
        let cancel = state.withLock { state -> (@Sendable (Bool) -> Bool)? in
            guard state.phase == .paused, let pauseTime = state.pauseTime else { return nil }
            let isTurnOver = priority == .playback && now - state.openTime >= Self.turnTime
            return isTurnOver || now - pauseTime >= Self.idleTime ? state.cancel : nil
        }
        return cancel?(false) ?? false
    }

    /// Cancels the transfer if its connection has been open for ``longTurnTime``. Returns whether it was cancelled.
    func cancelAfterTurn(at now: Duration) -> Bool {
        let cancel = state.withLock { state -> (@Sendable (Bool) -> Bool)? in
            let isOpen = state.phase != .ended && state.openClock != nil
            return isOpen && now - state.openTime >= Self.longTurnTime ? state.cancel : nil
        }
        return cancel?(true) ?? false
    }

    private func change(from previous: Phase, to phase: Phase, _ report: (_ isStream: Bool) -> Void) {
        let isStream = state.withLock { state -> Bool? in
            guard state.phase == previous else { return nil }
            state.phase = phase
            return state.isStream
        }
        if let isStream { report(isStream) }
    }
}
