import HTTPRanges
import Testing

@Suite struct ContentRangeTests {
    @Test(
        "The three forms of Content-Range are parsed and written (9110 §14.4)",
        arguments: [
            ("bytes 0-99/1000", 0..<100, 1000), ("bytes 0-99/*", 0..<100, nil), ("bytes */1000", nil, 1000),
            ("bytes */0", nil, 0), ("bytes 999-999/1000", 999..<1000, 1000),
            ("bytes 0-9007199254740991/9007199254740992", 0..<1 << 53, 1 << 53),
        ] as [(String, Range<Int64>?, Int64?)])
    func forms(text: String, range: Range<Int64>?, length: Int64?) throws {
        let parsed = try #require(ContentRange(parsing: text))
        #expect(parsed.range == range)
        #expect(parsed.length == length)
        #expect(parsed == ContentRange(range: range, length: length))
        #expect(parsed.text == text)
    }

    @Test("A18: the unit in Content-Range is case-insensitive, and extra spaces are ignored")
    func lenient() {
        #expect(ContentRange(parsing: " BYTES  0-99/1000 ")?.text == "bytes 0-99/1000")
    }

    @Test(
        "A17: a malformed, contradictory or overflowing Content-Range is parsed as nil",
        arguments: [
            "", "bytes", "bytes ", "bytes 0-99", "bytes 0-99/", "bytes */*", "bytes /1000", "bytes 5-2/1000",
            "bytes 0-1000/1000", "bytes 0-0/0", "bytes -1-5/1000", "bytes 0-99/-1", "bytes a-b/c", "items 0-1/2",
            "bytes=0-99/1000", "bytes 0-99/1000, bytes 0-99/1000", "bytes 0-9223372036854775807/*",
            "bytes 0-9223372036854775808/*", "bytes 0-1/9223372036854775808",
            "bytes 99999999999999999999-99999999999999999999/*", "bytes 0 - 99/1000", "bytes 0-99/1000/1",
        ])
    func malformed(text: String) {
        #expect(ContentRange(parsing: text) == nil)
    }

    @Test("A range or length that Content-Range cannot express is omitted")
    func impossible() {
        #expect(ContentRange(range: 5..<5, length: 10).text == "bytes */10")
        #expect(ContentRange(range: -5..<5, length: -1) == ContentRange(range: nil, length: nil))
        #expect(ContentRange(parsing: ContentRange(range: nil, length: nil).text) == nil)
    }
}

@Suite struct MultipartByteRangesTests {
    @Test("A15: a multipart body with two parts has the framing defined in 9110 §14.6 and the computed length")
    func twoParts() {
        let content = "0123456789"
        let multipart = MultipartByteRanges(
            ranges: [0..<2, 7..<10], length: 10, partContentType: "audio/mpeg", boundary: "B-1_x")
        var body = ""
        for (index, range) in multipart.ranges.enumerated() {
            body += multipart.head(ofPart: index)
            body += String(content.dropFirst(Int(range.lowerBound)).prefix(range.count))
        }
        body += multipart.closing
        let expected = """
            --B-1_x\r
            Content-Type: audio/mpeg\r
            Content-Range: bytes 0-1/10\r
            \r
            01\r
            --B-1_x\r
            Content-Type: audio/mpeg\r
            Content-Range: bytes 7-9/10\r
            \r
            789\r
            --B-1_x--\r

            """
        #expect(body == expected)
        #expect(multipart.contentLength == Int64(body.utf8.count))
        #expect(multipart.contentType == "multipart/byteranges; boundary=B-1_x")
    }

    @Test("Invalid boundaries, content types and part numbers neither break the framing nor cause a crash")
    func hostile() {
        let multipart = MultipartByteRanges(
            ranges: [0 ..< .max, 0 ..< .max], length: nil, partContentType: "a/b\r\nSet-Cookie: x",
            boundary: "\r\n\"; ")
        #expect(multipart.contentLength == nil)
        #expect(multipart.boundary == "spool-byteranges")
        #expect(!multipart.head(ofPart: 1).contains("\r\nSet-Cookie"))
        #expect(multipart.head(ofPart: 2).isEmpty)
        #expect(multipart.head(ofPart: -1).isEmpty)
    }
}
