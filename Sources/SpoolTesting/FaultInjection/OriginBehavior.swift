import Foundation
import HTTPTypes
public import SpoolOrigin

/// A deviation from the behavior of a correct static file server.
///
/// Several behaviors can be combined, for example `.noLength(.chunked)` and `.truncate(after: 1000)` for a truncated
/// chunked body. Byte counts refer to the body of one response.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum OriginBehavior: Sendable {
    // MARK: Ranges

    /// Responds with 200 and all bytes to any range request. Sends `acceptRanges` as `Accept-Ranges`, or omits the
    /// field if it is `nil`.
    case ignoresRanges(acceptRanges: String? = "none")
    /// Responds with 206 even if no range was requested.
    case alwaysPartialContent
    /// Ignores `If-Range`, and responds with 206 regardless of its condition.
    case ignoresIfRange
    /// Shifts the first and last byte in `Content-Range`; the body still contains the requested range.
    case contentRangeShifted(by: Int64)
    /// Sends this total length in `Content-Range`, even in a 416 response, or `*` (unknown) if it is `nil`.
    case contentRangeTotal(Int64?)
    /// Sends this `Content-Range` in 206 responses, or omits the field if the value is `nil`.
    case contentRange(String?)
    /// Sends a body that is longer than the range in `Content-Range` by this number of bytes, or shorter if negative.
    /// `Content-Length` is the length of the sent body. In a 200 response, the body is longer than the media by this
    /// number of bytes, or shorter if negative.
    case extraBytes(Int64)
    /// Sends at most this number of bytes of the requested range, with matching headers. The result is a valid but
    /// shorter 206 response.
    case rangeLimit(Int64)
    /// Responds to every request with 416 and the media's length.
    case rangeNotSatisfiable
    /// Responds to every range request with 416, and this `Content-Range` if it is not `nil`. Responds with 200 if no
    /// range was requested.
    case refusesRanges(contentRange: String? = nil)

    // MARK: Length and framing

    /// Sends a body without `Content-Length`.
    case noLength(Framing)
    /// Sends this `Content-Length`, regardless of the body, and closes the connection after the body.
    case contentLength(Int64)

    // MARK: Validators and content

    /// Sends this `ETag`, or omits it if it is `nil`.
    case etag(String?)
    /// Sends neither `ETag` nor `Last-Modified`.
    case noValidators
    /// Serves these bytes with this `ETag`, as if the media had changed at the origin.
    case version(OriginContent, etag: String?)
    /// Compresses the media regardless of `Accept-Encoding`. The body, length and ranges are those of a gzip file.
    case gzip
    /// Sends this field, or omits it if the value is `nil`.
    case field(String, String?)

    // MARK: Refusals

    /// Responds with this status, these fields and a short text, for example `.status(503, ["Retry-After": "2"])`.
    case status(Int, [String: String] = [:])
    /// Responds with the status (such as 401 or 403) unless the request's field has exactly this value.
    case requiresField(String, String, else: Int)
    /// Responds with the status (such as 403 or 410) unless the request's query is exactly this text.
    case requiresQuery(String, else: Int)
    /// Redirects to an absolute or relative URL. For a chain, use several resources. For a loop, use one resource that
    /// redirects to itself.
    case redirect(String, status: Int = 302)

    // MARK: End of the response

    /// Closes the connection after this number of body bytes; `nil` closes it before the headers.
    case truncate(after: Int64?)
    /// Resets the connection after this number of body bytes; `nil` resets it before the headers. Bytes that the kernel
    /// has not sent yet are lost.
    case reset(after: Int64?)
    /// Stalls after this number of body bytes, until `OriginServer/release(_:)` is called or the client closes the
    /// connection; `nil` stalls before the headers.
    case stall(after: Int64?)
    /// Sends pieces of this number of bytes, and waits on the server's clock between them.
    case drip(Int, every: Duration)
    /// Sends `Connection: close`, and closes the connection after the complete response.
    case closeConnection
    /// Sends these bytes instead of the headers and body of a response, and then closes the connection or leaves it
    /// open and silent. Only an `OriginServer` supports this.
    case raw(String, closes: Bool = true)

    /// The framing that marks the end of a body without a length.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Framing: Sendable {
        /// `Transfer-Encoding: chunked`.
        case chunked
        /// HTTP/1.0, in which the end of the connection marks the end of the body.
        case close
    }

    /// Sends about this number of bytes per second, in twenty pieces.
    public static func rate(_ bytesPerSecond: Int) -> OriginBehavior {
        .drip(max(1, bytesPerSecond / 20), every: .milliseconds(50))
    }
}

extension OriginBehavior {
    /// Applies the part of the behavior that changes the request or the resource, before the response is determined.
    func prepare(_ request: inout OriginRequest, _ resource: inout OriginResource) {
        switch self {
        case .ignoresRanges: request.headerFields[.range] = nil
        case .ignoresIfRange: request.headerFields[.ifRange] = nil
        case .alwaysPartialContent where request.headerFields[.range] == nil: ask(&request, 0...)
        case .rangeNotSatisfiable: ask(&request, resource.content.length...)
        case .refusesRanges(let contentRange):
            guard request.headerFields[.range] != nil else { return }
            resource.refusal = OriginRefusal(416, contentRange.map { ["Content-Range": $0] } ?? [:])
        case .rangeLimit(let bytes): limit(&request, to: bytes, of: resource.content.length)
        case .etag(let text): resource.etag = text
        case .noValidators: (resource.etag, resource.lastModified) = (nil, nil)
        case .version(let content, let etag): (resource.content, resource.etag) = (content, etag)
        case .gzip:
            resource.content = .data(StoredGzipEncoder.encode(resource.content.bytes(0..<resource.content.length)))
            resource.headerFields[.contentEncoding] = "gzip"
        case .status(let status, let fields): resource.refusal = OriginRefusal(status, fields)
        case .redirect(let location, let status): resource.refusal = OriginRefusal(status, ["Location": location])
        case .raw(let text, let closes): resource.raw = .init(Array(text.utf8), closes: closes)
        case .requiresField(let name, let value, let status):
            let given = HTTPField.Name(name).flatMap { request.headerFields[$0] }
            guard given != value else { return }
            resource.refusal = OriginRefusal(status, status == 401 ? ["WWW-Authenticate": "Bearer"] : [:])
        case .requiresQuery(let query, let status):
            if request.query != query { resource.refusal = OriginRefusal(status) }
        default: break
        }
    }

