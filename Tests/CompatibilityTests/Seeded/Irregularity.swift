import Foundation
import HTTPTypes
import SpoolOrigin
import SpoolTesting

/// An origin's deviation from correct behavior that players accept.
///
/// Irregularities of different kinds can be combined. A run has at most one of each kind.
struct Irregularity: Sendable {
    /// The part of a response that an irregularity changes.
    enum Kind: CaseIterable {
        case type, coding, validator, range, redirect, cookie, framing, head, speed, caching
    }

    var kind: Kind
    var name: String
    var rules: [OriginRule] = []
    /// The redirects that lead to the media, in order.
    var redirects: [OriginRefusal] = []

    private static func rule(
        prepare: @escaping @Sendable (inout OriginRequest, inout OriginResource) -> Void = { _, _ in },
        revise: @escaping @Sendable (inout OriginResponse) -> Void = { _ in }
    ) -> OriginRule {
        OriginRule(0..<Int.max, prepare: prepare, revise: revise)
    }

    /// Irregular media types.
    static let types =
        [
            "audio/mpeg", "video/mp4; codecs=\"avc1\"", "application/octet-stream", "binary/octet-stream", "text/plain",
            "text/html; charset=utf-8", "", "mp3", "application/force-download", "VIDEO/MP2T", "audio/mpeg, audio/mpeg",
            "*/*",
        ].map { (type: String) in
            Irregularity(kind: .type, name: "type \(type)", rules: [rule { $1.contentType = type }])
        } + [Irregularity(kind: .type, name: "no type", rules: [rule { $1.contentType = nil }])]

    /// Content codings that do not change the bytes.
    static let codings = ["aws-chunked", "utf-8", "none", "identity", "", "binary", "8bit"].map { (coding: String) in
        Irregularity(
            kind: .coding, name: "coding \(coding)", rules: [.always(.field("Content-Encoding", coding))])
    }

    /// Validators that identify the version.
    static let validators =
        ["\"v1\"", "v1", "\"\"", "\"a b\"", "\"v1\", \"v1\"", "\"\u{E9}\""].map { (tag: String) in
            Irregularity(kind: .validator, name: "tag \(tag)", rules: [.always(.etag(tag))])
        } + [
            Irregularity(
                kind: .validator, name: "old date",
                rules: [
                    rule { ($1.etag, $1.lastModified) = (nil, Date(timeIntervalSince1970: 1_000_000_000)) }
                ]),
            Irregularity(
                kind: .validator, name: "tag and date",
                rules: [rule { $1.lastModified = Date(timeIntervalSince1970: 1_000_000_000) }]),
            Irregularity(
                kind: .validator, name: "date in another format",
                rules: [rule(revise: { $0.setField("Last-Modified", "Sunday, 09-Sep-01 01:46:40 GMT") })]),
        ]

    /// Validators that do not identify the version.
    static let weakValidators = [nil, "W/\"v1\""].map { tag in
        Irregularity(kind: .validator, name: "tag \(tag ?? "missing")", rules: [.always(.etag(tag))])
    }

    /// Responses to range requests.
    static let ranges: [Irregularity] = {
        let forms: [(String, @Sendable (Int64, Int64, Int64) -> String?)] = [
            ("no Content-Range", { _, _, _ in nil }), ("range without unit", { "\($0)-\($1)/\($2)" }),
            ("range with =", { "bytes=\($0)-\($1)/\($2)" }), ("range with :", { "bytes: \($0)-\($1)/\($2)" }),
            ("range with spaces", { "bytes  \($0) - \($1) / \($2)" }),
            ("unit in capitals", { "BYTES \($0)-\($1)/\($2)" }),
            ("range without total", { first, last, _ in "bytes \(first)-\(last)" }),
        ]
        let labels = forms.map { name, form in
            Irregularity(
                kind: .range, name: name,
                rules: [
                    rule(revise: { response in
                        guard response.status == 206 else { return }
                        let (body, length) = (response.body, response.content.length)
                        response.setField("Content-Range", form(body.lowerBound, body.upperBound - 1, length))
                    })
                ])
        }
        let fromStart = rule { request, _ in
            guard case .from(0) = request.headerFields[.range].flatMap({ RequestedRange($0) }) else { return }
            request.headerFields[.range] = nil
        }
        let conditional = rule { request, _ in
            if request.headerFields[.ifRange] != nil { request.headerFields[.range] = nil }
        }
        return labels + [
            Irregularity(kind: .range, name: "no ranges", rules: [.always(.ignoresRanges())]),
            Irregularity(kind: .range, name: "no Accept-Ranges", rules: [.always(.ignoresRanges(acceptRanges: nil))]),
            Irregularity(kind: .range, name: "promised only", rules: [.always(.ignoresRanges(acceptRanges: "bytes"))]),
            Irregularity(kind: .range, name: "200 from 0", rules: [fromStart]),
            Irregularity(kind: .range, name: "200 with If-Range", rules: [conditional]),
            Irregularity(kind: .range, name: "If-Range ignored", rules: [.always(.ignoresIfRange)]),
            Irregularity(kind: .range, name: "unknown total", rules: [.always(.contentRangeTotal(nil))]),
            Irregularity(kind: .range, name: "416 for ranges", rules: [.always(.refusesRanges())]),
        ]
    }()

    /// Redirects to the media.
    static let redirects: [Irregularity] =
        [301, 302, 303, 307, 308].map { status in
            Irregularity(kind: .redirect, name: "\(status)", redirects: [OriginRefusal(status)])
        } + [
            Irregularity(
                kind: .redirect, name: "nine redirects", redirects: Array(repeating: OriginRefusal(302), count: 9)),
            Irregularity(
                kind: .redirect, name: "permanent, then temporary", redirects: [OriginRefusal(301), OriginRefusal(307)]),
            Irregularity(
                kind: .redirect, name: "not stored",
                redirects: [OriginRefusal(302, ["Cache-Control": "no-store", "Expires": "0"])]),
        ]

    /// Responses that set cookies.
    static let cookies: [Irregularity] =
        [
            "session=1; Path=/", "broken", "a=b; Domain=.example.com", "a=\"b c\"; Max-Age=0", "a=1; Secure; HttpOnly",
        ].map { (cookie: String) in
            Irregularity(kind: .cookie, name: "cookie \(cookie)", rules: [.always(.field("Set-Cookie", cookie))])
        } + [
            Irregularity(
                kind: .cookie, name: "cookie of the redirect",
                rules: [.always(.requiresField("Cookie", "seen=1", else: 403))],
                redirects: [OriginRefusal(302, ["Set-Cookie": "seen=1; Path=/"])])
        ]
}
