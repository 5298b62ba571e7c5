import Foundation
import SpoolTesting

/// The server that requests are drawn for.
struct HostileTarget: Sendable {
    var port: Int
    var originPort: Int
    var token: String?
    /// Whether the server stands for the origin.
    var isReverse = false
}

extension HostileRequest {
    /// A request out of a grammar of good and bad ones: mostly one thing is wrong with it, or nothing.
    static func draw(for target: HostileTarget, _ random: inout SplitMix) -> HostileRequest {
        // Else hardly any connection would live to its second request.
        var draft = HostileDraft(target: target, isTame: random.below(5) > 0)
        draft.drawMethod(&random)
        draft.drawTarget(&random)
        draft.drawVersion(&random)
        draft.drawHost(&random)
        draft.drawToken(&random)
        draft.drawFields(&random)
        if draft.media != nil { draft.drawConditions(&random) }
        draft.drawBody(&random)
        draft.drawConnection(&random)
        if !draft.isTame, random.chance(8) { draft.spoil(&random) }
        return draft.request(&random)
    }

    /// What ends a connection in good order.
    static func farewell(for target: HostileTarget) -> HostileRequest {
        let prefix = target.token.map { "/~" + $0 } ?? ""
        return HostileRequest(
            bytes: Array("GET \(prefix)/.spool/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8),
            fate: .ends, expected: ExpectedResponse(content: .health))
    }
}

/// A request while it is drawn.
struct HostileDraft {
    let target: HostileTarget
    private var method = "GET"
    private var path = ""
    private var version = "HTTP/1.1"
    private var fields: [(String, String)] = []
    private var body: [UInt8] = []
    /// Statuses for what can't be read.
    private var refusals: Set<Int> = []
    private var hostRefusals: Set<Int> = []
    private var tokenRefusals: Set<Int> = []
    private var routeRefusals: Set<Int> = []
    private(set) var media: HostileMedia?
    private var isHealth = false
    private var closes = false
    private var breaks = false
    private var mayContinue = false
    private var result: (status: Int, ranges: [Range<Int64>]) = (200, [])

    init(target: HostileTarget, isTame: Bool) {
        self.target = target
        self.isTame = isTame
    }

    /// Whether it can be read, whatever it asks for.
    let isTame: Bool

    // MARK: - The first line

    mutating func drawMethod(_ random: inout SplitMix) {
        switch random.below(isTame ? 19 : 20) {
        case 0..<14: method = "GET"
        case 14, 15: method = "HEAD"
        case 16: method = "OPTIONS"
        case 17, 18:
            method = random.pick([
                "POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "BREW", "get", "PURGE", "M-SEARCH",
            ])
        default:
            method = random.pick([
                "", "G ET", "GE\u{1}T", "GET\t", "{}", String(repeating: "A", count: 65), "GET/", "(GET)", "\"GET\"",
            ])
            refusals.insert(400)
        }
    }

    private var origin: String { target.isReverse ? "" : "/http/127.0.0.1:\(target.originPort)" }

    mutating func drawTarget(_ random: inout SplitMix) {
        switch random.below(isTame ? 23 : 24) {
        case 0..<17:
            // Large ones seldom.
            let media = HostileMedia.all[random.chance(6) ? random.below(6) : random.below(4)]
            (self.media, path) = (media, origin + media.path)
        case 17: (path, isHealth) = ("/.spool/health", true)
        case 18:
            (path, routeRefusals) = (origin + "/missing-\(random.below(50))", [404])
        case 19:
            // One that nobody has asked for.
            (path, routeRefusals) = (origin + "/media-2.mp4?\(random.next())", [200])
        case 20 where !target.isReverse:
            (path, routeRefusals) = (
                random.pick([
                    "/", "/favicon.ico", "/ftp/a/b", "/http/", "/http", "//", "/http/127.0.0.1:99999/a",
                    "/http/a@127.0.0.1/a",
                    "/http/a%20b/c", "/http/[::1/a", "/http/:80/a", "/file/etc/passwd", "/https", "/?", "/http//a",
                    "/.spool", "/.spool/none", "/.spoolx",
                ]), [400, 404, 200]
            )
        case 21 where !target.isReverse:
            (path, routeRefusals) = (
                random.pick([
                    "/http/127.0.0.1:\(target.port)/.spool/health", "/http/localhost:\(target.port)/",
                    "/http/127.9.9.9:\(target.port)/",
                ]), [403]
            )
        case 22:
            (path, routeRefusals) = (
                origin
                    + random.pick([
                        "/%zz", "/../../etc/passwd", "/..%2f..%2f", "/a/./b", "/%00", "/%0d%0aX:%20y", "/\\", "/<>",
                        "/{}|^`", "/?\"'", "/a?b?c", "/;/,",
                    ]),
                [400, 404]
            )
        case 23:
            path = random.pick([
                "*", "http://", "ftp://a/", "/a b", "/a#b", "/\u{1}", "/\u{7F}", "/é", "a", "?", "http://a@b/",
                "https://a/", "/" + String(repeating: "x", count: 33_000),
            ])
            // A tunnel's target is none of these, and is refused for its method.
            if path == "*", method == "OPTIONS" { return }
            refusals.formUnion([400, 414, 431])
            if method == "CONNECT" { refusals.formUnion([400, 401, 404, 405, 421]); breaks = true }
        default: (self.media, path) = (HostileMedia.all[2], origin + HostileMedia.all[2].path)
        }
        if refusals.isEmpty, path.hasPrefix("/"), random.chance(12) {
            isAbsolute = true
        }
    }

