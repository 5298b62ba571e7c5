#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolHTTP
import SpoolStorage

/// One response that is ready to be sent: its head, and the source of its body.
///
/// The values that the log and the counts need are stored separately. They are never parsed from the encoded fields.
struct Response: Sendable {
    /// The source of a body.
    enum Body: Sendable {
        case none
        case bytes(ByteBuffer)
        /// The bytes of a reader: exactly `count`, or all of them if the length is unknown.
        case media(MediaReader, count: Int64?)
        /// Alternating text and ranges of a resource, as `multipart/byteranges`.
        case parts([Part], count: Int64)
        /// The body of an origin's response, which is not cached.
        case upstream(UpstreamBody, count: Int64?)
        /// Bytes that are created while they are sent.
        case stream(BodyStream)

        /// The number of bytes, or `nil` if it is unknown until the end.
        var count: Int64? {
            switch self {
            case .none: 0
            case .bytes(let bytes): Int64(bytes.readableBytes)
            case .media(_, let count), .upstream(_, let count): count
            case .parts(_, let count): count
            case .stream(let stream): stream.count
            }
        }
    }

    /// One part of a `multipart/byteranges` body.
    enum Part: Sendable {
        case text(String)
        /// Bytes of this version only.
        case media(MediaReader, count: Int64, of: GenerationIdentifier?)
    }

    var head: ResponseHead
    var body: Body
    /// The action of the cache, or `nil` if the response is not from the cache.
    private(set) var cacheOutcome: CacheStatus.Outcome?
    /// The action of this cache, in the format of the `Cache-Status` field.
    private(set) var cacheStatus: String?
    /// The values of the `Cache-Status` field from other caches.
    private var otherCaches: [String] = []
    /// The part of the resource that a response with status 206 contains, or `nil` if it has several parts.
    var contentRange: ContentRange?
    /// The length of the body that the same request with `GET` would receive, in bytes, for a response to `HEAD`.
    ///
    /// The default, `nil`, means the length of ``body``, if it has one.
    var lengthForHead: Int64?
    /// Whether the bytes are stored. The head is then sent together with the first bytes.
    var isStored = false
    /// The resource of the response and its stored head, if the next request may be for another part of it.
    var origin: (media: MediaResource, response: StoredResponse)?
    /// Whether to end the connection if the first bytes can be those of a manifest. Manifests are not rewritten if
    /// neither their type nor their path indicates a manifest.
    var closesIfManifest = false
    /// The memory of a manifest in the body, which is counted until the response has been sent.
    var memory: ManifestMemory.Share?
    /// Whether the connection closes after the response, even if the client wants to keep it open.
    var closes = false
    /// Whether the response is one of the server's own pages.
    var isOwn = false
    /// The failure that the response reports, or `nil` if it does not report a failure.
    private(set) var failure: RequestFailure?

    init(_ head: ResponseHead, _ body: Body = .none) {
        self.head = head
        self.body = body
    }

