import Foundation
import SpoolOrigin

extension OriginRule {
    /// Returns a rule that applies random faults to each request. The same seed and request number result in the same
    /// faults.
    package static func drawn(
        _ seed: UInt64, _ draw: @escaping @Sendable (inout SplitMix) -> [OriginBehavior]
    ) -> OriginRule {
        @Sendable func behaviors(_ index: Int) -> [OriginBehavior] {
            var random = SplitMix(seed &+ UInt64(index) &* 0x9E37_79B9)
            return draw(&random)
        }
        return OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                for behavior in behaviors(request.index) { behavior.prepare(&request, &resource) }
            },
            revise: { response in
                for behavior in behaviors(response.index) { behavior.revise(&response) }
            })
    }
}

extension OriginBehavior {
    /// Returns up to three random faults that a reader can detect. With any of them, a read returns the correct bytes
    /// or fails.
    ///
    /// Undetectable faults are excluded:
    ///
    /// - a range that is shifted together with its `Content-Range`
    /// - a wrong length in every response
    /// - a truncated body without framing
    /// - an encoded body without `Content-Encoding`
    ///
    /// - Parameters:
    ///   - length: The length of the media.
    ///   - other: Another version of the media, or `nil` if the media never changes. If `other` is set, every response
    ///     identifies its version.
    ///   - isWire: Whether the origin uses sockets, so that it can send bytes that are not HTTP.
    package static func draw(
        _ random: inout SplitMix, length: Int64, other: OriginContent?, isWire: Bool
    ) -> [OriginBehavior] {
        var behaviors: [OriginBehavior] = []
        if let other, random.chance(6) { behaviors.append(.version(other, etag: "\"v2\"")) }
        if random.chance(2) { return behaviors }
        for _ in 0...random.below(3) {
            let place = Int64(random.below(Int(length)))
            let drawn: [OriginBehavior] =
                switch random.below(isWire ? 7 : 6) {
                case 0: range(&random, length)
                case 1:
                    random.pick([
                        [.noLength(.chunked)], [.closeConnection],
                        [.contentLength(2 * length), .field("Content-Range", nil)],
                    ])
                case 2: random.pick(refusals)
                case 3:
                    random.pick([
                        [.truncate(after: place)], [.truncate(after: nil)], [.reset(after: place)],
                        [.reset(after: nil)],
                    ])
                case 4:
                    random.pick([
                        [.stall(after: nil)], [.stall(after: place)], [.drip(20_000, every: .milliseconds(1))],
                    ])
                case 5: random.pick(other == nil ? fields + unproven : fields)
                default: [OriginBehavior.raw(random.pick(wires))]
                }
            behaviors += drawn
        }
        return behaviors
    }

    private static func range(_ random: inout SplitMix, _ length: Int64) -> [OriginBehavior] {
        random.pick([
            [.ignoresRanges()], [.ignoresRanges(acceptRanges: nil)], [.alwaysPartialContent], [.ignoresIfRange],
            [.contentRange(nil)], [.contentRange("bytes 5-4/3")], [.rangeLimit(1)], [.rangeLimit(70_000)],
            [.rangeNotSatisfiable], [.refusesRanges(contentRange: "bytes */\(length)")],
        ])
    }

    private static let refusals: [[OriginBehavior]] =
        [204, 300, 400, 401, 403, 404, 408, 410, 425, 429, 500, 501, 502, 503, 504, 505, 599].map { [.status($0)] }
        + [
            [.status(503, ["Retry-After": "0"])], [.status(429, ["Retry-After": "1"])],
            [.status(503, ["Retry-After": "x"])],
        ]
        + ["/a", "/b", "//", "ftp://h/", "http://127.0.0.1:0/", "http://127.0.0.1:65536/"].map { [.redirect($0)] }

    private static let fields: [[OriginBehavior]] = [
        [.gzip], [.field("Content-Type", "text/html")], [.field("Content-Type", nil)], [.field("Vary", "*")],
        [.field("Vary", "Accept-Language")], [.field("Cache-Control", "no-store")],
        [.field("Cache-Control", "private, max-age=0")], [.field("Cache-Control", "s-maxage=9999999999999999999")],
        [.field("Expires", "0")], [.field("Age", "-1")], [.field("Transfer-Encoding", "gzip")],
        [.field("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")],
    ]

    /// The faults that prevent a reader from determining the version of a response.
    private static let unproven: [[OriginBehavior]] = [
        [.noValidators], [.etag("W/\"v1\"")], [.contentRangeTotal(nil)],
    ]

    private static let wires = [
        "", "\r\n", "HTTP/1.1 099 Odd\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 999 Odd\r\n\r\nhello",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-4/5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", "\u{0}\u{1}",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ]
}