    /// Applies the part of the behavior that changes the response after it has been determined: its headers, body
    /// range, framing, pace or end.
    func revise(_ response: inout OriginResponse) {
        switch self {
        case .ignoresRanges(let acceptRanges):
            guard response.lines.contains(where: { $0.name == "Accept-Ranges" }) else { return }
            response.setField("Accept-Ranges", acceptRanges)
        case .contentRangeShifted(let bytes):
            guard let said = response.contentRange?.bytes else { return }
            response.contentRange?.bytes = said.lowerBound + bytes..<said.upperBound + bytes
        case .contentRangeTotal(let total): response.contentRange?.total = total
        case .contentRange(let text): if response.status == 206 { response.setField("Content-Range", text) }
        case .extraBytes(let bytes):
            guard [200, 206].contains(response.status) else { return }
            let body = response.body
            response.body = body.lowerBound..<max(body.lowerBound, body.upperBound + bytes)
        case .noLength(let framing): response.framing = framing == .chunked ? .chunked : .close
        case .contentLength(let bytes): response.statedLength = bytes
        case .field(let name, let value): response.setField(name, value)
        case .truncate(let after): response.incident = .init(kind: .cut, after: after)
        case .reset(let after): response.incident = .init(kind: .reset, after: after)
        case .stall(let after): response.incident = .init(kind: .stall, after: after)
        case .drip(let bytes, let every): response.pace = OriginPace(bytes: bytes, every: every)
        case .closeConnection: response.closes = true
        default: break
        }
    }

    private func ask(_ request: inout OriginRequest, _ range: PartialRangeFrom<Int64>) {
        request.headerFields[.range] = "bytes=\(range.lowerBound)-"
        request.headerFields[.ifRange] = nil
    }

    private func limit(_ request: inout OriginRequest, to bytes: Int64, of length: Int64) {
        guard let asked = request.headerFields[.range].flatMap({ RequestedRange($0) })?.resolve(length) else { return }
        let last = asked.lowerBound + min(Int64(asked.count), max(1, bytes)) - 1
        request.headerFields[.range] = "bytes=\(asked.lowerBound)-\(last)"
    }
}

extension OriginRule {
    /// Creates a rule for the requests with the indices `requests`, counting from 0 for each URL.
    public init(_ requests: Range<Int>, _ behavior: OriginBehavior) {
        self.init(
            requests, prepare: { behavior.prepare(&$0, &$1) }, revise: { behavior.revise(&$0) })
    }

    /// Returns a rule for every request.
    public static func always(_ behavior: OriginBehavior) -> OriginRule { OriginRule(0..<Int.max, behavior) }
    /// Returns a rule for the first `count` requests.
    public static func first(_ count: Int, _ behavior: OriginBehavior) -> OriginRule {
        OriginRule(0..<count, behavior)
    }
    /// Returns a rule for only the request with this index.
    public static func request(_ index: Int, _ behavior: OriginBehavior) -> OriginRule {
        OriginRule(index..<index + 1, behavior)
    }
    /// Returns a rule for the request with this index and all later requests.
    public static func from(_ index: Int, _ behavior: OriginBehavior) -> OriginRule {
        OriginRule(index..<Int.max, behavior)
    }
}

extension OriginResource {
    /// Returns a resource of `length` bytes of a pattern, with `behaviors` in every response.
    public static func pattern(
        _ length: Int64, seed: UInt64 = 1, etag: String? = "\"v1\"", _ behaviors: OriginBehavior...
    ) -> OriginResource {
        OriginResource(
            .pattern(PatternBytes(seed: seed, length: length)), etag: etag, rules: behaviors.map { .always($0) })
    }

    /// Returns a resource that redirects to `location` (absolute, or relative to its own URL).
    public static func redirect(to location: String, status: Int = 302) -> OriginResource {
        OriginResource(
            .data(Data()), etag: nil, contentType: nil, rules: [.always(.redirect(location, status: status))])
    }
}

/// An encoder for valid gzip files that contain the bytes uncompressed, in "stored" blocks (RFC 1951 §3.2.4, RFC 1952).
enum StoredGzipEncoder {
    static func encode(_ bytes: [UInt8]) -> Data {
        var out = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
        var position = 0
        repeat {
            let count = min(65535, bytes.count - position)
            let isLast: UInt8 = position + count == bytes.count ? 1 : 0
            out.append(contentsOf: [isLast, UInt8(count & 255), UInt8(count >> 8)])
            out.append(contentsOf: [UInt8(~count & 255), UInt8((~count >> 8) & 255)])
            out.append(contentsOf: bytes[position..<position + count])
            position += count
        } while position < bytes.count
        for value in [crc32(bytes), UInt32(truncatingIfNeeded: bytes.count)] {
            withUnsafeBytes(of: value.littleEndian) { out.append(contentsOf: $0) }
        }
        return out
    }

    private static func crc32(_ bytes: [UInt8]) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }
}
