import Synchronization

/// What is known of one origin while a cache is open, whichever resources come from it: the line, its connections, and
/// until when it is to be left alone.
///
/// Waiting for a connection ends early by cancellation. Players go before preloads, and among equals who came first.
final class OriginState: Sendable {
    private struct Waiter {
        var id: UInt64
        var priority: Priority
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var link = LinkEstimate()
        var active = 0
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
        var cancelled: Set<UInt64> = []
        /// Elapsed time before which preloads do not ask.
        var restUntil = Duration.zero
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

    /// The origin said that it is overloaded, or could not be reached: preloads leave it alone until `time`.
    func rest(until time: Duration) {
        state.withLock { $0.restUntil = max($0.restUntil, time) }
    }

    /// Elapsed time before which preloads do not ask.
    var restUntil: Duration { state.withLock { $0.restUntil } }

    /// Takes one of the origin's connections, waiting until one is free.
    ///
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    func connect(_ priority: Priority) async throws -> OriginConnection {
        let id: UInt64? = state.withLock { state in
            if state.active < connectionLimit {
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
                    if state.active < connectionLimit {
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

    /// Connections in use, and transfers that wait for one.
    var activeCount: Int { state.withLock { $0.active } }
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// One connection less is in use; who has waited longest gets it.
    fileprivate func disconnect() {
        let next = state.withLock { state -> Waiter? in
            state.active -= 1
            guard state.active < connectionLimit, !state.waiters.isEmpty else { return nil }
            state.active += 1
            return state.waiters.removeFirst()
        }
        next?.continuation.resume()
    }

    /// One that was paused is in use again, whether or not there is room: it can't be put off without being lost.
    fileprivate func reconnect() { state.withLock { $0.active += 1 } }
}

/// A transfer's connection to its origin, counted while bytes flow: one that back-pressure holds makes room for others.
final class OriginConnection: Sendable {
    private enum Phase { case flowing, paused, ended }

    private let origin: OriginState
    private let phase = Mutex(Phase.flowing)

    fileprivate init(_ origin: OriginState) { self.origin = origin }

    deinit { end() }

    /// Back-pressure holds the transfer.
    func pause() {
        let isNews = phase.withLock { phase in
            guard phase == .flowing else { return false }
            phase = .paused
            return true
        }
        if isNews { origin.disconnect() }
    }

    /// The transfer goes on.
    func resume() {
        let isNews = phase.withLock { phase in
            guard phase == .paused else { return false }
            phase = .flowing
            return true
        }
        if isNews { origin.reconnect() }
    }

    /// The transfer is over.
    func end() {
        let wasFlowing = phase.withLock { phase in
            defer { phase = .ended }
            return phase == .flowing
        }
        if wasFlowing { origin.disconnect() }
    }
}
