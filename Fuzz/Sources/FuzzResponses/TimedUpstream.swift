import Foundation
import Spool
import Synchronization

/// A wrapper around a transport that measures whether the transport respects its timeouts.
final class TimedUpstream: Upstream {
    private let base: any Upstream
    private let limits: (head: Duration, chunk: Duration)
    /// The longest wait beyond a timeout, and whether it was for the response headers.
    let worst = Mutex<(excess: Duration, isHead: Bool)>((.seconds(-100), true))

    init(_ base: any Upstream, head: Duration, chunk: Duration) {
        self.base = base
        limits = (head, chunk)
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let start = ContinuousClock.now
        defer { note(ContinuousClock.now - start - limits.head, isHead: true) }
        var response = try await base.open(request)
        response.body = UpstreamBody(TimedBody(body: response.body, upstream: self))
        return response
    }

    private func note(_ excess: Duration, isHead: Bool) {
        worst.withLock { if excess > $0.excess { $0 = (excess, isHead) } }
    }

    private struct TimedBody: AsyncSequence, Sendable {
        let body: UpstreamBody
        let upstream: TimedUpstream

        func makeAsyncIterator() -> Iterator { Iterator(base: body.makeAsyncIterator(), upstream: upstream) }

        struct Iterator: AsyncIteratorProtocol {
            var base: UpstreamBody.Iterator
            let upstream: TimedUpstream

            mutating func next() async throws -> Bytes? {
                let start = ContinuousClock.now
                defer { upstream.note(ContinuousClock.now - start - upstream.limits.chunk, isHead: false) }
                return try await base.next().map { Bytes(chunk: $0) }
            }
        }
    }

    private struct Bytes: ContiguousBytes, Sendable {
        let chunk: UpstreamChunk
        func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
            try chunk.withUnsafeBytes(body)
        }
    }
}
