import Foundation
import SpoolTesting

/// The header fields, conditions and ranges of a request.
extension AdversarialDraft {
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

    /// The `Last-Modified` date of the origin's media.
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
            // If there is a tag, an additional date is ignored (RFC 9110 §13.1.3).
            if random.chance(3) { fields.append(("If-Modified-Since", "Mon, 02 Nov 2020 10:00:00 GMT")) }
            if isHeld { result.status = 304 }
            isHeld = false
        case 2: fields.append(("If-None-Match", random.pick(["\"other\"", "\"a\", \"b\""])))
        case 5:
            // Two field lines form one list.
            fields += [("If-None-Match", "\"other\""), ("if-none-match", "W/" + media.tag)]
            if isHeld { result.status = 304 }
            isHeld = false
        case 3:
            fields.append(("If-Modified-Since", random.pick([Self.date, "Wed, 04 Nov 2020 10:00:00 GMT"])))
            if isHeld { result.status = 304 }
            isHeld = false
        case 4: fields.append(("If-Modified-Since", random.pick(["Mon, 02 Nov 2020 10:00:00 GMT", "x", ""])))
        default: break
        }
        drawRange(&random, media, isHeld: isHeld)
    }

    mutating func drawRange(_ random: inout SplitMix, _ media: AdversarialMedia, isHeld: Bool) {
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

    /// Returns a `Range` field and its ranges. The ranges are `nil` if the field must be ignored and all bytes are
    /// sent.
    static func range(_ random: inout SplitMix, _ length: Int64) -> (String, [Range<Int64>]?) {
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
}