    /// Creates a response that reports in one sentence why the request failed.
    init(_ failure: RequestFailure) {
        var fields: HTTPFields = [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"]
        if let allowed = failure.allowed { fields[.allow] = allowed }
        if let seconds = failure.retryAfter { fields[.retryAfter] = String(seconds) }
        if failure.status == 401 { fields[.wwwAuthenticate] = "Bearer realm=\"spool\"" }
        self.init(
            ResponseHead(failure.status, fields),
            .bytes(ByteBuffer(string: "spool: " + failure.reason + "\n")))
        self.failure = failure
    }

    /// Records the action of the cache, both as a value and in the `Cache-Status` field.
    mutating func note(_ outcome: CacheStatus.Outcome, by node: String?) {
        if cacheOutcome == nil { otherCaches = head.fields[values: .cacheStatus] }
        cacheOutcome = outcome
        let status = CacheStatus(outcome: outcome, node: node)
        cacheStatus = status.text
        head.fields[.cacheStatus] = status.text(after: otherCaches)
    }

    /// Returns the response with the cookies of one client, and the directives that apply to them. The next response on
    /// the connection can't be prepared from this one, because it may be for a different client of a load balancer.
    func setting(_ cookies: HTTPFields) -> Response {
        guard !cookies.isEmpty else { return self }
        var response = self
        response.head.fields += cookies
        response.origin = nil
        return response
    }

    /// Returns the offset in the resource at which the body starts, and the resource's length, or `nil` if they are
    /// unknown.
    func place(for request: RequestHead) -> (offset: Int64, length: Int64?)? {
        switch head.status {
        case 200: (0, request.method == .head ? declaredLengthForHead : body.count)
        case 206: contentRange.flatMap { part in part.range.map { ($0.lowerBound, part.length) } }
        default: nil
        }
    }

    private var declaredLengthForHead: Int64? { lengthForHead ?? (isBodiless ? nil : body.count) }

    /// Whether the response ends only when the client disconnects or the server stops. Such a response does not count
    /// as a running request.
    var isEndless: Bool { if case .stream(let stream) = body { stream.isEndless } else { false } }

    private var isBodiless: Bool { if case .none = body { true } else { false } }
}

extension Response {
    /// The framing of a body, from which a client recognizes its end (RFC 9112 §6).
    enum Framing: Sendable, Hashable {
        /// There is no body.
        case none
        /// The body has this number of bytes.
        case length(Int64)
        /// The body ends with the last chunk.
        case chunked
        /// The body ends with the connection, for clients that do not support chunks.
        case close
    }

    /// Returns the head to send, the framing of the body, and whether the connection stays open.
    ///
    /// - Parameters:
    ///   - request: The request to which this is the response.
    ///   - keepsAlive: Whether the server is willing to keep the connection open.
    ///   - date: The current time, in the format of the `Date` field.
    func framed(for request: RequestHead, keepsAlive: Bool, date: String) -> (head: ResponseHead, Framing, keeps: Bool)
    {
        var head = head
        var framing: Framing
        let hasNoBody = head.status == 204 || head.status == 304 || (100..<200).contains(head.status)
        if hasNoBody {
            framing = .none
        } else if let count = body.count {
            framing = .length(count)
        } else {
            framing = request.minorVersion >= 1 ? .chunked : .close
        }
        if request.method == .head {
            framing = .none
            if !hasNoBody || lengthForHead != nil, let length = declaredLengthForHead {
                head.fields[.contentLength] = String(length)
            }
            // A response with status 204 has no `Content-Length` (RFC 9110 §8.6).
            if head.status == 204 { head.fields[.contentLength] = nil }
        } else {
            head.fields[.contentLength] = nil
            switch framing {
            case .length(let count): head.fields[.contentLength] = String(count)
            case .chunked: head.fields[.transferEncoding] = "chunked"
            case .none, .close: break
            }
        }
        if head.fields[.date] == nil { head.fields[.date] = date }
        let keeps = keepsAlive && request.keepsAlive && !closes && framing != .close
        if !keeps {
            head.fields[.connection] = "close"
        } else if request.minorVersion == 0 {
            head.fields[.connection] = "keep-alive"
        }
        return (head, framing, keeps)
    }
}

/// The outcome of sending a response.
enum SendOutcome: Sendable, Hashable {
    /// All bytes were sent.
    case complete
    /// The body ended early, or the client closed the connection. The connection can't be used again.
    case cut(String)

    /// Returns the outcome of a response that could not be sent completely because of an error.
    static func cut(by error: any Error) -> SendOutcome {
        let isConnectionClosed =
            switch error {
            case let error as ChannelError: [.ioOnClosedChannel, .alreadyClosed, .outputClosed, .eof].contains(error)
            case let error as IOError: [EPIPE, ECONNRESET, ENOTCONN].contains(error.errnoCode)
            default: false
            }
        let cause = "the connection was closed before the client had received all bytes"
        return .cut(isConnectionClosed ? cause : "\(error)")
    }
}
#endif
