#if Proxy
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage

/// A resource that a connection has just sent, with its prepared head.
///
/// If the next request is for bytes of the same resource, and the bytes are in memory, the event loop sends the
/// response. This does not require a plan, a task or another thread. The request may differ from the previous request
/// only in its range. Requests with conditions, credentials or directives take the normal path through ``Responder``.
/// After the resource has changed, all requests take that path.
struct RecentMedia: Sendable {
    /// The target and the host of a request that the access control allowed. The same request is allowed again.
    private let target: String
    private let host: String?
    private let media: MediaResource
    private let mark: VersionMark
    private let response: StoredResponse
    private let length: Int64
    private let usesFreshness: Bool
    /// Whether the origin sent a `Date`.
    private let hasDate: Bool
    /// Whether the response depends on the `Origin` of a request. Requests with that field then take the normal path.
    private let readsOrigin: Bool
    /// The encoded fields that all responses have in common.
    private let fields: [UInt8]
    /// The encoded digests of the whole resource, which only a 200 response contains.
    private let digests: [UInt8]

    /// The maximum number of bytes of a response. Larger responses are sent by a reader, which does not load all of
    /// their bytes into memory.
    private static let limit: Int64 = 1 << 20
    /// The maximum number of bytes that are read into the buffer of their head. Sending a larger body from its file is
    /// faster.
    static let readLimit = 32 << 10

    /// Prepares a resource. The result is `nil` if all requests for it must take the normal path.
    ///
    /// - Parameter head: The complete head of the response that was sent.
    init?(
        _ request: RequestHead, _ media: MediaResource, _ response: StoredResponse, head: ResponseHead,
        freshness: FreshnessPolicy, readsOrigin: Bool, node: String?
    ) {
        let readsOrigin = readsOrigin || Vary(fields: response.fields).names.contains("origin")
        guard request.method == .get, Self.isPlain(request, readsOrigin: readsOrigin), freshness != .revalidate,
            head.status == 200 || head.status == 206, let length = response.length,
            Self.isForAll(response), let mark = media.mark(of: response)
        else { return nil }
        var constant = EndToEndFields.withoutMessageDigests(head.fields)
        for name in Self.dynamic { constant[name] = nil }
        // If the origin did not send a `Date`, each response gets the current one.
        hasDate = response.fields[.date] != nil
        if !hasDate { constant[.date] = nil }
        constant[.contentType] = response.fields[.contentType]
        constant[.cacheStatus] = CacheStatus(outcome: .hit, node: node)
            .text(after: response.fields[values: .cacheStatus])
        target = request.target
        host = request.host
        self.media = media
        self.mark = mark
        self.response = response
        self.length = length
        usesFreshness = freshness == .http
        self.readsOrigin = readsOrigin
        fields = Self.encoded(constant)
        digests = Self.encoded(EndToEndFields.messageDigests(of: response.fields))
    }

    private static func encoded(_ fields: HTTPFields) -> [UInt8] {
        var buffer = ByteBuffer()
        ResponseHead.encode(fields, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// A response: its head, and its body.
    struct Hit {
        var status: Int
        /// The offset of the first byte in the resource.
        var offset: Int64
        /// The length of the resource.
        var length: Int64
        /// The number of bytes of the body.
        var count: Int
        /// The head, followed by the body if it was read.
        var buffer: ByteBuffer
        /// The body, which is sent from its file, or `nil` if the buffer contains it.
        var slice: SentSlice?
    }

    /// Returns the response to a request, or `nil` if it can't be sent immediately.
    ///
    /// If all bytes of a small body are in memory, they are read into the buffer of the head, and one system call sends
    /// both. Otherwise, the body is sent from its file.
    func hit(_ request: RequestHead, date: DateText, buffers: HitBuffers) -> Hit? {
        guard request.method == .get, request.keepsAlive, request.body == .none, request.minorVersion == 1,
            request.target == target, request.host == host, Self.isPlain(request, readsOrigin: readsOrigin)
        else { return nil }
        if usesFreshness, !response.isFresh(at: date.second) { return nil }
        var range = 0..<length
        let text = request.fields["range"]
        if let text {
            guard request.fields.count("range") == 1, let header = RangeHeader(parsing: text),
                case .partial(let ranges) = header.resolve(length: length), ranges.count == 1
            else { return nil }
            range = ranges[0]
        }
        guard !range.isEmpty, range.upperBound - range.lowerBound <= Self.limit else { return nil }
        let isPartial = text != nil
        var hit = Hit(
            status: isPartial ? 206 : 200, offset: range.lowerBound, length: length,
            count: Int(range.upperBound - range.lowerBound), buffer: ByteBuffer())
        if hit.count <= Self.readLimit, var buffer = buffers.take(capacity: headCapacity + hit.count) {
            encodeHead(of: range, isPartial: isPartial, date, into: &buffer)
            if read(range, into: &buffer) {
                hit.buffer = buffer
                return hit
            }
            buffers.putBack(buffer)
        }
        guard let (slice, version) = media.sliceIfAvailable(range), version == mark,
            let descriptor = slice.fileDescriptor,
            let sent = try? SentSlice(slice, descriptor)  // A reader responds instead, and reports the error.
        else { return nil }
        hit.buffer = buffers.allocator.buffer(capacity: headCapacity)
        encodeHead(of: range, isPartial: isPartial, date, into: &hit.buffer)
        hit.slice = sent
        return hit
    }

    /// Reads the bytes after the head, if all of them are in memory.
    private func read(_ range: Range<Int64>, into buffer: inout ByteBuffer) -> Bool {
        let count = Int(range.upperBound - range.lowerBound)
        return buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
            let body = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
            return media.readWithoutBlocking(range, into: body) == mark ? count : 0
        } == count
    }

    /// A capacity that is sufficient for any head.
    private var headCapacity: Int { fields.count + digests.count + 224 }

    private func encodeHead(of range: Range<Int64>, isPartial: Bool, _ date: DateText, into head: inout ByteBuffer) {
        head.writeStaticString(isPartial ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n")
        head.writeBytes(fields)
        if isPartial {
            head.writeStaticString("Content-Range: bytes ")
            head.writeString(String(range.lowerBound))
            head.writeStaticString("-")
            head.writeString(String(range.upperBound - 1))
            head.writeStaticString("/")
            head.writeString(String(length))
            head.writeStaticString("\r\n")
        } else {
            head.writeBytes(digests)
        }
        head.writeStaticString("Content-Length: ")
        head.writeString(String(range.upperBound - range.lowerBound))
        head.writeStaticString("\r\nAge: ")
        head.writeString(String(response.age(at: date.second)))
        if !hasDate {
            head.writeStaticString("\r\nDate: ")
            head.writeString(date.text)
        }
        head.writeStaticString("\r\n\r\n")
    }

    /// Returns whether a request can differ from others for the same target only in its range. A request from a web
    /// page of another origin counts as different, because the access rules must check it.
    private static func isPlain(_ request: RequestHead, readsOrigin: Bool) -> Bool {
        request.fields.has(noneOf: readsOrigin ? special + ["origin"] : special)
            && !AccessRules.isFromOtherPage(request.fields)
    }

    private static let special: [StaticString] = [
        "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "authorization", "cookie",
        "proxy-authorization",
        "cache-control", "pragma", "expect", "via", "cdn-loop", "upgrade",
    ]

    /// Returns whether the response is the same for all clients that send no credentials.
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
