public import Foundation
public import HTTPTypes

/// A transport, which requests parts of resources from an origin, and delivers the responses as they are received.
///
/// A transport sends requests unchanged and does not evaluate responses. `Range`, `If-Range`, credentials and all other
/// fields are in ``UpstreamRequest/headerFields``. `PartialResponse` decides whether a response may be stored, and the
/// engine retries requests. The transport follows the redirects of each request (RFC 9110 §15.4), up to a limit. It
/// removes `Authorization`, `Cookie` and `Proxy-Authorization` if the host, port or scheme changes.
///
/// Every implementation must pass `UpstreamContract` from the test kit. Any task may call its methods concurrently.
public protocol Upstream: Sendable {
    /// Sends one request and returns when the headers of the final response (after redirects) have been received.
    ///
    /// A status such as 404 or 503 is a response, not an error. Releasing the body's iterator closes the request
    /// immediately. Cancelling the task that waits for the headers, or that iterates over the body, ends the wait
    /// promptly. For some tens of milliseconds, a transport may still deliver bytes that the origin has already sent.
    /// They do not have to be requested again.
    ///
    /// - Throws: ``UpstreamError`` if there is no response, for example because of a timeout, a rejected TLS
    ///   certificate or too many redirects.
    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse
}

/// One request to an origin.
public struct UpstreamRequest: Sendable {
    /// The URL to request: `http` or `https`.
    public var url: URL
    /// All header fields to send.
    public var headerFields: HTTPFields
    /// The method. Playback only uses `GET`, and an app's transport need not support other methods.
    ///
    /// A request whose method is not safe is always sent only once (RFC 9110 §9.2.2).
    public var method = HTTPRequest.Method.get
    /// The request body, to be iterated over once. Its `Content-Length`, if any, is in ``headerFields``.
    public var body: UpstreamBody?
    /// The purpose of the request. The default is `playback`.
    ///
    /// A transport can use the purpose to select networks; see
    /// ``/SpoolHTTP/HTTPUpstream/Configuration/networkAccess(for:)``.
    public var purpose = Purpose.playback
    /// Whether redirects of `GET` and `HEAD` requests are followed. Otherwise, a redirect is returned as the response.
    package var followsRedirects = true
    /// The cookies that the transport sends in addition to ``headerFields``, and to which it adds the cookies from
    /// responses, including redirects. The default, `nil`, neither sends nor stores cookies.
    package var cookies: CookieJar?
    /// The minimum time limit for the headers, if the origin is known to delay them; `nil` for the default.
    package var longestHold: Duration?

    /// The purpose of a request.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Purpose: Sendable, Hashable, CaseIterable {
        /// A player or another reader is waiting for the bytes, or will soon need them.
        case playback
        /// The bytes are fetched before playback, and may be evicted.
        case preload
        /// The bytes are fetched for playback without a network, and are not evicted.
        case download
    }

    /// Creates a request for `url` with `headerFields`.
    public init(url: URL, headerFields: HTTPFields = [:]) {
        self.url = url
        self.headerFields = headerFields
    }
}

/// The response from an origin: its headers, and its body as it is received.
public struct UpstreamResponse: Sendable {
    /// The status and header fields of the final response.
    public var head: HTTPResponse
    /// The URL of the final response, after redirects.
    public var url: URL
    /// The body, to be iterated over once, by one task.
    public var body: UpstreamBody

    /// Creates a response from its parts.
    public init(head: HTTPResponse, url: URL, body: UpstreamBody) {
        self.head = head
        self.url = url
        self.body = body
    }
}

/// A response body with back-pressure: the origin sends more only when the consumer requests the next chunk.
///
/// Iteration throws ``UpstreamError`` if the body ends early or stalls past the idle timeout, or if the connection is
/// lost. Ending the iteration and releasing the iterator closes the request.
public struct UpstreamBody: AsyncSequence, Sendable {
    /// A piece of the body.
    public typealias Element = UpstreamChunk
    private let makeNext: @Sendable () -> () async throws -> UpstreamChunk?

    /// Creates a body from any sequence of contiguous bytes, such as `[UInt8]`, `Data` or a view of a network buffer.
    public init<Base: AsyncSequence & Sendable>(_ base: Base) where Base.Element: ContiguousBytes & Sendable {
        self.makeNext = {
            // Only the task that iterates over the body calls the closure, and it awaits each call. The iterator is
            // therefore never used concurrently, even though its `next()` may run elsewhere.
            nonisolated(unsafe) var iterator = base.makeAsyncIterator()
            return { try await iterator.next().map { UpstreamChunk($0) } }
        }
    }

    /// Creates a body from which `pieces` have been received, and whose iteration continues with `rest`.
    init(_ pieces: [UpstreamChunk], continuedBy rest: Iterator) {
        nonisolated(unsafe) let rest = rest  // Only the task that iterates over the new body uses it.
        self.makeNext = {
            var pieces = pieces[...]
            return {
                if let piece = pieces.popFirst() { return piece }
                return try await rest.nextChunk()
            }
        }
    }

    /// Returns the iterator. The body can be iterated over only once.
    public func makeAsyncIterator() -> Iterator { Iterator(nextChunk: makeNext()) }

    /// Reads chunks until they contain `length` bytes, or until `needsMore` returns `false`. The returned body starts
    /// with these chunks, and must be used instead of this body.
    ///
    /// - Parameters:
    ///   - length: The number of bytes to read.
    ///   - needsMore: A function that returns whether to continue after the given bytes. By default, reading continues.
    /// - Returns: The start of the body. It is shorter than `length` if the body is shorter, or if `needsMore` returned
    ///   `false`.
    package func readingStart(
        ofLength length: Int, while needsMore: ([UInt8]) -> Bool = { _ in true }
    ) async throws -> (start: [UInt8], body: UpstreamBody) {
        var iterator = makeAsyncIterator()
        var (start, chunks): ([UInt8], [UpstreamChunk]) = ([], [])
        while start.count < length, needsMore(start), let chunk = try await iterator.next() {
            chunk.withUnsafeBytes { start += $0.prefix(length - start.count) }
            chunks.append(chunk)
        }
        return (start, UpstreamBody(chunks, continuedBy: iterator))
    }

    /// An iterator that requests chunks from the origin.
    public struct Iterator: AsyncIteratorProtocol {
        let nextChunk: () async throws -> UpstreamChunk?

        /// Returns the next chunk, or `nil` at the end of the body.
        public mutating func next() async throws -> UpstreamChunk? { try await nextChunk() }
    }
}

/// A piece of a response body, in the buffer in which it was received from the network.
public struct UpstreamChunk: Sendable {
    private let bytes: any ContiguousBytes & Sendable
    /// The number of bytes.
    public let count: Int

    /// Creates a chunk that wraps `bytes` without copying them.
    public init(_ bytes: any ContiguousBytes & Sendable) {
        self.bytes = bytes
        self.count = bytes.withUnsafeBytes { $0.count }
    }

    /// Calls `body` with the bytes, which are valid only during the call.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}

/// The version of this package, which is sent to origins.
package enum SpoolVersion {
    /// The major, minor and patch version (Semantic Versioning).
    package static let current = "0.1.0"
}
