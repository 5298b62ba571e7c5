import ByteRanges
import Testing

@Suite("Ranges and counts as text")
struct WordsTests {
    @Test(
        "The text of a range contains its first and last byte",
        arguments: [
            (0..<1_048_576, "bytes 0–1,048,575"), (7..<8, "byte 7"), (5..<Int64.max, "bytes 5 to the end"),
            (3..<3, "no bytes"), (999..<1001, "bytes 999–1,000"),
        ] as [(Range<Int64>, String)])
    func ranges(range: Range<Int64>, text: String) { #expect(range.inWords == text) }

    @Test(
        "E518: the conversion of a floating-point number never fails",
        arguments: [
            (.nan, 0), (.infinity, .max), (-.infinity, .min), (1e300, .max), (-1e19, .min), (-0.9, 0), (2.9, 2),
            (0x1p63, .max), (-0x1p63, .min),
        ] as [(Double, Int64)])
    func saturating(value: Double, result: Int64) { #expect(Int64(saturating: value) == result) }

    @Test("Counts use the singular or plural form, and large numbers contain thousands separators")
    func counts() {
        #expect(1.counted("block") == "1 block")
        #expect(0.counted("block") == "0 blocks")
        #expect(1234.counted("block") == "1,234 blocks")
        #expect((-1_000_000).grouped == "-1,000,000" && 999.grouped == "999" && Int64.min.grouped.hasSuffix("775,808"))
    }
}