    private var isAbsolute = false

    mutating func drawVersion(_ random: inout SplitMix) {
        switch random.below(24) {
        case 0, 1: version = "HTTP/1.0"
        case 2: version = "HTTP/1.\(2 + random.below(8))"
        case 3 where !isTame:
            version = random.pick(["HTTP/2.0", "HTTP/0.9", "HTTP/3.0", "HTTP/9.9", "HTTP/0.0"])
            refusals.insert(505)
        case 4 where !isTame:
            version = random.pick([
                "", "http/1.1", "HTTP/11", "HTTP/1.1.1", "HTTP/1,1", "HTTP/x.y", "HTTP /1.1", "HTTP/1.1 ", "ICY/1.1",
                "HTTP/1",
            ])
            refusals.insert(400)
        default: break
        }
        isOld = version == "HTTP/1.0"
    }

    private var isOld = false

    // MARK: - Doors

    mutating func drawHost(_ random: inout SplitMix) {
        let good = [
            "localhost", "127.0.0.1", "127.0.0.1:\(target.port)", "LOCALHOST:1", "[::1]", "player.localhost",
            "localhost:",
        ]
        guard !isAbsolute else {
            fields.append(("Host", random.pick(good)))
            return
        }
        switch random.below(30) {
        case 0 where !isTame:
            if !isOld { refusals.insert(400) }
        case 1 where !isTame:
            fields += [("Host", "localhost"), ("Host", random.pick(good + ["evil.example"]))]
            refusals.insert(400)
        case 2, 3:
            fields.append(
                (
                    "Host",
                    random.pick([
                        "evil.example", "localhost.evil.example", "xlocalhost", "127.1", "2130706433",
                        "evil.example:80",
                    ])
                ))
            hostRefusals = [421]
        case 4:
            fields.append(
                (
                    "Host",
                    random.pick([
                        "", "a b", "user@localhost", "local\\host", "[::1", "localhost:x", "localhost:99999", "a,b",
                        "http://localhost",
                    ])
                ))
            hostRefusals = [400]
        default: fields.append((random.pick(["Host", "host", "HOST"]), random.pick(good)))
        }
    }

    mutating func drawToken(_ random: inout SplitMix) {
        guard let token = target.token else { return }
        guard path.hasPrefix("/") else {
            tokenRefusals = [401]
            return
        }
        switch random.below(10) {
        case 0..<6: path = "/~" + token + path
        case 6, 7:
            fields.append(
                (
                    random.pick(["Authorization", "authorization"]),
                    random.pick(["Bearer ", "bearer ", "BEARER  "]) + token
                ))
        case 8:
            path =
                random.pick([
                    "/~", "/~" + token.dropLast(), "/~" + token + "x", "/~" + token.uppercased() + "A", "/~%74oken",
                    "//~" + token, "/~~" + token, "",
                ]) + path
            tokenRefusals = [401]
        default:
            fields.append(
                (
                    "Authorization",
                    random.pick([
                        "Bearer", "Bearer ", "Bearer " + token + "x", "Basic " + token, token, "Bearer" + token,
                        "Bearer \(token),",
                    ])
                ))
            tokenRefusals = [401]
        }
    }

    // MARK: - Fields

