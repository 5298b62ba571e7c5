public import Foundation
public import HTTPTypes

/// Where bytes come from: asks an origin for part of a media file and hands back what it sends, as it arrives.
///
/// An upstream sends what it is told and evaluates nothing: `Range`, `If-Range`, credentials and everything else stand
/// in ``UpstreamRequest/headerFields`` already, and whether a response may land is for `PartialResponse` to say.
/// Retries are the engine's; redirects are the upstream's (RFC 9110 §15.4), followed afresh for each request, at most a
/// handful, with `Authorization`, `Cookie` and `Proxy-Authorization` dropped when the host, port or scheme changes.
///
/// Every implementation passes `UpstreamContract` from the test kit. Methods may be called from any task, at once.
public protocol Upstream: Sendable {
    /// Sends one `GET` and returns when the head of the final response (after redirects) has come.
    ///
    /// A status such as 404 or 503 is a response, not an error. Dropping the body's iterator closes the request at once.
    /// Cancelling the task that waits for the head, or iterates, ends the wait soon: an upstream may first hand out what
    /// the origin has sent already, for some ten milliseconds, since it would have to be sent again.
    ///
    /// - Throws: ``UpstreamError`` when no response came: unreachable, refused TLS, timed out, too many redirects.
    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse
}

/// One request to an origin.
public struct UpstreamRequest: Sendable {
    /// The address to ask; `http` or `https`.
    public var url: URL
    /// All header fields to send, complete.
    public var headerFields: HTTPFields
    /// What is asked for; the engine itself only ever asks `GET`, and an upstream of an app's own need not know others. What
    /// is not safe is sent once, whatever happens (RFC 9110 §9.2.2).
    public var method = HTTPRequest.Method.get
    /// What is sent along, to be iterated once, with the `Content-Length` among ``headerFields`` if there is one.
    public var body: UpstreamBody?
    /// Whether a redirect is followed, of `GET` and `HEAD`; if not, it is the response.
    package var followsRedirects = true
    /// How long the head of the response may take at least, where its origin is known to hold it back; nil: as ever.
    package var longestHold: Duration?

    /// Creates a request for `url` with `headerFields`.
    public init(url: URL, headerFields: HTTPFields = [:]) {
        self.url = url
        self.headerFields = headerFields
    }
}

/// An origin's response: its head now, its body as it arrives.
public struct UpstreamResponse: Sendable {
    /// Status and header fields of the final response.
    public var head: HTTPResponse
    /// The address that responded, after redirects.
    public var url: URL
    /// The body, to be iterated once, by one task.
    public var body: UpstreamBody

    /// Creates a response.
    public init(head: HTTPResponse, url: URL, body: UpstreamBody) {
        self.head = head
        self.url = url
        self.body = body
    }
}

/// A response body with back-pressure: the origin is asked for more only when the consumer asks for the next chunk.
///
/// Iteration throws ``UpstreamError`` when the body is cut before its announced end, stalls past the idle timeout or
/// the connection is lost. Not iterating further, and releasing the iterator, closes the request.
public struct UpstreamBody: AsyncSequence, Sendable {
    /// A piece of the body.
    public typealias Element = UpstreamChunk
    private let makeNext: @Sendable () -> () async throws -> UpstreamChunk?

    /// Wraps any sequence of contiguous bytes, such as `[UInt8]`, `Data` or a view of a network buffer.
    public init<Base: AsyncSequence & Sendable>(_ base: Base) where Base.Element: ContiguousBytes & Sendable {
        self.makeNext = {
            // Only the one task that iterates the body calls the closure, and it awaits each call: the iterator is
            // never used twice at once, although its own `next()` may run elsewhere.
            nonisolated(unsafe) var iterator = base.makeAsyncIterator()
            return { try await iterator.next().map { UpstreamChunk($0) } }
        }
    }

    /// Starts the one iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(nextChunk: makeNext()) }

    /// Pulls chunks from the origin.
    public struct Iterator: AsyncIteratorProtocol {
        let nextChunk: () async throws -> UpstreamChunk?

        /// The next chunk, or nil at the end of the body.
        public mutating func next() async throws -> UpstreamChunk? { try await nextChunk() }
    }
}

/// A piece of a response body, held in whatever buffer the network brought it in.
public struct UpstreamChunk: Sendable {
    private let bytes: any ContiguousBytes & Sendable
    /// Number of bytes.
    public let count: Int

    /// Wraps `bytes` without copying them.
    public init(_ bytes: any ContiguousBytes & Sendable) {
        self.bytes = bytes
        self.count = bytes.withUnsafeBytes { $0.count }
    }

    /// Calls `body` with the bytes, which are valid only during the call.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}
