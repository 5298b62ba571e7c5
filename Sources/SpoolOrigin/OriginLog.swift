public import HTTPTypes
import Synchronization

/// A log of the requests that an `OriginServer` received and of the bytes that it sent. Tests use it to check that each
/// byte is sent once.
///
/// Bytes are counted when the socket has accepted them, even if the client disconnects before it receives them. They
/// are recorded shortly after they are sent, so a client may finish before the log is complete. Therefore, call
/// ``waitUntilIdle()`` before you check counts in a test. The log may be used from any task. The waiting methods check
/// their condition at each change, without polling.
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

    /// All requests since the log was created or last cleared, in order.
    public var exchanges: [OriginExchange] { state.withLock { $0.exchanges } }

    /// Returns the requests to `path`, in order.
    public func exchanges(_ path: String) -> [OriginExchange] { exchanges.filter { $0.path == path } }

    /// Returns the number of body bytes that the socket has accepted, in responses with status 200 or 206. If `path` is
    /// not `nil`, only responses for this path are counted.
    public func bytesSent(_ path: String? = nil) -> Int64 {
        media(path).reduce(0) { $0 + $1.bytesSent }
    }

    /// Returns the nonempty half-open ranges of media that were sent for `path`, or for any path if it is `nil`. There
    /// is one range for each response.
    package func rangesSent(_ path: String? = nil) -> [Range<Int64>] {
        media(path).map(\.rangeSent).filter { !$0.isEmpty }
    }

    /// Returns the number of distinct bytes of the media at `path` that were sent. Unlike ``bytesSent(_:)``, it counts
    /// repeated bytes once.
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

    /// Waits for the first request for which `condition` is true, and returns it.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    package func first(where condition: (OriginExchange) -> Bool) async throws -> OriginExchange {
        var found: OriginExchange?
        try await wait { exchanges in
            found = exchanges.first(where: condition)
            return found != nil
        }
        guard let found else { throw CancellationError() }
        return found
    }

    /// Waits until `condition` is true for the recorded requests.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func wait(until condition: ([OriginExchange]) -> Bool) async throws {
        while true {
            let (exchanges, version) = state.withLock { ($0.exchanges, $0.version) }
            if condition(exchanges) { return }
            try await change(after: version)
        }
    }

    /// Waits until all responses have ended.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func waitUntilIdle() async throws { try await wait { $0.allSatisfy(\.isOver) } }

    /// Removes all requests. Requests in progress are no longer recorded. The request counts for rules are not reset.
    package func clear() {
        change { state in
            state.first += state.exchanges.count
            state.exchanges = []
        }
    }

    // MARK: Writing, by the server

    /// Records a request, and assigns its ``OriginExchange/number`` and ``OriginExchange/index``.
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

    /// The number of the next request.
    var nextNumber: Int { state.withLock { $0.first + $0.exchanges.count } }

    /// Changes the record of request `number`.
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

/// One request that an origin received, and its response.
public struct OriginExchange: Sendable {
    /// The state of the response.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Ending: Sendable, Equatable {
        /// The origin is still sending the response.
        case running
        /// The response was sent completely.
        case finished
        /// The origin ended the response early, as configured.
        case interrupted
        /// The client closed the connection first, or the server was stopped.
        case clientDisconnected
    }

    /// The number of the request among all requests to this server, counting from 0.
    public var number: Int
    /// The number of the request among all requests to the same path, counting from 0.
    public var index: Int
    /// The number of the connection, counting from 0. Requests on the same connection have the same number.
    package var connection: Int
    /// The method, such as `GET` or `HEAD`.
    public var method: String
    /// The path, without the query.
    public var path: String
    /// The query without `?`. It is empty if there is none.
    public var query: String
    /// The header fields of the request.
    public var headerFields: HTTPFields
    /// The body of the request.
    package var requestBody: [UInt8] = []
    /// The status of the response, or `nil` before its headers are sent.
    public var status: Int?
    /// The half-open range of the media in the response. It reflects the bytes that are sent, regardless of what the
    /// headers state.
    public var body: Range<Int64> = 0..<0
    /// The number of body bytes that the socket has accepted.
    public var bytesSent: Int64 = 0
    /// Whether the response is waiting for ``OriginServer/release(_:)``. Earlier bytes may still be in transit, so
    /// ``bytesSent`` may still increase.
    package var isStalled = false
    /// The state of the response.
    public var ending = Ending.running

    /// Creates a record of a received request. The log assigns ``number`` and ``index``.
    package init(connection: Int, method: String, path: String, query: String, headerFields: HTTPFields) {
        (number, index) = (0, 0)
        self.connection = connection
        self.method = method
        self.path = path
        self.query = query
        self.headerFields = headerFields
    }

    /// The value of the `Range` field.
    public var requestedRange: String? { headerFields[.range] }
    /// The half-open range of the media bytes that the socket has accepted.
    package var rangeSent: Range<Int64> { body.lowerBound..<body.lowerBound + bytesSent }
    /// Whether the exchange has ended.
    public var isOver: Bool { ending != .running }
}
