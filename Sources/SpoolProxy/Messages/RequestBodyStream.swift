#if Proxy
import NIOCore
import Spool
import Synchronization

/// The body of a request that is forwarded to an origin, at the rate at which the origin receives it.
final class RequestBodyStream: Sendable {
    /// The error for a body that ended early.
    struct Interrupted: Error {}

    private struct State {
        var pieces: [ByteBuffer] = []
        var bytes = 0
        var isEnded = false
        var isFailed = false
        var waiter: CheckedContinuation<ByteBuffer?, any Error>?
    }

    private let state = Mutex(State())
    private let requestMore: @Sendable () -> Void
    private static let limit = 256 << 10

    /// Creates a stream.
    ///
    /// - Parameter requestMore: A function that is called, on any thread, when the stream accepts more bytes.
    init(requestMore: @escaping @Sendable () -> Void) { self.requestMore = requestMore }

    /// Whether the stream accepts more bytes.
    var hasSpace: Bool { state.withLock { $0.bytes < Self.limit } }

    /// Adds a piece from the client.
    func take(_ bytes: ByteBuffer) {
        let waiter = state.withLock { state in
            if let waiter = state.waiter.take() { return Optional(waiter) }
            state.pieces.append(bytes)
            state.bytes += bytes.readableBytes
            return nil
        }
        waiter?.resume(returning: bytes)
    }

    /// Ends the body.
    func end() {
        let waiter = state.withLock { state in
            state.isEnded = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// Ends the body with an error, because the client stopped sending or the reader stopped reading.
    func fail() {
        let waiter = state.withLock { state in
            // A reader must not interpret discarded pieces as the end.
            if !state.isEnded || !state.pieces.isEmpty { state.isFailed = true }
            state.pieces = []
            state.bytes = 0
            return state.waiter.take()
        }
        waiter?.resume(throwing: Interrupted())
    }

    /// The bytes of the body, for the task that forwards them.
    var body: Body { Body(stream: self) }

    /// The pieces of a body, for one task.
    struct Body: AsyncSequence, Sendable {
        fileprivate let stream: RequestBodyStream

        func makeAsyncIterator() -> Iterator { Iterator(stream: stream) }

        struct Iterator: AsyncIteratorProtocol {
            fileprivate let stream: RequestBodyStream

            mutating func next() async throws -> ByteBuffer? { try await stream.next() }
        }
    }

    private func next() async throws -> ByteBuffer? {
        let piece = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = state.withLock { state -> Result<ByteBuffer?, any Error>? in
                    if state.isFailed { return .failure(Interrupted()) }
                    if !state.pieces.isEmpty {
                        let piece = state.pieces.removeFirst()
                        state.bytes -= piece.readableBytes
                        return .success(piece)
                    }
                    if state.isEnded { return .success(nil) }
                    state.waiter = continuation
                    return nil
                }
                if let ready { continuation.resume(with: ready) }
            }
        } onCancel: {
            fail()
        }
        requestMore()
        return piece
    }
}
#endif
