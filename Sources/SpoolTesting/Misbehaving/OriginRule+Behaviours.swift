import Foundation
public import SpoolOrigin

extension OriginRule {
    /// Does `behaviour` in the half-open range `requests`, counted from 0 for each URL.
    public init(_ requests: Range<Int>, _ behaviour: OriginBehaviour) {
        self.init(
            requests, prepare: { behaviour.prepare(&$0, &$1) }, revise: { behaviour.revise(&$0) })
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

extension OriginResource {
    /// A URL with `length` bytes of a pattern that does `behaviours` in every response.
    public static func pattern(
        _ length: Int64, seed: UInt64 = 1, etag: String? = "\"v1\"", _ behaviours: OriginBehaviour...
    ) -> OriginResource {
        OriginResource(
            .pattern(PatternBytes(seed: seed, length: length)), etag: etag, rules: behaviours.map { .always($0) })
    }

    /// A URL that only redirects to `location` (absolute, or relative to this URL).
    public static func redirect(to location: String, status: Int = 302) -> OriginResource {
        OriginResource(
            .data(Data()), etag: nil, contentType: nil, rules: [.always(.redirect(location, status: status))])
    }
}