    mutating func drawFields(_ random: inout SplitMix) {
        while random.chance(3) {
            fields.append(
                random.pick([
                    ("Accept", "*/*"), ("User-Agent", "a (b; c)"), ("X-Empty", ""), ("X-Tab", "a\tb"),
                    ("Cookie", "a=b"),
                    ("Accept-Encoding", "gzip, br, identity;q=0.5"), ("Accept-Language", "de,en;q=0.5"),
                    ("TE", "trailers"),
                    ("Proxy-Authorization", "Basic YTpi"), ("Keep-Alive", "timeout=5"), ("X-Bytes", "é\u{80}"),
                    ("Origin", "null"),
                    ("Origin", "http://evil.example"), ("Referer", "x"), ("Via", "1.1 a"), ("CDN-Loop", "b"),
                    ("Forwarded", "for=1"),
                    ("Icy-MetaData", "1"), ("X-Long", String(repeating: "v", count: 3000)),
                    ("!#$%&'*+-.^_`|~", "token"),
                    ("X-Smuggled", "GET / HTTP/1.1"), ("Content-Type", "text/plain"), ("Date", "x"),
                    ("Max-Forwards", "0"),
                ]))
        }
        if !isTame, random.chance(20) {
            fields.append(("X-Huge", String(repeating: "v", count: 33_000 + random.below(30_000))))
            refusals.formUnion([431])
        }
        if !isTame, random.chance(30) {
            for _ in 0..<6000 { fields.append(("a", "bcd")) }
            refusals.formUnion([431])
        }
    }

    /// One of the origin's dates.
    static let date = "Tue, 03 Nov 2020 10:00:00 GMT"

    mutating func drawConditions(_ random: inout SplitMix) {
        guard let media else { return }
        var isHeld = true
        switch random.below(20) {
        case 0:
            fields.append(("If-Match", random.pick(["\"other\"", "W/\(media.tag)", "\"a\", \"b\""])))
            isHeld = false
            result.status = 412
        case 1: fields.append(("If-Match", random.pick([media.tag, "*", "\"a\", \(media.tag)"])))
        case 2:
            fields.append(("If-Unmodified-Since", "Mon, 02 Nov 2020 10:00:00 GMT"))
            isHeld = false
            result.status = 412
        case 3: fields.append(("If-Unmodified-Since", random.pick([Self.date, "x", "Wed, 04 Nov 2020 10:00:00 GMT"])))
        default: break
        }
        switch random.below(20) {
        case 0, 1:
            fields.append(("If-None-Match", random.pick([media.tag, "W/\(media.tag)", "*", "\"a\", \(media.tag)"])))
            // A date beside it means nothing.
            if random.chance(3) { fields.append(("If-Modified-Since", "Mon, 02 Nov 2020 10:00:00 GMT")) }
            if isHeld { result.status = 304 }
            isHeld = false
        case 2: fields.append(("If-None-Match", random.pick(["\"other\"", "\"a\", \"b\""])))
        case 3:
            fields.append(("If-Modified-Since", random.pick([Self.date, "Wed, 04 Nov 2020 10:00:00 GMT"])))
            if isHeld { result.status = 304 }
            isHeld = false
        case 4: fields.append(("If-Modified-Since", random.pick(["Mon, 02 Nov 2020 10:00:00 GMT", "x", ""])))
        default: break
        }
        drawRange(&random, media, isHeld: isHeld)
    }

    private mutating func drawRange(_ random: inout SplitMix, _ media: HostileMedia, isHeld: Bool) {
        guard random.below(3) > 0 else { return }
        let (text, ranges) = Self.range(&random, media.length)
        fields.append((random.pick(["Range", "range", "RANGE"]), text))
        var counts = method == "GET"
        if random.chance(30) {
            fields.append(("Range", "bytes=0-0"))
            counts = false
        }
        switch random.below(10) {
        case 0: fields.append(("If-Range", random.pick([media.tag])))
        case 1:
            fields.append(
                ("If-Range", random.pick(["\"other\"", "W/\(media.tag)", "x", "Mon, 02 Nov 2020 10:00:00 GMT"])))
            counts = false
        default: break
        }
        guard isHeld, counts, let ranges else { return }
        result = ranges.isEmpty ? (416, []) : (206, ranges)
    }

