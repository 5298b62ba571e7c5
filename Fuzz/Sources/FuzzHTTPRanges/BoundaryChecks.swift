import HTTPRanges
import HTTPTypes

/// Checks of header fields with numbers at the limits of their ranges, such as 2^53 bytes or 10,000 years.
///
/// The input selects the numbers, because random text rarely contains them. Parsers may reject a number, but an
/// accepted number must not cause an overflow later.
enum BoundaryChecks {
    private static let seconds = 10_000 * 31_556_952
    private static let borders: [Int128] = [
        0, 600, 1000, 65_536, 1 << 31, 1 << 32, 1 << 53, 1 << 56, Int128(Int64.max / 65_536 * 65_536),
        Int128(Int64.max), Int128(UInt64.max), Int128(seconds), 253_402_300_800, 784_111_777, 1_700_000_000,
    ]

    /// The numbers that an input selects. Each number is derived from two bytes of the input. When the input is used
    /// up, all further numbers are 0.
    private struct Numbers {
        var bytes: ArraySlice<UInt8>

        mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }

        /// Returns a number from 8 below a limit to 7 above it. One in four is negative.
        mutating func next() -> Int128 {
            let (selector, distance) = (byte(), byte())
            let number = borders[Int(selector % 16) % borders.count] + Int128(distance % 16) - 8
            return selector >= 192 ? -number : number
        }

        /// Returns the next number, or the nearest one that the type can represent.
        mutating func clock() -> Int64 { Int64(clamping: next()) }

        mutating func date() -> String { HTTPDate(secondsSince1970: clock()).text }
    }

    static func run(_ bytes: some Collection<UInt8>) {
        var numbers = Numbers(bytes: Array(bytes)[...])
        let flags = (numbers.byte(), numbers.byte())
        let status = ["200", "206", "304", "416", "503"][Int(numbers.byte() % 5)]
        let range = "\(numbers.next())-\(numbers.next())"
        let length = "\(numbers.next())"
        let control = [
            "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "max-stale", "min-fresh",
        ].map { "\($0)=\(numbers.next())" }.joined(separator: ", ")
        let delay = "\(numbers.next())"
        let age = "\(numbers.next())"
        let dates = [numbers.date(), numbers.date(), numbers.date()]
        let values = [
            "Content-Range": status == "416" ? "bytes */\(length)" : "bytes \(range)/\(length)",
            "Content-Length": "\(numbers.next())", "Cache-Control": control, "Age": age, "Retry-After": delay,
            "Expires": dates[0], "Date": dates[1], "Last-Modified": dates[2], "ETag": "\"a\"",
        ]
        for text in ["bytes=\(range)", "bytes=\(length)-", "bytes=-\(length)", delay] + values.values {
            ParserChecks.run(text)
        }
        let lines = values.map { "\($0.key): \($0.value)" }.sorted()
        // A line feed separates the flags from the fields, so the flags must not contain one.
        let first = Array(status.utf8) + [flags.0, flags.1].map { $0 == 10 ? 11 : $0 }
        EvaluationChecks.run(first + Array(("\n" + lines.joined(separator: "\n")).utf8))
        check(values, &numbers)
    }

    private static func check(_ values: [String: String], _ numbers: inout Numbers) {
        var fields = HTTPFields()
        for (name, value) in values { if let name = HTTPField.Name(name) { fields[name] = value } }
        let (asked, answered) = (numbers.clock(), numbers.clock())
        for isShared in [false, true] {
            let freshness = Freshness(fields: fields, requestTime: asked, responseTime: answered, shared: isShared)
            precondition((0...Int64(seconds)).contains(freshness.lifetime))
            for now in [answered, asked, numbers.clock(), .min, .max] {
                precondition(freshness.age(at: now) >= 0)
                _ = freshness.isFresh(at: now)
            }
        }
        if let text = values["Retry-After"], let delay = RetryAfter(parsing: text) {
            precondition(delay.delay(now: answered) >= .zero)
        }
        for text in [values["Date"], values["Expires"]].compactMap(\.self) {
            guard let delay = RetryAfter(parsing: text) else { continue }
            precondition(delay.delay(now: asked) >= .zero)
        }
    }
}
