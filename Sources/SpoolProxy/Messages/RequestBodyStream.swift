#if Proxy
import NIOCore
import Spool
import Synchronization

/// The body of a request that is forwarded to an origin. It is read at the rate at which the origin receives it.
final class RequestBodyStream: Sendable {
    /// The error for a body that ended early.
    struct Interrupted: Error {}

    private struct State {
        /// The bytes that have not been read yet.
        var bytes = ByteBuffer()
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
    var hasSpace: Bool { state.withLock { $0.bytes.readableBytes < Self.limit } }

    /// Adds a piece from the client.
    func take(_ bytes: ByteBuffer) {
        let waiter = state.withLock { state in
            if let waiter = state.waiter.take() { return Optional(waiter) }
            // A small slice would retain the whole buffer in which it was received.
            if state.bytes.readableBytes == 0, bytes.storageCapacity <= 2 * bytes.readableBytes {
                state.bytes = bytes
            } else {
                state.bytes.writeImmutableBuffer(bytes)
            }
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
            // After bytes have been discarded, a reader must not mistake the end of the stream for the end of the body.
            if !state.isEnded || state.bytes.readableBytes > 0 { state.isFailed = true }
            state.bytes = ByteBuffer()
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
                    if state.bytes.readableBytes > 0 {
                        defer { state.bytes = ByteBuffer() }
                        return .success(state.bytes)
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
