import Foundation
import HTTPTypes
import Spool
import Synchronization

/// An `Upstream` that sends its first bytes as fast as they are read, and never sends the rest. It measures how long
/// sending the first bytes takes.
struct StallingOrigin: Upstream {
    /// The number of bytes from the start that are sent.
    static let nearLength: Int64 = 32 << 20
    private static let length: Int64 = 1 << 40

    /// The meter that times the requests for chunks.
    let meter = Meter()

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let range = try RequestedRange(request, of: Self.length)
        let body =
            range.bytes.lowerBound < Self.nearLength
            ? UpstreamBody(MeteredPieces(pieces: PatternPieces(range.bytes, size: 16_384), meter: meter))
            : UpstreamBody(NoPieces())
        return UpstreamResponse(head: range.head, url: request.url, body: body)
    }

    /// A meter of the time from the first request for a chunk to the last one.
    final class Meter: Sendable {
        private struct State {
            var first: ContinuousClock.Instant?
            var last = ContinuousClock.now
            var chunks = 0
        }

        private let state = Mutex(State())

        func reset() { state.withLock { $0 = State() } }

        func asked() {
            let now = ContinuousClock.now
            state.withLock { state in
                if state.first == nil { state.first = now } else { state.chunks += 1 }
                state.last = now
            }
        }

        /// The time for each chunk, in microseconds. A request for a chunk means that the previous chunk is stored.
        var microsecondsPerChunk: Double {
            state.withLock { state in
                guard let first = state.first, state.chunks > 0 else { return .nan }
                return (state.last - first) / .microseconds(1) / Double(state.chunks)
            }
        }
    }
}

private struct MeteredPieces: AsyncSequence, Sendable {
    let pieces: PatternPieces
    let meter: StallingOrigin.Meter

    func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces.makeAsyncIterator(), meter: meter) }

    struct Iterator: AsyncIteratorProtocol {
        var pieces: PatternPieces.Iterator
        let meter: StallingOrigin.Meter

        mutating func next() async -> Data? {
            meter.asked()
            return await pieces.next()
        }
    }
}

/// A body that sends nothing until the waiting task is cancelled.
private struct NoPieces: AsyncSequence, Sendable {
    func makeAsyncIterator() -> Iterator { Iterator() }

    struct Iterator: AsyncIteratorProtocol {
        mutating func next() async throws -> Data? {
            try await Task.sleep(for: .seconds(3600))
            return nil
        }
    }
}
