public import Foundation
public import HTTPTypes

/// A resource of an `OriginServer`: its bytes and its response headers.
///
/// By default, it behaves as a correct static file. Ranges, `If-Range`, `If-None-Match`, 416 and `HEAD` follow
/// RFC 9110. Use ``rules`` to change this behavior. To change the resource while the server is running, use
/// `OriginServer/update(_:_:)`. Responses in progress are not affected.
public struct OriginResource: Sendable {
    /// The bytes of the resource.
    public var content: OriginContent
    /// The `ETag` field with its quotes (`"a"`, or `W/"a"` for a weak tag), or `nil` to omit the field.
    public var etag: String?
    /// The date of the `Last-Modified` field, or `nil` to omit the field.
    public var lastModified: Date?
    /// The value of the `Content-Type` field, or `nil` to omit the field.
    public var contentType: String?
    /// Additional header fields of every response.
    public var headerFields: HTTPFields = [:]
    /// The pace of bodies, or `nil` for no limit.
    public var pace: OriginPace?
    /// The rules that change the behavior of a static file, in the order in which they are applied.
    public var rules: [OriginRule]
    /// A response without the resource's bytes, such as a redirect, or `nil` to send the bytes.
    package var refusal: OriginRefusal?
    /// The bytes to send instead of a response, including headers, or `nil` to send a response.
    package var raw: RawResponse?

    /// Bytes to send instead of a response.
    package struct RawResponse: Sendable {
        package var bytes: [UInt8]
        /// Whether the connection closes after these bytes.
        package var closes: Bool

        package init(_ bytes: [UInt8], closes: Bool) {
            self.bytes = bytes
            self.closes = closes
        }
    }

    /// Creates a resource with `content`.
    public init(
        _ content: OriginContent, etag: String? = "\"v1\"", lastModified: Date? = nil,
        contentType: String? = "audio/mpeg", pace: OriginPace? = nil, rules: [OriginRule] = []
    ) {
        self.content = content
        self.etag = etag
        self.lastModified = lastModified
        self.contentType = contentType
        self.pace = pace
        self.rules = rules
    }
}

/// A rule that changes the origin's responses to some requests for a resource, to simulate faults.
///
/// The server itself does not simulate faults. It passes the request and the resource to each rule before it determines
/// the response. It then passes that response to each rule before sending it. The fault simulations of the test kit use
/// these two steps.
public struct OriginRule: Sendable {
    /// A function that changes the request and the resource, before the response is determined.
    package typealias Prepare = @Sendable (inout OriginRequest, inout OriginResource) -> Void
    /// A function that changes the response, before its framing is set.
    package typealias Revise = @Sendable (inout OriginResponse) -> Void

    /// The requests to which the rule applies, by their index among all requests for the resource, counting from 0.
    public var requests: Range<Int>
    let prepare: Prepare
    let revise: Revise

    /// Creates a rule for the requests with the indices `requests`.
    package init(
        _ requests: Range<Int>, prepare: @escaping Prepare = { _, _ in }, revise: @escaping Revise = { _ in }
    ) {
        self.requests = requests
        self.prepare = prepare
        self.revise = revise
    }
}

/// The parts of a request that determine the origin's response.
package struct OriginRequest: Sendable {
    /// The method, such as `GET` or `HEAD`.
    package var method: String
    /// The query without `?`. It is empty if there is none.
    package var query: String
    /// The header fields of the request.
    package var headerFields: HTTPFields
    /// Whether the client wants to reuse the connection.
    package var keepsAlive: Bool
    /// The number of previous requests to the same path.
    package var index: Int

    package init(method: String, query: String, headerFields: HTTPFields, keepsAlive: Bool, index: Int) {
        self.method = method
        self.query = query
        self.headerFields = headerFields
        self.keepsAlive = keepsAlive
        self.index = index
    }
}

/// The pace at which an origin sends a body: a number of bytes, then a pause on the server's clock.
public struct OriginPace: Sendable, Equatable {
    /// The number of body bytes before each pause, at least 1.
    public var bytes: Int
    /// The duration of a pause.
    public var pause: Duration

    /// Creates a pace that pauses after every `bytes` body bytes. Values below 1 are treated as 1.
    public init(bytes: Int, every pause: Duration) {
        self.bytes = max(1, bytes)
        self.pause = pause
    }
}

/// A response without the resource's bytes: a status, its fields, and the reason phrase as the body.
package struct OriginRefusal: Sendable {
    /// The status, such as 302, 404 or 503.
    package var status: Int
    /// Additional fields, such as `Location`.
    package var fields: [String: String]

    package init(_ status: Int, _ fields: [String: String] = [:]) {
        self.status = status
        self.fields = fields
    }
}

/// The bytes of an origin's resource: a pattern, bytes in memory, or a file.
///
/// Bytes past the end are sent only in responses that are too long. In such a response, a pattern continues, while data
/// and files continue with zeros.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum OriginContent: Sendable {
    /// Bytes that are computed from their offset while they are sent.
    case pattern(PatternBytes)
    /// Bytes in memory.
    case data(Data)
    /// A file that is read while it is sent. An unreadable file is sent as zeros.
    case file(URL)

    /// The number of bytes, which is 0 for an unreadable file.
    public var length: Int64 {
        switch self {
        case .pattern(let pattern): pattern.length
        case .data(let data): Int64(data.count)
        case .file(let url):
            // An unreadable file has no bytes.
            (try? FileManager.default.attributesOfItem(atPath: url.path)[.size] as? NSNumber)?.int64Value ?? 0
        }
    }

    /// Returns the bytes of the half-open `range`, which may extend past the end.
    package func bytes(_ range: Range<Int64>) -> [UInt8] {
        switch self {
        case .pattern(let pattern): return pattern.bytes(range)
        case .data(let data):
            return Self.pad(data.dropFirst(Int(range.lowerBound)).prefix(range.count), to: range.count)
        case .file(let url):
            // An unreadable file is sent as zeros.
            return Self.pad((try? Self.read(range, of: url)) ?? Data(), to: range.count)
        }
    }

    private static func read(_ range: Range<Int64>, of url: URL) throws -> Data? {
        let file = try FileHandle(forReadingFrom: url)
        try file.seek(toOffset: UInt64(range.lowerBound))
        return try file.read(upToCount: range.count)
    }

    private static func pad(_ bytes: some Collection<UInt8>, to count: Int) -> [UInt8] {
        Array(bytes) + [UInt8](repeating: 0, count: max(0, count - bytes.count))
    }
}
