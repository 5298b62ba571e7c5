#if Proxy
import NIOCore

/// A body that is created while it is sent.
struct BodyStream: Sendable {
    /// The number of bytes, or `nil` if it is unknown until the end.
    var count: Int64?
    /// Whether the body ends only when the client disconnects or the server stops. Such a body does not count as a
    /// running request.
    var isEndless = false
    /// A function that is called before ``run``. Its parameter is a function that closes the client's connection.
    var onStart: (@Sendable (_ disconnect: @escaping @Sendable () -> Void) -> Void)?
    /// A function that passes the bytes to `write`, one piece at a time. `write` returns when the client has received
    /// most of the bytes.
    let run: @Sendable (_ write: (ByteBuffer) async throws -> Void) async throws -> Void
}
#endif
