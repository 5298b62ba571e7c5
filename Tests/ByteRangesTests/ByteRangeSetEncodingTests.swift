import Foundation
import Testing

@testable import ByteRanges

@Suite(.timeLimit(.minutes(10)))
struct ByteRangeSetEncodingTests {
    static let largest: ByteRangeSet = [0..<1, Int64.max - 1..<Int64.max]

    // MARK: Compact binary

    @Test("The compact form lists the number of ranges, and then the distance and length of each, as varints")
    func form() {
        #expect(ByteRangeSet().encoded() == [0])
        #expect(ByteRangeSet(0..<127).encoded() == [1, 0, 127])
        #expect(ByteRangeSet([0..<128, 130..<131]).encoded() == [2, 0, 0x80, 1, 2, 1])
    }

    @Test("Decoding restores every small encoded set, and encoded sets with offsets up to Int64.max")
    func roundTrip() throws {
        for model in ByteRangeSetExhaustiveTests.models {
            let set = ByteRangeSet(model.ranges)
            #expect(try ByteRangeSet(decoding: set.encoded()) == set)
        }
        for set in [Self.largest, ByteRangeSet(0..<Int64.max), ByteRangeSet(Int64.max - 1..<Int64.max)] {
            #expect(try ByteRangeSet(decoding: set.encoded()) == set)
        }
        let many = ByteRangeSet((0..<5_000).map { Int64($0) * 200_000..<Int64($0) * 200_000 + 65_536 })
        let decoded = try ByteRangeSet(decoding: many.encoded())
        #expect(decoded == many)
        #expect(decoded.leaves.violation == nil)
    }

    @Test(
        "Decoding malformed bytes throws an error that contains the cause",
        arguments: [
            ([], .truncated),
            ([1], .truncated),
            ([1, 0], .truncated),
            ([1, 0, 0x80], .truncated),
            ([2, 0, 1], .truncated),
            ([0, 0], .trailingBytes),
            ([1, 0, 1, 9], .trailingBytes),
            ([1, 5, 0], .emptyRange),
            ([2, 0, 1, 0, 1], .adjacentRanges),
            ([0x80, 0], .malformedInteger),
            ([1, 0x81, 0x80, 0, 1], .malformedInteger),
            ([1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], .malformedInteger),
            ([1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], .offsetOverflow),
            ([2, 0, 9, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1], .offsetOverflow),
            // The count is too large for any memory, and no ranges follow it.
            ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], .truncated),
        ] as [([UInt8], ByteRangeSetDecodingError.Code)]
    )
    func malformed(bytes: [UInt8], code: ByteRangeSetDecodingError.Code) {
        let error = #expect(throws: ByteRangeSetDecodingError.self) { try ByteRangeSet(decoding: bytes) }
        #expect(error?.code == code)
        #expect(error?.byteCount == bytes.count)
    }

    @Test("The description of a decoding error contains the cause and the position")
    func sentence() {
        let error = #expect(throws: ByteRangeSetDecodingError.self) { try ByteRangeSet(decoding: [1, 5, 0]) }
        #expect(error?.description == "the encoded byte ranges are malformed: a range is empty, at byte 1 of 3")
    }

    @Test("Decoding a truncated encoding throws an error")
    func cut() {
        for set: ByteRangeSet in [[0..<300, 1_000..<70_000, 80_000..<80_001], Self.largest] {
            let bytes = set.encoded()
            for length in bytes.indices {
                #expect(throws: ByteRangeSetDecodingError.self) { try ByteRangeSet(decoding: Array(bytes[..<length])) }
            }
        }
    }

    @Test("Random and modified bytes are either rejected or equal to the encoding of the decoded set", arguments: 1...4)
    func anything(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var decoded = 0
        for _ in 0..<5_000 {
            var bytes: [UInt8]
            if Bool.random(using: &random) {
                bytes = Self.largest.encoded()
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            } else {
                let length = Int.random(in: 0...9, using: &random)
                bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
                if !bytes.isEmpty { bytes[0] %= 4 }
            }
            guard let set = try? ByteRangeSet(decoding: bytes) else { continue }
            decoded += 1
            guard
                same(set.leaves.violation, nil, "\(bytes)"),
                same(set.encoded(), bytes, "encoding of \(set)")
            else { return }
        }
        #expect(decoded > 10)
        #expect(decoded < 4_000)
    }

    // MARK: Codable

    @Test("In JSON, a set is an array of pairs, each with the bounds of a half-open range")
    func json() throws {
        let set: ByteRangeSet = [0..<10, 20..<30]
        #expect(String(decoding: try JSONEncoder().encode(set), as: UTF8.self) == "[[0,10],[20,30]]")
        for set in [set, [], Self.largest, ByteRangeSet(0..<Int64.max)] {
            #expect(try JSONDecoder().decode(ByteRangeSet.self, from: JSONEncoder().encode(set)) == set)
        }
    }

    @Test(
        "JSON that is not the canonical form of a set is rejected",
        arguments: [
            "[[5,5]]", "[[5,4]]", "[[-1,4]]", "[[0,5],[5,6]]", "[[0,5],[3,6]]", "[[10,20],[0,5]]", "[[0]]", "[0,5]",
            "{}", "[[0,9223372036854775808]]", "[[0,5],null]",
        ]
    )
    func badJSON(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ByteRangeSet.self, from: Data(text.utf8))
        }
    }
}