    /// A `Range`, and what it means; nil: nothing, so that the whole is sent.
    private static func range(_ random: inout SplitMix, _ length: Int64) -> (String, [Range<Int64>]?) {
        let first = Int64(random.below(Int(length) + 1))
        let last = first + Int64(random.below(2000))
        let isThere = first < length
        let clipped = isThere ? [first..<min(last + 1, length)] : []
        switch random.below(12) {
        case 0..<5: return ("bytes=\(first)-\(last)", clipped)
        case 5: return ("bytes=\(first)-", isThere ? [first..<length] : [])
        case 6:
            let count = Int64(random.below(3000))
            if count == 0 { return ("bytes=-0", []) }
            return ("bytes=-\(count)", length == 0 ? nil : [max(0, length - count)..<length])
        case 7:
            let start = length + Int64(random.below(3))
            return ("bytes=\(start)-\(start + 5)", [])
        case 8:
            return (
                random.pick([
                    "bytes=9223372036854775807-", "bytes=9223372036854775808-",
                    "bytes=99999999999999999999999-99999999999999999999999",
                ]), []
            )
        case 9:
            return (
                random.pick([
                    "bytes=0-9223372036854775807", "bytes=0-99999999999999999999", "BYTES=0-", "bytes= 0-",
                    "bytes=,0-,",
                ]), length == 0 ? [] : [0..<length]
            )
        case 10:
            return (
                random.pick([
                    "bytes=5-2", "items=0-1", "bytes=a-b", "bytes", "bytes=", "bytes=--5", "bytes=1-2-3", "0-5",
                    "bytes=+1-2", "bytes=0x1-", "bytes=1 -2", "bytes=-", "=", "bytes=0-1;2-3",
                ]), nil
            )
        default:
            guard length > 900 else {
                return ("bytes=0-0,5-5", length > 5 ? [0..<1, 5..<6] : length > 0 ? [0..<1] : [])
            }
            if random.chance(4) {
                return ("bytes=" + (0..<40).map { "\($0 * 20)-\($0 * 20 + 2)" }.joined(separator: ","), nil)
            }
            return ("bytes=600-609, 0-9,300-300", [600..<610, 0..<10, 300..<301])
        }
    }

    // MARK: - Framing

    private static let smuggled = "GET /.spool/health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    mutating func drawBody(_ random: inout SplitMix) {
        let text = Array((random.chance(2) ? Self.smuggled : String(repeating: "b", count: random.below(2000))).utf8)
        switch random.below(40) {
        case 0, 1:
            fields.append(("Content-Length", random.pick(["\(text.count)", "0\(text.count)"])))
            body = text
            expectContinue(&random)
        case 2, 3:
            guard version != "HTTP/1.0" else { return }
            fields.append(("Transfer-Encoding", random.pick(["chunked", "Chunked", "chunked\t"])))
            body = Self.chunked(text, &random)
            expectContinue(&random)
        case 4 where !isTame:
            let wrong = random.pick(["+5", "-1", "5,5", "0x5", "", "5 5", "99999999999999999999", "1e3", "٥"])
            fields.append(("Content-Length", wrong))
            body = text
            refusals.insert(400)
        case 5 where !isTame:
            fields += [("Content-Length", "5"), ("Content-Length", random.pick(["5", "6"]))]
            body = text
            refusals.insert(400)
        case 6 where !isTame:
            fields += [("Transfer-Encoding", "chunked"), ("Content-Length", "\(text.count)")]
            if random.chance(2) { fields.swapAt(fields.count - 1, fields.count - 2) }
            body = text
            refusals.insert(400)
        case 7 where !isTame:
            fields.append(
                (
                    "Transfer-Encoding",
                    random.pick([
                        "gzip, chunked", "xchunked", "identity", "chunked, chunked", "gzip", "", "\"chunked\"",
                        "chunked;q=1", "chunked,",
                    ])
                ))
            body = Self.chunked(text, &random)
            refusals.formUnion([501, 400])
        case 8 where !isTame:
            guard version != "HTTP/1.0" else { return }
            fields.append(("Transfer-Encoding", "chunked"))
            body = Array(
                random.pick([
                    "x\r\n", "-1\r\n\r\n", "5\nabcde\r\n", "5\r\nabcdeX", "5 \r\nabcde\r\n0\r\n\r\n", "\r\n",
                    "FFFFFFFFFFFFFFFFF\r\n", "0x5\r\nabcde\r\n",
                    "1\r\na\n0\r\n\r\n", "0\r\na\u{0}\r\n\r\n", "5;\u{0}\r\nabcde\r\n0\r\n\r\n", "0\r\na: b\n\r\n",
                    "5;" + String(repeating: "x", count: 5000),
                ]).utf8)
            breaks = true
        default: break
        }
    }

