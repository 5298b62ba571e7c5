import Synchronization

/// The turns in which client requests may request one resource from the origin. While one client request has the turn,
/// the others wait for its response.
final class RequestTurns: Sendable {
    struct State {
        /// The number of the current turn, or `nil` if no request has a turn.
        var current: Int?
        var count = 0
        /// Whether a request reached its time limit while it waited for the end of the current turn.
        var isSlow = false
        var waits: [AsyncStream<Bool>.Continuation] = []
    }

    /// The turn of one client request. It ends when the response is received, or when this object is released.
    final class Turn: Sendable {
        private let turns: RequestTurns
        private let number: Int
        /// Whether a transfer that a cancelled request started is still in progress. The request with this turn may
        /// receive the response to that transfer.
        let joinsTransfer: Bool

        fileprivate init(_ number: Int, of turns: RequestTurns, joinsTransfer: Bool) {
            self.turns = turns
            self.number = number
            self.joinsTransfer = joinsTransfer
        }

        deinit { end() }

        /// Ends the turn. This method has no effect if the turn has already ended.
        func end(isAnswered: Bool = false) { turns.end(isAnswered: isAnswered) { $0 == number } }
    }

    let state = Mutex(State())

    /// Whether a request has the turn.
    var isTaken: Bool { state.withLock { $0.current != nil } }

    /// Takes the turn. Returns `nil` if another request has it.
    ///
    /// - Parameter joinsTransfer: Whether a transfer is in progress. The expression is evaluated after the turn has
    ///   been taken.
    func take(joinsTransfer: @autoclosure () -> Bool) -> Turn? {
        let number = state.withLock { state -> Int? in
            guard state.current == nil else { return nil }
            state.count += 1
            state.current = state.count
            state.isSlow = false
            return state.count
        }
        return number.map { Turn($0, of: self, joinsTransfer: joinsTransfer()) }
    }

    /// Returns a stream that finishes when the current turn ends or the limit has passed, or `nil` if no request has
    /// the turn. The only element of the stream is `false` if the turn ended without a response, and otherwise `true`.
    ///
    /// - Parameter limit: The maximum time to wait, or `nil` for no limit. After one request has reached its limit,
    ///   later requests with a limit do not wait for the same turn.
    func endOfTurn(within limit: Duration?, on clock: CacheClock) -> AsyncStream<Bool>? {
        let (end, ended) = AsyncStream.makeStream(of: Bool.self)
        let current = state.withLock { state -> Int? in
            guard let current = state.current else { return nil }
            if limit != nil, state.isSlow {
                ended.yield(true)
                ended.finish()
            } else {
                state.waits.append(ended)
            }
            return current
        }
        guard let current else { return nil }
        guard let limit else { return end }
        let timer = Task { [weak self] in
            try await clock.networkSleep(limit)
            self?.state.withLock { if $0.current == current { $0.isSlow = true } }
            ended.yield(true)
            ended.finish()
        }
        ended.onTermination = { _ in timer.cancel() }
        return end
    }

    /// Ends the turn, so that the requests that wait for its response check the resource again.
    ///
    /// - Parameter isAnswered: Whether the origin has responded to the request that had the turn.
    func end(isAnswered: Bool, where predicate: (Int) -> Bool = { _ in true }) {
        let waits = state.withLock { state -> [AsyncStream<Bool>.Continuation] in
            guard let current = state.current, predicate(current) else { return [] }
            state.current = nil
            return exchange(&state.waits, with: [])
        }
        for wait in waits {
            wait.yield(isAnswered)
            wait.finish()
        }
    }
}
