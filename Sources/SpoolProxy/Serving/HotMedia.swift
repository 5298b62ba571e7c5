#if Proxy
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage

/// A media file that a connection has just been sent from, with its head ready: the next request for a part that lies in
/// memory is responded to where it arrives, without a plan, a task or another thread.
///
/// Only for requests that differ in nothing but their range: no conditions, no credentials, no directives. Everything else
/// goes the long way, and so does whatever has changed.
struct HotMedia: Sendable {
    /// The target as it was asked for, with the host: who asks for the same has been let in.
    private let target: String
    private let host: String?
    private let media: MediaResource
    private let mark: VersionMark
    private let response: StoredResponse
    private let length: Int64
    private let usesFreshness: Bool
    /// Whether the origin told its own `Date`.
    private let hasDate: Bool
    /// Whether who asks with an `Origin` goes the long way: the response, or what is said about it, depends on that.
    private let readsOrigin: Bool
    /// The fields that each response has.
    private let fields: [UInt8]

    /// The most bytes that are sent this way; more are sent by a reader, which does not hold them all at once.
    private static let limit: Int64 = 1 << 20

    /// Nil where requests for the media file must each go the long way.
    ///
    /// - Parameter head: Of the response that was sent, complete.
    init?(
        _ request: RequestHead, _ media: MediaResource, _ response: StoredResponse, head: ResponseHead,
        freshness: FreshnessPolicy, readsOrigin: Bool, node: String?
    ) {
        let readsOrigin = readsOrigin || Vary(fields: response.fields).names.contains("origin")
        guard request.method == .get, Self.isPlain(request, readsOrigin: readsOrigin), freshness != .revalidate,
            head.status == 200 || head.status == 206, let length = response.length,
            Self.isForAll(response), let mark = media.mark(of: response)
        else { return nil }
        var constant = head.fields
        for name in Self.dynamic { constant[name] = nil }
        // Of now, where the origin did not tell its own.
        hasDate = response.fields[.date] != nil
        if !hasDate { constant[.date] = nil }
        constant[.contentType] = response.fields[.contentType]
        constant[.cacheStatus] = CacheStatus(outcome: .hit, node: node).text
        target = request.target
        host = request.host
        self.media = media
        self.mark = mark
        self.response = response
        self.length = length
        usesFreshness = freshness == .http
        self.readsOrigin = readsOrigin
        var buffer = ByteBuffer()
        ResponseHead.encode(constant, into: &buffer)
        fields = Array(buffer.readableBytesView)
    }

    /// What is sent: a head, and bytes that stay in their file.
    struct Hit {
        var status: Int
        /// Where in the whole it begins, and how long that is.
        var offset: Int64
        var length: Int64
        var head: ByteBuffer
        var slice: MediaSlice
        var descriptor: Int32
    }

    /// The response to a request, if it can be had at once.
    func hit(_ request: RequestHead, date: DateText, allocator: ByteBufferAllocator) -> Hit? {
        guard request.method == .get, request.keepsAlive, request.body == .none, request.minorVersion == 1,
            request.target == target, request.host == host, Self.isPlain(request, readsOrigin: readsOrigin)
        else { return nil }
        let now = date.second
        if usesFreshness, !response.isFresh(at: now) { return nil }
        var range = 0..<length
        let text = request.fields["range"]
        if let text {
            guard request.fields.count("range") == 1, let header = RangeHeader(parsing: text),
                case .partial(let ranges) = header.resolve(length: length), ranges.count == 1
            else { return nil }
            range = ranges[0]
        }
        guard !range.isEmpty, range.upperBound - range.lowerBound <= Self.limit,
            let (slice, version) = media.sliceNow(range), version == mark, let descriptor = slice.fileDescriptor
        else { return nil }
        var head = allocator.buffer(capacity: fields.count + 224)
        head.writeStaticString(text == nil ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n")
        head.writeBytes(fields)
        if text != nil {
            head.writeStaticString("Content-Range: bytes ")
            head.writeString(String(range.lowerBound))
            head.writeStaticString("-")
            head.writeString(String(range.upperBound - 1))
            head.writeStaticString("/")
            head.writeString(String(length))
            head.writeStaticString("\r\n")
        }
        head.writeStaticString("Content-Length: ")
        head.writeString(String(slice.count))
        head.writeStaticString("\r\nAge: ")
        head.writeString(String(response.age(at: now)))
        if !hasDate {
            head.writeStaticString("\r\nDate: ")
            head.writeString(date.text)
        }
        head.writeStaticString("\r\n\r\n")
        return Hit(
            status: text == nil ? 200 : 206, offset: range.lowerBound, length: length, head: head, slice: slice,
            descriptor: descriptor)
    }

    /// Whether nothing but the range tells a request from others for the same target.
    private static func isPlain(_ request: RequestHead, readsOrigin: Bool) -> Bool {
        request.fields.has(noneOf: readsOrigin ? special + ["origin"] : special)
    }

    private static let special: [StaticString] = [
        "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "authorization", "cookie",
        "proxy-authorization",
        "cache-control", "pragma", "expect", "via", "cdn-loop", "upgrade",
    ]

    /// Whether the response is the same for all who ask without credentials.
    private static func isForAll(_ response: StoredResponse) -> Bool {
        response.status == 200 && response.isStored
            && Vary(fields: response.fields).names.allSatisfy { $0 == "accept-encoding" || $0 == "origin" }
            && !Vary(fields: response.fields).isAny
    }

    private static let dynamic: [HTTPField.Name] = [
        .age, .contentLength, .contentRange, .connection, .transferEncoding,
    ]
}
#endif