    private mutating func expectContinue(_ random: inout SplitMix) {
        guard random.chance(4) else { return }
        fields.append(("Expect", random.pick(["100-continue", "100-Continue"])))
        mayContinue = true
    }

    private static func chunked(_ text: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var rest = text[...]
        var body: [UInt8] = []
        while !rest.isEmpty {
            let piece = rest.prefix(1 + random.below(rest.count))
            rest = rest.dropFirst(piece.count)
            let size = String(piece.count, radix: 16, uppercase: random.chance(2))
            body +=
                Array(
                    (random.pick(["", "0", "000"]) + size + random.pick(["", ";a", ";a=b", ";a=\"b\""]) + "\r\n").utf8)
                + piece + [0x0D, 0x0A]
        }
        return body
            + Array(("0\r\n" + random.pick(["", "", "A: b\r\n", "Content-Length: 5\r\nHost: x\r\n"]) + "\r\n").utf8)
    }

    mutating func drawConnection(_ random: inout SplitMix) {
        var keeps = !isOld
        if random.chance(15) {
            let (text, effect) = random.pick(
                [
                    ("close", false), ("Close", false), ("keep-alive, close", false), ("x, close ,y", false),
                    ("keep-alive", true), ("upgrade", nil), ("closed", nil),
                    ("Range", nil), (", ,", nil), ("keep-alive;close", nil),
                ] as [(String, Bool?)])
            fields.append(("Connection", text))
            keeps = effect ?? keeps
        }
        closes = !keeps
    }

    // MARK: - What nobody may read

    mutating func spoil(_ random: inout SplitMix) {
        let line = random.pick([
            "X-Bad : a", " folded", "\tfolded", "no colon", ": a", "X Bad: a", "X-Bad: a\u{0}b", "X-Bad: a\rb",
            "X-Bad: a\u{1}b", "X-Bad: a\u{7F}", "X-Bäd: a", "X(Bad): a",
            "X-Bad: a\nX: b", "X-Bad: a\r", "\u{0}", "X-Bad\r: a", "X-Bad\u{B}: a", "\n",
        ])
        refusals.insert(400)
        spoiledLine = line
    }

    private var spoiledLine: String?

    // MARK: - The whole

    func request(_ random: inout SplitMix) -> HostileRequest {
        var text = random.chance(30) ? "\r\n\r\n" : ""
        text += method + " " + (isAbsolute ? "http://localhost:\(target.port)" : "") + path + " " + version + "\r\n"
        var lines = fields.map {
            $0 + random.pick([": ", ":", ":\t ", ": "]) + $1 + random.pick(["", "", "", " ", "\t"])
        }
        if let spoiledLine { lines.insert(spoiledLine, at: random.below(lines.count + 1)) }
        text += lines.map { $0 + "\r\n" }.joined() + "\r\n"
        var request = HostileRequest(bytes: Array(text.utf8) + body)
        request.expected = expected
        request.fate = breaks ? .breaks : !refusals.isEmpty || closes ? .ends : .goesOn
        if !refusals.isEmpty, breaks { request.expected.statuses.formUnion(refusals) }
        return request
    }

    private var expected: ExpectedResponse {
        var expected = ExpectedResponse(
            isHead: method == "HEAD" && refusals.isEmpty, isOld: isOld, mayContinue: mayContinue)
        if !refusals.isEmpty {
            expected.statuses = refusals
            expected.isOld = false
            return expected
        }
        if !hostRefusals.isEmpty {
            expected.statuses = hostRefusals
        } else if !tokenRefusals.isEmpty {
            expected.statuses = tokenRefusals
        } else if method == "OPTIONS" {
            // Of the origin, or of the owner's pages, which may say 405.
            expected.statuses =
                path.contains("/.spool") ? [204, 405] : target.isReverse && path != "*" ? [400, 404, 405] : [204]
        } else if method != "GET", method != "HEAD" {
            expected.statuses = routeRefusals.union([405]).subtracting([200])
            // The origin closes the connection on a method that it does not know.
            if target.isReverse, !["POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"].contains(method) {
                expected.statuses.formUnion([502, 504])
            }
        } else if !routeRefusals.isEmpty {
            expected.statuses = routeRefusals
        } else if isHealth {
            expected.content = .health
        } else if let media {
            expected.statuses = [result.status]
            expected.content = .media(media, ranges: result.ranges)
        } else {
            expected.statuses = [204]
        }
        return expected
    }
}
