import Foundation
import SpoolTesting

/// The body of a request, its connection options, and malformed lines.
extension AdversarialDraft {
    static let smuggled = "GET /.spool/health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    mutating func drawBody(_ random: inout SplitMix) {
        if target.isReverse, refusals.isEmpty, ["POST", "PUT", "DELETE", "PATCH"].contains(method), random.chance(2) {
            return drawPassedBody(&random)
        }
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
        case 9 where !isTame:
            fields.append(
                random.pick([
                    ("Transfer-Encoding ", "chunked"), ("Content-Length ", "5"), ("Transfer-Encoding\t", "chunked"),
                    ("Content-Length", "5, 5"), (" Content-Length", "5"), ("Content-Length\r\n", "5"),
                    ("Content-Length", "5\r"), ("Transfer-Encoding", "chunked\r\n gzip"), ("\u{0}Content-Length", "5"),
                ]))
            body = text
            refusals.insert(400)
        case 10 where !isTame:
            fields += [("Transfer-Encoding", "chunked"), ("transfer-encoding", random.pick(["chunked", "identity"]))]
            body = text
            refusals.formUnion([501, 400])
        case 11:
            // These names resemble those of the framing fields, but have no meaning.
            fields.append(
                random.pick([("Content_Length", "5"), ("X-Content-Length", "5"), ("Transfer-Encodin", "chunked")]))
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

    mutating func expectContinue(_ random: inout SplitMix) {
        guard random.chance(4) else { return }
        fields.append(("Expect", random.pick(["100-continue", "100-Continue"])))
        mayContinue = true
    }

    static func chunked(_ text: [UInt8], _ random: inout SplitMix) -> [UInt8] {
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

    // MARK: - Malformed lines

    mutating func spoil(_ random: inout SplitMix) {
        let line = random.pick([
            "X-Bad : a", " folded", "\tfolded", "no colon", ": a", "X Bad: a", "X-Bad: a\u{0}b", "X-Bad: a\rb",
            "X-Bad: a\u{1}b", "X-Bad: a\u{7F}", "X-Bäd: a", "X(Bad): a",
            "X-Bad: a\nX: b", "X-Bad: a\r", "\u{0}", "X-Bad\r: a", "X-Bad\u{B}: a", "\n",
        ])
        refusals.insert(400)
        spoiledLine = line
    }
}
