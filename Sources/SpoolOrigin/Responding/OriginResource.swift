public import Foundation
public import HTTPTypes

/// One URL of an `OriginServer`: its bytes and what the server says of them.
///
/// A well-kept static file: ranges, `If-Range`, `If-None-Match`, 416 and `HEAD` as RFC 9110 has them. ``rules`` are the
/// seam for anything else. Change it while the server runs with `OriginServer/update(_:_:)`; a response that has begun
/// goes on as it began.
public struct OriginResource: Sendable {
    /// The bytes.
    public var content: OriginContent
    /// The `ETag` field, with its quotes (`"a"`, or `W/"a"` for a weak one), or nil for none.
    public var etag: String?
    /// The `Last-Modified` field, or nil for none.
    public var lastModified: Date?
    /// The `Content-Type` field, or nil for none.
    public var contentType: String?
    /// Further fields of every response.
    public var headerFields: HTTPFields = [:]
    /// How fast bodies are sent; nil for as fast as the client takes them.
    public var pace: OriginPace?
    /// Deviations from the static file, in the order in which they are applied.
    public var rules: [OriginRule]
    /// The response in place of the bytes, such as a redirect; nil for the bytes.
    package var refusal: OriginRefusal?
    /// The bytes that go out in place of a response, head and all; nil for a response.
    package var raw: RawResponse?

    /// Bytes in place of a response.
    package struct RawResponse: Sendable {
        package var bytes: [UInt8]
        /// Whether the connection closes after them.
        package var closes: Bool

        package init(_ bytes: [UInt8], closes: Bool) {
            self.bytes = bytes
            self.closes = closes
        }
    }

    /// A URL with `content`.
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
