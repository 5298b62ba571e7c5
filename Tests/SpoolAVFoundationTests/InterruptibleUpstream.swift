import Foundation
import HTTPTypes
import Spool
import Synchronization

/// An origin whose connection can be cut, and that can reject a number of requests with 404.
final class InterruptibleUpstream: Upstream {
    private struct State {
        var isCut = false
        var failures = 0
        var refusals = 0
    }

    private let upstream: MemoryUpstream
    private let state = Mutex(State())
    private let (failed, continuation) = AsyncStream<Int>.makeStream()

    init(_ upstream: MemoryUpstream) { self.upstream = upstream }

    /// Waits until `count` requests have failed because of the cut connection. Only one task may call this method.
    func waitForFailures(_ count: Int) async {
        for await failures in failed where failures >= count { return }
    }

    /// Whether the origin is unreachable.
    var isCut: Bool {
        get { state.withLock { $0.isCut } }
        set { state.withLock { $0.isCut = newValue } }
    }

    /// The number of requests that failed because of the cut connection.
    var failures: Int { state.withLock { $0.failures } }

    /// The number of subsequent requests that receive a 404.
    var refusals: Int {
        get { state.withLock { $0.refusals } }
        set { state.withLock { $0.refusals = newValue } }
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let (isCut, isRefused) = state.withLock { state in
            if state.isCut { state.failures += 1 }
            defer { if !state.isCut, state.refusals > 0 { state.refusals -= 1 } }
            return (state.isCut, !state.isCut && state.refusals > 0)
        }
        if isCut {
            continuation.yield(failures)
            throw UpstreamError(.unreachable, "no network")
        }
        if isRefused {
            let none = AsyncStream<Data> { $0.finish() }
            return UpstreamResponse(
                head: HTTPResponse(status: .notFound), url: request.url, body: UpstreamBody(none))
        }
        return try await upstream.open(request)
    }
}
