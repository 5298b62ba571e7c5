public import Foundation
public import HTTPTypes

/// One address of an ``OriginServer``: its bytes, what it says of them, and how it misbehaves.
///
/// Without behaviours it is a well-kept static file: ranges, `If-Range`, `If-None-Match`, 416 and `HEAD` as RFC 9110 has
/// them. Change it while the server runs with ``OriginServer/update(_:_:)``; a response that has begun goes on as it began.
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
    public var fields: HTTPFields = [:]
    /// What it does wrong, in the order in which it is applied.
    public var rules: [OriginRule]

    /// An address with `content`.
    public init(
        _ content: OriginContent, etag: String? = "\"v1\"", lastModified: Date? = nil,
        contentType: String? = "audio/mpeg", rules: [OriginRule] = []
    ) {
        self.content = content
        self.etag = etag
        self.lastModified = lastModified
        self.contentType = contentType
        self.rules = rules
    }

    /// An address with `length` bytes of a pattern that does `behaviours` in every response.
    public static func pattern(
        _ length: Int64, seed: UInt64 = 1, etag: String? = "\"v1\"", _ behaviours: OriginBehaviour...
    ) -> OriginResource {
        OriginResource(
            .pattern(PatternBytes(seed: seed, length: length)), etag: etag, rules: behaviours.map { .always($0) })
    }

    /// An address that does nothing but redirect to `location` (absolute, or relative to this address).
    public static func redirect(to location: String, status: Int = 302) -> OriginResource {
        OriginResource(
            .data(Data()), etag: nil, contentType: nil, rules: [.always(.redirect(location, status: status))])
    }
}

/// When an address misbehaves, and how.
public struct OriginRule: Sendable {
    /// The requests to the address, counted from 0, in which the behaviour shows.
    public var requests: Range<Int>
    /// What it does.
    public var behaviour: OriginBehaviour

    /// Does `behaviour` in the half-open range `requests`.
    public init(_ requests: Range<Int>, _ behaviour: OriginBehaviour) {
        self.requests = requests
        self.behaviour = behaviour
    }

    /// In every request.
    public static func always(_ behaviour: OriginBehaviour) -> OriginRule { OriginRule(0..<Int.max, behaviour) }
    /// In the first `count` requests.
    public static func first(_ count: Int, _ behaviour: OriginBehaviour) -> OriginRule {
        OriginRule(0..<count, behaviour)
    }
    /// In the request with this index only.
    public static func request(_ index: Int, _ behaviour: OriginBehaviour) -> OriginRule {
        OriginRule(index..<index + 1, behaviour)
    }
    /// In the request with this index and all that follow.
    public static func from(_ index: Int, _ behaviour: OriginBehaviour) -> OriginRule {
        OriginRule(index..<Int.max, behaviour)
    }
}
