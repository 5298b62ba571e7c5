import ByteRanges
import HTTPTypes
import Testing

@testable import HTTPRanges

/// Tests of numbers in header fields at and around the limits in `NumberLimits`.
@Suite struct NumberLimitTests {
    private static let limit = NumberLimits.byteOffset

    @Test("E98: a Content-Length up to 2^53 is accepted, and the reason for rejecting a larger value states the limit")
    func contentLength() {
        let largest = evaluate(makeResponse(200, ("Content-Length", "\(Self.limit)")), from: nil, end: nil)
        #expect(largest.accepted?.version.length == Self.limit)
        let nines = String(repeating: "9", count: 400)
        for text in ["\(Self.limit + 1)", "9223372036854710272", "9223372036854775808", nines] {
            for status in [200, 206] {
                let response = makeResponse(
                    status, ("Content-Length", text), ("Content-Range", "bytes 500-599/1000"))
                let refusal = evaluate(response).refusal
                #expect(refusal?.kind == .malformed)
                #expect(refusal?.reason.contains("Content-Length exceeds 9007199254740992 bytes") == true)
            }
            #expect(makeResponse(200, ("Content-Length", text)).headerFields.contentLength == nil)
        }
    }

    @Test("E98: a Content-Range up to 2^53 is accepted, and the reason for rejecting a larger range states the limit")
    func contentRange() {
        let last = Self.limit - 1
        let text = "bytes \(last - 99)-\(last)/\(Self.limit)"
        let accepted = evaluate(makeResponse(206, ("Content-Range", text)), from: last - 99, end: nil)
        #expect(accepted.accepted?.end == Self.limit)
        for text in [
            "bytes 500-599/\(Self.limit + 1)", "bytes 500-\(Self.limit)/*", "bytes 500-9223372036854775806/*",
            "bytes 500-\(String(repeating: "9", count: 400))/*",
        ] {
            #expect(ContentRange(parsing: text) == nil)
            let refusal = evaluate(makeResponse(206, ("Content-Range", text))).refusal
            #expect(refusal?.kind == .malformed)
            #expect(refusal?.reason.contains("Content-Range exceeds 9007199254740992 bytes") == true)
        }
        let tooLong = makeResponse(416, ("Content-Range", "bytes */\(Self.limit + 1)"))
        #expect(evaluate(tooLong, stored: stored()).isMalformed)
    }

    @Test(
        "E98: numbers in header fields at or beyond a limit are parsed to values within the limits", arguments: 0..<300)
    func borders(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func number() -> String {
            let centers: [Int64] = [0, 1 << 31, NumberLimits.seconds, Self.limit, 1 << 56, .max - 3]
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: return String(repeating: "9", count: .random(in: 15...60, using: &generator))
            case 1: return "-\(centers.randomElement(using: &generator) ?? 0)"
            case 2: return "18446744073709551616"
            case 3: return "00000000000000000000000\(Self.limit)"
            default:
                let center = centers.randomElement(using: &generator) ?? 0
                return "\(center + Int64.random(in: (center == 0 ? 0 : -3)...3, using: &generator))"
            }
        }
        let seconds = 0...NumberLimits.seconds
        let offsets = 0...Self.limit
        for _ in 0..<40 {
            if let range = ContentRange(parsing: "bytes \(number())-\(number())/\(number())") {
                #expect(range.range.map { offsets.contains($0.lowerBound) && offsets.contains($0.upperBound) } ?? true)
                #expect(range.length.map { offsets.contains($0) } ?? true)
            }
            let fields = fields([
                ("Content-Length", number()), ("Age", number()), ("Retry-After", number()),
                ("Cache-Control", "max-age=\(number()), s-maxage=\(number()), stale-if-error=\(number())"),
                ("Expires", "Fri, 31 Dec 9999 23:59:59 GMT"), ("Date", "Sat, 01 Jan 0000 00:00:00 GMT"),
            ])
            #expect(fields.contentLength.map { offsets.contains($0) } ?? true)
            if let header = RangeHeader(parsing: "bytes=\(number())-\(number()),-\(number()),\(number())-") {
                for length in [0, 1, 1000, Self.limit] {
                    guard case .partial(let ranges) = header.resolve(length: length) else { continue }
                    #expect(ranges.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= length && !$0.isEmpty })
                }
            }
            for now in [0, 1_700_000_000, -NumberLimits.seconds, NumberLimits.seconds] {
                let freshness = Freshness(fields: fields, requestTime: now, responseTime: now, shared: true)
                #expect(seconds.contains(freshness.lifetime) && seconds.contains(freshness.initialAge))
                #expect(seconds.contains(freshness.age(at: NumberLimits.seconds)))
            }
            let control = CacheControl(fields: fields)
            let ages = [control.maxAge, control.sharedMaxAge, control.staleIfError]
            #expect(ages.allSatisfy { seconds.contains($0 ?? 0) })
            if let retry = fields[.retryAfter].flatMap({ RetryAfter(parsing: $0) }) {
                #expect(retry.delay(now: 0) <= .seconds(NumberLimits.seconds))
            }
        }
    }
}
