#if Proxy
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage

/// One response, ready to be sent: its head, and where its body comes from.
struct Response: Sendable {
    /// Where a body comes from.
    enum Body: Sendable {
        case none
        case bytes(ByteBuffer)
        /// What a reader of a media file hands over: exactly `count` bytes, or all to its end where nobody knows how many.
        case media(MediaReader, count: Int64?)
        /// Text and bytes of a media file by turns: `multipart/byteranges`.
        case parts([Part], count: Int64)
        /// What an origin sends, which is kept nowhere.
        case upstream(UpstreamBody, count: Int64?)

        /// Number of bytes; nil if nobody knows it before the end.
        var count: Int64? {
            switch self {
            case .none: 0
            case .bytes(let bytes): Int64(bytes.readableBytes)
            case .media(_, let count), .upstream(_, let count): count
            case .parts(_, let count): count
            }
        }
    }

    /// A piece of a body of parts.
    enum Part: Sendable {
        case text(String)
        /// Of this version, and of no other.
        case media(MediaReader, count: Int64, of: GenerationIdentifier?)
    }

    var head: ResponseHead
    var body: Body
    /// The action of the cache, or `nil` if the response is not from the cache.
    var cacheOutcome: CacheStatus.Outcome?
    /// Whether the bytes are stored, so that the head may wait for the first of them.
    var isStored = false
    /// The media file that it is of, and its head there, where the next request may be for another part of it.
    var origin: (media: MediaResource, response: StoredResponse)?
    /// Whether the connection ends with it, whatever the client wants.
    var closes = false
    /// Whether it is one of the server's own pages, rather than somebody else's.
    var isOwn = false

    init(_ head: ResponseHead, _ body: Body = .none) {
        self.head = head
        self.body = body
    }

    /// A response that says in one sentence why there is no other.
    init(_ failure: RequestFailure) {
        var fields: HTTPFields = [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"]
        if let allowed = failure.allowed { fields[.allow] = allowed }
        if let seconds = failure.retryAfter { fields[.retryAfter] = String(seconds) }
        if failure.status == 401 { fields[.wwwAuthenticate] = "Bearer realm=\"spool\"" }
        self.init(
            ResponseHead(failure.status, fields),
            .bytes(ByteBuffer(string: "spool: " + failure.reason + "\n")))
    }
}
#endif
