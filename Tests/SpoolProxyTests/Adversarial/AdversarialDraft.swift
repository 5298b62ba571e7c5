import Foundation
import SpoolTesting

/// A random request that is being created.
struct AdversarialDraft {
    let target: AdversarialTarget
    var method = "GET"
    var path = ""
    var version = "HTTP/1.1"
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    /// The expected statuses if the request is malformed; empty if it is well-formed.
    var refusals: Set<Int> = []
    var hostRefusals: Set<Int> = []
    var tokenRefusals: Set<Int> = []
    var routeRefusals: Set<Int> = []
    var media: AdversarialMedia?
    var isHealth = false
    var closes = false
    var breaks = false
    var mayContinue = false
    var result: (status: Int, ranges: [Range<Int64>]) = (200, [])

    init(target: AdversarialTarget, isTame: Bool) {
        self.target = target
        self.isTame = isTame
    }

    /// Whether the request is well-formed, even if it is rejected.
    let isTame: Bool

    // MARK: - Request line

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

    var origin: String { target.isReverse ? "" : "/http/127.0.0.1:\(target.originPort)" }

    mutating func drawTarget(_ random: inout SplitMix) {
        switch random.below(isTame ? 24 : 25) {
        case 0..<17:
            // Large media is rarely chosen.
            let media = AdversarialMedia.all[random.chance(6) ? random.below(6) : random.below(4)]
            (self.media, path) = (media, origin + media.path)
        case 17: (path, isHealth) = ("/.spool/health", true)
        case 18:
            (path, routeRefusals) = (origin + "/missing-\(random.below(50))", [404])
        case 19:
            // The URL has not been requested before.
            (path, routeRefusals) = (origin + "/media-2.mp4?\(random.next())", [200])
        case 20 where !target.isReverse:
            path = random.pick([
                "/", "/favicon.ico", "/ftp/a/b", "/http/", "/http", "//", "/http/127.0.0.1:99999/a",
                "/http/a@127.0.0.1/a",
                "/http/a%20b/c", "/http/[::1/a", "/http/:80/a", "/file/etc/passwd", "/https", "/?", "/http//a",
                "/.spool", "/.spool/none", "/.spoolx",
            ])
            // The path of the status page ends with a slash.
            routeRefusals = path == "/.spool" ? [308] : [400, 404, 200]
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
        case 23: drawSpelling(&random)
        case 24:
            path = random.pick([
                "*", "http://", "ftp://a/", "/a b", "/a#b", "/\u{1}", "/\u{7F}", "/é", "a", "?", "http://a@b/",
                "https://a/", "/" + String(repeating: "x", count: 33_000),
            ])
            // `OPTIONS *` is valid. `CONNECT` may also be rejected for its method.
            if path == "*", method == "OPTIONS" { return }
            refusals.formUnion([400, 414, 431])
            if method == "CONNECT" { refusals.formUnion([400, 401, 404, 405, 421]); breaks = true }
        default: (self.media, path) = (AdversarialMedia.all[2], origin + AdversarialMedia.all[2].path)
        }
        if refusals.isEmpty, path.hasPrefix("/"), random.chance(12) {
            isAbsolute = true
        }
    }

    var isAbsolute = false

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

    var isOld = false

    var spoiledLine: String?

    // MARK: - Complete request

    func request(_ random: inout SplitMix) -> AdversarialRequest {
        var text = random.chance(30) ? "\r\n\r\n" : ""
        text += method + " " + (isAbsolute ? "http://localhost:\(target.port)" : "") + path + " " + version + "\r\n"
        var lines = fields.map {
            $0 + random.pick([": ", ":", ":\t ", ": "]) + $1 + random.pick(["", "", "", " ", "\t"])
        }
        if let spoiledLine { lines.insert(spoiledLine, at: random.below(lines.count + 1)) }
        text += lines.map { $0 + "\r\n" }.joined() + "\r\n"
        var request = AdversarialRequest(bytes: Array(text.utf8) + body)
        request.expected = expected
        request.fate = breaks ? .breaks : !refusals.isEmpty || closes ? .ends : .shouldContinue
        // The response to bytes that are not a chunk is 400, unless another response has started.
        if breaks { request.expected.statuses.formUnion(refusals.union([400])) }
        return request
    }

    private var isHeadForOneUser: Bool {
        target.isReverse && method == "HEAD" && fields.contains { $0.0 == "Cookie" }
    }

    var expected: ExpectedResponse {
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
            // The response is from the origin, or from the status pages, which may return 405.
            expected.statuses =
                path.contains("/.spool") ? [204, 405] : target.isReverse && path != "*" ? [400, 404, 405] : [204]
        } else if method != "GET", method != "HEAD" {
            expected.statuses = routeRefusals.union([405]).subtracting([200])
            // The origin closes the connection after an unknown method.
            if target.isReverse, !["POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"].contains(method) {
                expected.statuses.formUnion([502, 504])
            }
        } else if !routeRefusals.isEmpty {
            expected.statuses = routeRefusals
        } else if isHealth {
            expected.content = .health
        } else if let media {
            expected.statuses = [result.status]
            // The response to a request with a cookie is stored separately. The request therefore reaches the origin,
            // which supports only simple conditions.
            if isHeadForOneUser { expected.statuses.insert(200) }
            expected.content = .media(media, ranges: result.ranges)
        } else {
            expected.statuses = [204]
        }
        return expected
    }
}
