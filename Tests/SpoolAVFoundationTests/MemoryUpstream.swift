import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An in-memory origin that sends only the bytes that the test allows. It uses neither sockets nor a clock.
///
/// It supports bounded and open ranges, but no other features of HTTP.
final class MemoryUpstream: Upstream {
    /// A resource at a URL.
    struct File: Sendable {
        var bytes: Data
        var contentType: String?
        var status = 200
        var hasRanges = true
        var hasLength = true

        init(_ bytes: Data, contentType: String? = "audio/mpeg") {
            self.bytes = bytes
            self.contentType = contentType
        }

        /// Returns a resource with `length` bytes of a pattern.
        static func pattern(_ length: Int64, contentType: String? = "audio/mpeg") -> File {
            File(PatternBytes(seed: 7, length: length).data, contentType: contentType)
        }
    }

    private struct Watcher {
        let condition: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var limits: [String: Int64] = [:]
        var asked: [(path: String, range: Range<Int64>)] = []
        var sent: [String: Int64] = [:]
        var open: [String: Int] = [:]
        var waiters: [Int: (path: String, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var lastWaiter = 0
        var watchers: [Int: Watcher] = [:]
    }

    private let files: [String: File]
    private let state = Mutex(State())

    /// Creates an origin with one file at each path. It responds to requests for other paths with 404.
    init(_ files: [String: File]) { self.files = files }

    /// Holds the bytes of a path that follow `offset`, until this function is called with a higher offset.
    func hold(_ path: String = "/song.mp3", from offset: Int64) {
        let (waiters, watchers) = state.withLock { state in
            state.limits[path] = offset
            defer { state.waiters = [:] }
            return (Array(state.waiters.values), Self.ready(&state))
        }
        for waiter in waiters { waiter.continuation.resume() }
        for watcher in watchers { watcher.resume() }
    }

    /// Returns the requested ranges of a path, in order.
    func asked(_ path: String = "/song.mp3") -> [Range<Int64>] {
        state.withLock { $0.asked.filter { $0.path == path }.map(\.range) }
    }

    /// Returns the number of bytes that were sent for a path.
    func sent(_ path: String = "/song.mp3") -> Int64 { state.withLock { $0.sent[path, default: 0] } }

    /// Waits until a transfer waits for held bytes.
    func isHeld(_ path: String = "/song.mp3") async {
        await until { $0.waiters.values.contains { $0.path == path } }
    }

    /// Waits until at most `count` transfers are open.
    func isQuiet(_ path: String = "/song.mp3", butFor count: Int = 0) async {
        await until { $0.open[path, default: 0] <= count }
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let path = request.url.path
        guard let file = files[path], file.status == 200 else {
            let status = HTTPResponse.Status(code: files[path]?.status ?? 404)
            let none = AsyncStream<Data> { $0.finish() }
            return UpstreamResponse(head: HTTPResponse(status: status), url: request.url, body: UpstreamBody(none))
        }
        let length = Int64(file.bytes.count)
        let range = file.hasRanges ? Self.range(request.headerFields[.range], length: length) : nil
        var head = HTTPResponse(status: range == nil ? .ok : .partialContent)
        head.headerFields[.eTag] = "\"a\""
        head.headerFields[.contentType] = file.contentType
        if let range {
            head.headerFields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
        }
        let body = range ?? 0..<length
        if file.hasLength { head.headerFields[.contentLength] = "\(body.count)" }
        change { state in
            state.asked.append((path, body))
            state.open[path, default: 0] += 1
        }
        let session = Session(upstream: self, path: path, bytes: file.bytes)
        return UpstreamResponse(
            head: head, url: request.url, body: UpstreamBody(Body(range: body, session: session)))
    }

    private static func range(_ field: String?, length: Int64) -> Range<Int64>? {
        let ends = field?.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard ends.count == 2, let first = Int64(ends[0]), first < length else { return nil }
        return first..<min(length, (Int64(ends[1]) ?? length - 1) + 1)
    }

    // MARK: Bodies

    /// A transfer, which counts as open until its last reference is released.
    private final class Session: Sendable {
        let upstream: MemoryUpstream
        let path: String
        let bytes: Data

        init(upstream: MemoryUpstream, path: String, bytes: Data) {
            self.upstream = upstream
            self.path = path
            self.bytes = bytes
        }

        deinit {
            let path = path
            upstream.change { $0.open[path, default: 0] -= 1 }
        }
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
                let limit = try await session.upstream.limit(beyond: next, of: session.path)
                let upper = Swift.min(end, limit, next + (16 << 10))
                defer { next = upper }
                let count = upper - next
                session.upstream.change { [path = session.path] in $0.sent[path, default: 0] += count }
                return session.bytes.subdata(in: Int(next)..<Int(upper))
            }
        }
    }

    private func limit(beyond offset: Int64, of path: String) async throws -> Int64 {
        while true {
            try Task.checkCancellation()
            let limit = state.withLock { $0.limits[path] ?? .max }
            if limit > offset { return limit }
            let id = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                    let isHeld = change { state in
                        guard let limit = state.limits[path], limit <= offset else { return false }
                        state.waiters[id] = (path, continuation)
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
        state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
    }

    // MARK: Observation

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
        let ready = state.watchers.filter { $0.value.condition(current) }
        for id in ready.keys { state.watchers[id] = nil }
        return ready.values.map(\.continuation)
    }

    /// Waits until the condition is true, or the task is cancelled, for example at the time limit of a test.
    private func until(_ condition: @escaping @Sendable (State) -> Bool) async {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard !Task.isCancelled, !condition(state) else { return false }
                    state.watchers[id] = Watcher(condition: condition, continuation: continuation)
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.watchers.removeValue(forKey: id) }?.continuation.resume()
        }
    }
}
