import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An origin in memory that lets bytes go when the test says so: no sockets, no time.
///
/// Knows bounded and open ranges; nothing else that HTTP has.
final class MemoryUpstream: Upstream {
    private struct State {
        var limit: Int64 = .max
        var asked: [Range<Int64>] = []
        var open = 0
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var lastWaiter = 0
        var watchers: [(condition: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    let bytes: PatternBytes
    private let head: @Sendable (inout HTTPResponse) -> Void
    private let hasLength: Bool
    private let state = Mutex(State())

    init(
        length: Int64, contentType: String? = "audio/mpeg", hasLength: Bool = true,
        head: @escaping @Sendable (inout HTTPResponse) -> Void = { _ in }
    ) {
        bytes = PatternBytes(seed: 7, length: length)
        self.hasLength = hasLength
        self.head = { response in
            response.headerFields[.contentType] = contentType
            head(&response)
        }
    }

    /// Bytes from here on wait until this is called with a higher limit.
    func hold(from offset: Int64) {
        let (waiters, watchers) = state.withLock { state in
            state.limit = offset
            defer { state.waiters = [:] }
            return (Array(state.waiters.values), Self.ready(&state))
        }
        for waiter in waiters { waiter.resume() }
        for watcher in watchers { watcher.resume() }
    }

    /// The ranges that were asked for, in order.
    var asked: [Range<Int64>] { state.withLock { $0.asked } }

    /// Waits until a transfer stands at what is held back.
    func isHeld() async { await until { !$0.waiters.isEmpty } }

    /// Waits until no transfer is open.
    func isQuiet() async { await until { $0.open == 0 } }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let length = bytes.length
        let range = hasLength ? Self.range(request.fields[.range], length: length) : nil
        var response = HTTPResponse(status: range == nil ? .ok : .partialContent)
        response.headerFields[.eTag] = "\"a\""
        if let range {
            response.headerFields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            response.headerFields[.contentLength] = "\(range.count)"
        }
        head(&response)
        change { state in
            state.asked.append(range ?? 0..<length)
            state.open += 1
        }
        let body = Body(range: range ?? 0..<length, session: Session(upstream: self))
        return UpstreamResponse(head: response, url: request.url, body: UpstreamBody(body))
    }

    private static func range(_ field: String?, length: Int64) -> Range<Int64>? {
        let ends = field?.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard ends.count == 2, let first = Int64(ends[0]), first < length else { return nil }
        return first..<min(length, (Int64(ends[1]) ?? length - 1) + 1)
    }

    // MARK: Bodies

    /// Counts as open until the last reference to it goes.
    private final class Session: Sendable {
        let upstream: MemoryUpstream
        init(upstream: MemoryUpstream) { self.upstream = upstream }
        deinit { upstream.change { $0.open -= 1 } }
    }

    private struct Body: AsyncSequence, Sendable {
        let range: Range<Int64>
        let session: Session

        func makeAsyncIterator() -> Iterator {
            Iterator(next: range.lowerBound, end: range.upperBound, session: session)
        }

        struct Iterator: AsyncIteratorProtocol {
            var next: Int64
            let end: Int64
            let session: Session

            mutating func next() async throws -> Data? {
                guard next < end else { return nil }
                let limit = try await session.upstream.limit(beyond: next)
                let upper = Swift.min(end, limit, next + (16 << 10))
                defer { next = upper }
                return Data(session.upstream.bytes.bytes(next..<upper))
            }
        }
    }

    private func limit(beyond offset: Int64) async throws -> Int64 {
        while true {
            try Task.checkCancellation()
            let limit = state.withLock { $0.limit }
            if limit > offset { return limit }
            let id = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                    let isHeld = change { state in
                        guard state.limit <= offset else { return false }
                        state.waiters[id] = continuation
                        return true
                    }
                    if !isHeld { continuation.resume() }
                    if Task.isCancelled { cancelWait(id) }
                }
            } onCancel: {
                cancelWait(id)
            }
        }
    }

    private func cancelWait(_ id: Int) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }

    // MARK: Watching

    @discardableResult
    private func change<R: Sendable>(_ body: @Sendable (inout State) -> R) -> R {
        let (result, watchers) = state.withLock { state in
            let result = body(&state)
            return (result, Self.ready(&state))
        }
        for watcher in watchers { watcher.resume() }
        return result
    }

    private static func ready(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        let current = state
        let ready = state.watchers.filter { $0.condition(current) }.map(\.continuation)
        state.watchers.removeAll { $0.condition(current) }
        return ready
    }

    private func until(_ condition: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if !condition(state) { state.watchers.append((condition, continuation)) }
                return condition(state)
            }
            if holds { continuation.resume() }
        }
    }
}
