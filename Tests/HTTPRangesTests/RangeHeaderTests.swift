import HTTPRanges
import HTTPTypes
import Testing

@Suite struct RangeHeaderTests {
    @Test(
        "Valid Range headers are parsed (9110 §14.1.1)",
        arguments: [
            ("bytes=0-99", [.bounded(first: 0, last: 99)]), ("Bytes=5-", [.from(5)]), ("BYTES=-500", [.suffix(500)]),
            ("bytes=0-0,-1", [.bounded(first: 0, last: 0), .suffix(1)]),
            ("bytes= 0-1 ,\t, 4-5,,", [.bounded(first: 0, last: 1), .bounded(first: 4, last: 5)]),
            ("bytes=007-008", [.bounded(first: 7, last: 8)]),
            ("bytes=0-99999999999999999999", [.bounded(first: 0, last: 1 << 53)]),
        ] as [(String, [RangeHeader.Specifier])])
    func wellFormed(text: String, expected: [RangeHeader.Specifier]) {
        #expect(RangeHeader(parsing: text)?.specifiers == expected)
    }

    @Test(
        "A17: Range headers that are malformed or use a unit other than bytes are ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "items=0-1", "bytes=1", "bytes=1-2-3",
            "bytes=+1-2", "bytes=1- 2", "bytes=1 -2", "bytes=--1", "bytes=0x1-2", "bytes=1.0-2", "bytes=0-1;2-3",
            "bytes 0-1", "bytes==0-1", "=0-1", "bytes=0-1,x", "bytes=0-1,5-2", "bytes=١-٢", "bytes=0-1\0",
            "bytes=\(String(repeating: ",", count: 10_000))",
        ])
    func malformed(text: String) {
        #expect(RangeHeader(parsing: text) == nil)
    }

    @Test(
        "A17: positions beyond Int64 are unsatisfiable or clipped, and do not cause a crash",
        arguments: [
            ("bytes=9223372036854775807-", .unsatisfiable), ("bytes=9223372036854775808-", .unsatisfiable),
            ("bytes=-9223372036854775808", .partial([0..<1000])),
            ("bytes=0-9223372036854775807", .partial([0..<1000])),
            ("bytes=9223372036854775807-9223372036854775807", .unsatisfiable),
            ("bytes=99999999999999999999999-99999999999999999999999", .unsatisfiable),
        ] as [(String, RangeHeader.Resolution)])
    func extremes(text: String, expected: RangeHeader.Resolution) throws {
        #expect(try #require(RangeHeader(parsing: text)).resolve(length: 1000) == expected)
    }

    @Test("A17: in a resource of the maximum length, positions up to Int64.max are clipped or unsatisfiable")
    func extremeLength() throws {
        let first = try #require(RangeHeader(parsing: "bytes=9007199254740991-9223372036854775807"))
        #expect(first.resolve(length: 1 << 53) == .partial([(1 << 53) - 1..<1 << 53]))
        let end = try #require(RangeHeader(parsing: "bytes=9223372036854775807-"))
        #expect(end.resolve(length: 1 << 53) == .unsatisfiable)
        let suffix = try #require(RangeHeader(parsing: "bytes=-9223372036854775807"))
        #expect(suffix.resolve(length: 1 << 53) == .partial([0..<1 << 53]))
    }

    @Test(
        "A13, A14: suffixes, and ranges at or past the end, are resolved as in 9110 §14.1.2",
        arguments: [
            ("bytes=-500", 1000, .partial([500..<1000])), ("bytes=-500", 300, .partial([0..<300])),
            ("bytes=-0", 1000, .unsatisfiable), ("bytes=-0", 0, .unsatisfiable), ("bytes=-5", 0, .whole),
            ("bytes=0-", 0, .unsatisfiable), ("bytes=0-0", 0, .unsatisfiable), ("bytes=0-0", 1, .partial([0..<1])),
            ("bytes=900-2000", 1000, .partial([900..<1000])), ("bytes=999-", 1000, .partial([999..<1000])),
            ("bytes=1000-", 1000, .unsatisfiable), ("bytes=1000-1001", 1000, .unsatisfiable),
            ("bytes=1000-,0-1", 1000, .partial([0..<2])), ("bytes=-0,0-1", 1000, .partial([0..<2])),
            ("bytes=0-", -5, .unsatisfiable),
        ] as [(String, Int64, RangeHeader.Resolution)])
    func resolution(text: String, length: Int64, expected: RangeHeader.Resolution) throws {
        #expect(try #require(RangeHeader(parsing: text)).resolve(length: length) == expected)
    }

    @Test(
        "A15: ranges keep their order, overlapping or adjacent ranges merge, and too many select the whole resource",
        arguments: [
            ("bytes=800-899,0-99", .partial([800..<900, 0..<100])),
            ("bytes=0-99,50-149,200-", .partial([0..<150, 200..<1000])),
            ("bytes=200-,50-149,0-99", .partial([0..<150, 200..<1000])),
            ("bytes=0-99,100-199", .partial([0..<200])), ("bytes=0-,0-,0-", .partial([0..<1000])),
            ("bytes=0-1,4-5,8-9,12-13", .partial([0..<2, 4..<6, 8..<10, 12..<14])),
            ("bytes=0-1,4-5,8-9,12-13,16-17", .whole),
            ("bytes=0-1,4-5,8-9,12-13,16-17,0-20", .partial([0..<21])),
        ] as [(String, RangeHeader.Resolution)])
    func several(text: String, expected: RangeHeader.Resolution) throws {
        #expect(try #require(RangeHeader(parsing: text)).resolve(length: 1000, limit: 4) == expected)
    }

    @Test("For random Range headers, the resolved ranges contain exactly the bytes that the specifiers select")
    func againstModel() throws {
        var generator = SeededGenerator(seed: 14)
        for _ in 0..<3000 {
            let length = Int64.random(in: 0...12, using: &generator)
            let specifiers = (0..<Int.random(in: 1...5, using: &generator)).map { _ -> RangeHeader.Specifier in
                let first = Int64.random(in: 0...14, using: &generator)
                switch Int.random(in: 0...2, using: &generator) {
                case 0: return .from(first)
                case 1: return .suffix(first)
                default: return .bounded(first: first, last: first + Int64.random(in: 0...4, using: &generator))
                }
            }
            let text = RangeHeader(specifiers: specifiers).text
            let header = try #require(RangeHeader(parsing: text))
            #expect(header.specifiers == specifiers)
            let wanted = Set(
                (0..<length).filter { byte in
                    specifiers.contains { specifier in
                        switch specifier {
                        case .from(let first): byte >= first
                        case .suffix(let count): byte >= length - count
                        case .bounded(let first, let last): byte >= first && byte <= last
                        }
                    }
                })
            switch header.resolve(length: length, limit: 5) {
            case .partial(let ranges):
                #expect(Set(ranges.joined()) == wanted, "\(text) of \(length)")
                #expect(ranges.reduce(0) { $0 + $1.count } == wanted.count, "\(text) of \(length) overlaps")
                #expect(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length })
            case .unsatisfiable: #expect(wanted.isEmpty, "\(text) of \(length)")
            case .whole: #expect(length == 0, "\(text) of \(length)")
            }
        }
    }

    @Test("Resolving range specifiers that no header can contain does not cause a crash")
    func oddSpecifiers() {
        let header = RangeHeader(specifiers: [
            .from(-1), .suffix(-1), .suffix(.min), .bounded(first: -5, last: 5), .bounded(first: 9, last: 3),
            .bounded(first: .min, last: .max),
        ])
        #expect(header.resolve(length: .max) == .unsatisfiable)
        #expect(RangeHeader(specifiers: []).resolve(length: 5) == .unsatisfiable)
        #expect(RangeHeader(specifiers: [.from(0)]).resolve(length: 5, limit: .min) == .partial([0..<5]))
    }

    @Test("Half-open ranges are written as closed ranges in the Range field")
    func texts() {
        #expect(RangeHeader.text(for: 0..<100) == "bytes=0-99")
        #expect(RangeHeader.text(for: 0 ..< .max) == "bytes=0-9223372036854775806")
        #expect(RangeHeader.text(from: 100) == "bytes=100-")
        #expect(RangeHeader.text(for: 5..<5) == "bytes=5-5")
        #expect(RangeHeader.text(for: -5 ..< -3) == "bytes=0-0")
        #expect(RangeHeader.text(for: .min ..< .min) == "bytes=0-0")
        #expect(RangeHeader.text(from: -1) == "bytes=0-")
    }

    @Test("A18: the name of the Range field is case-insensitive, and two Range fields are ignored")
    func requestFields() {
        #expect(RangeHeader(fields: fields([("RANGE", "bytes=0-1")]))?.specifiers == [.bounded(first: 0, last: 1)])
        #expect(RangeHeader(fields: fields([("Range", "bytes=0-1"), ("range", "bytes=0-1")])) == nil)
        #expect(RangeHeader(fields: [:]) == nil)
    }
}
