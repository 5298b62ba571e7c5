import Foundation
import SpoolOrigin
import SpoolTesting

extension Irregularity {
    /// Lengths and transfer codings of bodies.
    static let framings: [Irregularity] = [
        Irregularity(kind: .framing, name: "chunked", rules: [.always(.noLength(.chunked))]),
        Irregularity(kind: .framing, name: "closes", rules: [.always(.closeConnection)]),
        Irregularity(
            kind: .framing, name: "chunked with a length",
            rules: [.always(.noLength(.chunked)), .line("Content-Length: 77")]),
        Irregularity(kind: .framing, name: "identity", rules: [.line("Transfer-Encoding: identity")]),
        Irregularity(
            kind: .framing, name: "the same length twice",
            rules: [
                .head { head in
                    guard let line = head.firstMatch(of: /Content-Length: [0-9]+\r\n/)?.output else { return head }
                    return head.replacing(line, with: line + line)
                }
            ]),
        Irregularity(
            kind: .framing, name: "HTTP/1.0 with a length",
            rules: [.always(.closeConnection), .head { $0.replacing("HTTP/1.1", with: "HTTP/1.0") }]),
    ]

    /// Status lines and fields.
    static let heads: [Irregularity] = [
        ("white space before a colon", OriginRule.head { $0.replacing("Date:", with: "Date :") }),
        ("LF", .head { $0.replacing("\r\n", with: "\n") }),
        ("a folded line", .line("X-Long: a\r\n  b")), ("an empty name", .line(": x")),
        ("no reason phrase", .head { $0.replacing(/(HTTP\/1\.[01] [0-9]+) [^\r]*/) { "\($0.output.1)" } }),
        ("a lowercase version", .head { $0.replacing("HTTP/", with: "http/") }),
        ("ICY", .head { $0.hasPrefix("HTTP/1.1 200 OK") ? "ICY" + $0.drop { $0 != " " } : $0 }),
        ("UTF-8", .line("icy-name: \u{266B}")), ("an empty line first", .head { "\r\n" + $0 }),
        ("an early hint", .head { "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + $0 }),
        ("two range units", .line("Accept-Ranges: none, bytes")), ("keep-alive", .line("Connection: keep-alive, x")),
        ("wrong Date", .line("Date: yesterday")), ("P3P", .line("P3P: CP=\"a\", b")),
        ("tabs", .line("X-Tab:\ta\tb\t")), ("a long value", .line("X-Long: " + String(repeating: "a", count: 9000))),
    ].map { Irregularity(kind: .head, name: $0, rules: [$1]) }

    /// The pace at which bytes are sent.
    static let speeds: [Irregularity] = [
        Irregularity(
            kind: .speed, name: "small pieces", rules: [.always(.drip(20_000, every: .milliseconds(1)))]),
        Irregularity(
            kind: .speed, name: "a slow start", rules: [.first(1, .drip(2000, every: .milliseconds(2)))]),
    ]

    /// Fields that control caching.
    static let caching: [Irregularity] = [
        "Cache-Control: no-store", "Cache-Control: no-cache", "Cache-Control: private", "Cache-Control: max-age=0",
        "Cache-Control: max-age=3600", "Cache-Control: public, s-maxage=x, max-age=-1", "Expires: 0",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT", "Pragma: no-cache", "Vary: User-Agent", "Vary: *", "Vary: Cookie",
        "Age: 100000", "Cache-Control: must-revalidate, proxy-revalidate", "Cache-Control: no-transform",
        "Surrogate-Control: no-store", "Cache-Control: max-age=3600, max-age=0",
    ].map { line in
        let name = String(line.prefix { $0 != ":" })
        return Irregularity(
            kind: .caching, name: line,
            rules: [.always(.field(name, String(line.dropFirst(name.count + 2))))])
    }

    /// Returns all irregularities of a kind.
    static func all(_ kind: Kind) -> [Irregularity] {
        switch kind {
        case .type: types
        case .coding: codings
        case .validator: validators
        case .range: ranges
        case .redirect: redirects
        case .cookie: cookies
        case .framing: framings
        case .head: heads
        case .speed: speeds
        case .caching: caching
        }
    }
}
