import Synchronization

/// The requests that an `OriginServer` received and the bytes that it sent: the witness for "each byte once".
///
/// Bytes count when the socket has accepted them, so what was in flight when a client went away counts too. The socket
/// reports a little after the bytes: a client may be done before the log is, so a test that counts waits with
/// ``untilQuiet()`` first. Safe to use from any task; the waiting methods wake at each change, without polling.
public final class OriginLog: Sendable {
    private struct Waiter {
        var id: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var exchanges: [OriginExchange] = []
        var first = 0
        var counts: [String: Int] = [:]
        var version: UInt64 = 0
        var waiters: [Waiter] = []
        var cancelled: Set<UInt64> = []
        var nextWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    // MARK: Reading

    /// All requests so far (or since `clear()`), in order.
    public var exchanges: [OriginExchange] { state.withLock { $0.exchanges } }

    /// The requests to `path`, in order.
    public func exchanges(_ path: String) -> [OriginExchange] { exchanges.filter { $0.path == path } }

    /// Body bytes that the socket has accepted, of all responses with status 200 or 206 to `path` (nil: to any).
    public func bytesSent(_ path: String? = nil) -> Int64 {
        media(path).reduce(0) { $0 + $1.bytesSent }
    }

    /// The non-empty half-open ranges of the media that were sent for `path` (nil: for any), one for each response.
    package func rangesSent(_ path: String? = nil) -> [Range<Int64>] {
        media(path).map(\.rangeSent).filter { !$0.isEmpty }
    }

    /// How many different bytes of the media at `path` were sent: ``bytesSent(_:)`` less what was sent again.
    package func distinctBytesSent(_ path: String) -> Int64 {
        var end: Int64 = 0
        return rangesSent(path).sorted { $0.lowerBound < $1.lowerBound }.reduce(0) { sum, range in
            let new = max(0, range.upperBound - max(end, range.lowerBound))
            end = max(end, range.upperBound)
            return sum + new
        }
    }

    private func media(_ path: String?) -> [OriginExchange] {
        exchanges.filter { (path == nil || $0.path == path) && [200, 206].contains($0.status) }
    }

    // MARK: Waiting

    /// The first request for which `condition` holds, as soon as there is one.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    package func first(where condition: (OriginExchange) -> Bool) async throws -> OriginExchange {
        var found: OriginExchange?
        try await until { exchanges in
            found = exchanges.first(where: condition)
            return found != nil
        }
        guard let found else { throw CancellationError() }
        return found
    }

    /// Waits until `condition` holds for the requests so far.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func until(_ condition: ([OriginExchange]) -> Bool) async throws {
        while true {
            let (exchanges, version) = state.withLock { ($0.exchanges, $0.version) }
            if condition(exchanges) { return }
            try await change(after: version)
        }
    }

    /// Waits until every response is over.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func untilQuiet() async throws { try await until { $0.allSatisfy(\.isOver) } }

    /// Removes all requests; those in flight leave no further trace. Rules go on counting where they were.
    package func clear() {
        change { state in
            state.first += state.exchanges.count
            state.exchanges = []
        }
    }

    // MARK: Writing, by the server

    /// Notes a request and gives it its numbers.
    package func begin(_ request: OriginExchange) -> OriginExchange {
        var exchange = request
        change { state in
            exchange.number = state.first + state.exchanges.count
            exchange.index = state.counts[exchange.path, default: 0]
            state.counts[exchange.path] = exchange.index + 1
            state.exchanges.append(exchange)
        }
        return exchange
    }

    /// Changes what is noted of the request with `number`.
    package func update(_ number: Int, _ mutate: (inout OriginExchange) -> Void) {
        change { state in
            let index = number - state.first
            if state.exchanges.indices.contains(index) { mutate(&state.exchanges[index]) }
        }
    }

    private func change(_ mutate: (inout State) -> Void) {
        let waiters = state.withLock { state in
            mutate(&state)
            state.version += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    private func change(after version: UInt64) async throws {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.version != version { return .success(()) }
                    state.waiters.append(Waiter(id: id, continuation: continuation))
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
    }
}
