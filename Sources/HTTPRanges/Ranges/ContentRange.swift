import ByteRanges

/// The bytes that a response contains, and the length of the resource (`Content-Range`, RFC 9110 §14.4).
///
/// There are three forms: `bytes 0-99/1000`, `bytes 0-99/*` for an unknown length, and `bytes */1000` for the length in
/// a 416. In the header, the end is inclusive (`0-99`), and in ``range`` it is exclusive (`0..<100`).
package struct ContentRange: Sendable, Hashable {
    /// The range of the bytes in the body, never empty; `nil` for `bytes */1000`.
    package let range: Range<Int64>?
    /// The length of the whole resource; `nil` for `bytes 0-99/*`.
    package let length: Int64?

    /// Whether the body contains the whole resource.
    package var containsAllBytes: Bool { range?.lowerBound == 0 && range?.upperBound == length }

    /// Creates a header for `range` of a resource of `length` bytes, as a server sends it.
    ///
    /// An empty range, or one that starts below 0, becomes `nil`, and so does a negative length.
    package init(range: Range<Int64>?, length: Int64?) {
        self.range = range.flatMap { $0.isEmpty || $0.lowerBound < 0 ? nil : $0 }
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
    }

    /// Parses the value of a header.
    ///
    /// Returns `nil` in these cases:
    /// - The value is malformed, uses a unit other than bytes, or contains neither a range nor a length.
    /// - The range ends before it starts, or after the length.
    /// - A number is larger than 2^53.
    package init?(parsing text: String) {
        // The caller needs to know only that the value can't be used.
        guard let range = try? ContentRange(checking: text) else { return nil }
        self = range
    }

    /// Parses the value of a header like ``init(parsing:)``, but reports numbers that are too large.
    ///
    /// - Throws: ``FieldText/OffsetTooLarge`` if a number is larger than 2^53.
    init?(checking text: String) throws(FieldText.OffsetTooLarge) {
        let value = FieldText.trimmed(text[...]).utf8
        guard let space = value.firstIndex(of: UInt8(ascii: " ")),
            FieldText.equalIgnoringCase(value[..<space], "bytes".utf8),
            let slash = value[space...].firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let rangeText = FieldText.trimmed(Substring(value[space..<slash])).utf8
        let lengthText = value[value.index(after: slash)...]

        let unknown = "*".utf8
        let isLengthUnknown = lengthText.elementsEqual(unknown)
        let length = try isLengthUnknown ? nil : FieldText.offset(lengthText)
        if length == nil, !isLengthUnknown { return nil }
        if rangeText.elementsEqual(unknown) {
            guard length != nil else { return nil }
            self.range = nil
        } else {
            guard let dash = rangeText.firstIndex(of: UInt8(ascii: "-")),
                let first = try FieldText.offset(rangeText[..<dash]),
                let last = try FieldText.offset(rangeText[rangeText.index(after: dash)...]),
                first <= last, length.map({ last < $0 }) ?? true
            else { return nil }
            guard last < NumberLimits.byteOffset else { throw FieldText.OffsetTooLarge() }
            self.range = first..<(last + 1)
        }
        self.length = length
    }

    /// Returns the first offset and the length in a malformed value.
    ///
    /// The unit and the length may be missing, the unit may be followed by a different separator, and there may be
    /// extra white space. The last offset may equal the length.
    ///
    /// Returns `nil` if the value has any other form, or if a number is larger than 2^53.
    static func startAndLength(inMalformed text: String) -> (start: Int64, length: Int64?)? {
        var rest = Substring(text.lowercased())
        func skip(_ characters: String) { rest = rest.drop { characters.contains($0) } }
        func number() -> Int64? {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest.dropFirst(digits.count)
            return FieldText.digits(digits.utf8, limit: NumberLimits.byteOffset + 1).flatMap {
                $0 <= NumberLimits.byteOffset ? $0 : nil
            }
        }
        skip(" \t")
        if rest.hasPrefix("bytes") { rest = rest.dropFirst("bytes".count) }
        skip(" \t=:")
        guard let start = number() else { return nil }
        skip(" \t")
        guard rest.first == "-" else { return nil }
        rest = rest.dropFirst()
        skip(" \t")
        guard let last = number(), last >= start else { return nil }
        skip(" \t")
        guard rest.first == "/" else { return rest.isEmpty ? (start, nil) : nil }
        rest = rest.dropFirst()
        skip(" \t")
        if rest.first == "*" || rest.isEmpty { return (start, nil) }
        guard let length = number(), length >= last else { return nil }
        skip(" \t")
        return rest.isEmpty ? (start, length) : nil
    }

    /// The value of the header, for example `bytes 0-99/1000`. If there is neither a range nor a length, the value is
    /// `bytes */*`, which is invalid and must not be sent.
    package var text: String {
        let rangeText = range.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*"
        return "bytes \(rangeText)/\(length.map { "\($0)" } ?? "*")"
    }
}

/// The framing that combines several ranges of one resource into one response, `multipart/byteranges` (RFC 9110 §14.6).
///
/// This type returns the text around the bytes and the total length, but does not access the bytes. For each range, a
/// server sends ``head(ofPart:)`` and the bytes of the range. At the end, it sends ``closing``.
package struct MultipartByteRanges: Sendable, Hashable {
    /// The ranges in the order in which they are sent, each non-empty and within `length`, as
    /// ``RangeHeader/resolve(length:limit:)`` returns them.
    package let ranges: [Range<Int64>]
    /// The length of the whole resource; `nil` if unknown.
    package let length: Int64?
    /// The type of the resource, for the headers of each part; omitted if `nil`.
    package let partContentType: String?
    /// The boundary between the parts.
    package let boundary: String

    /// Creates the framing for `ranges`.
    ///
    /// - Parameter boundary: A string that must not occur in the bytes. Use a long random string, for example 24
    ///   hexadecimal digits. Characters other than ASCII letters, digits, `-` and `_` are removed, and so are those
    ///   after the first 70 (RFC 2046 §5.1.1).
    package init(ranges: [Range<Int64>], length: Int64?, partContentType: String?, boundary: String) {
        self.ranges = ranges
        self.length = length
        self.partContentType = partContentType.map { type in
            String(decoding: type.utf8.filter { $0 >= 0x20 && $0 != 0x7F }, as: UTF8.self)
        }
        let allowed = boundary.utf8.lazy.filter { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        let kept = String(decoding: Array(allowed.prefix(70)), as: UTF8.self)
        self.boundary = kept.isEmpty ? "spool-byteranges" : kept
    }

    /// The `Content-Type` of the response.
    package var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// Returns the text before the bytes of the part at `index`, counted from 0; empty if there is no such part.
    package func head(ofPart index: Int) -> String {
        guard ranges.indices.contains(index) else { return "" }
        var head = index == 0 ? "--\(boundary)\r\n" : "\r\n--\(boundary)\r\n"
        if let partContentType { head += "Content-Type: \(partContentType)\r\n" }
        return head + "Content-Range: \(ContentRange(range: ranges[index], length: length).text)\r\n\r\n"
    }

    /// The text after the bytes of the last part.
    package var closing: String { "\r\n--\(boundary)--\r\n" }

    /// The `Content-Length` of the response, including headers, bytes and closing; `nil` if the sum exceeds
    /// `Int64.max`.
    package var contentLength: Int64? {
        var total = Int64(closing.utf8.count)
        for index in ranges.indices {
            let (count, overflow) = ranges[index].upperBound.subtractingReportingOverflow(ranges[index].lowerBound)
            let (sum, carry) = total.addingReportingOverflow(count)
            let (next, carryAgain) = sum.addingReportingOverflow(Int64(head(ofPart: index).utf8.count))
            if overflow || carry || carryAgain { return nil }
            total = next
        }
        return total
    }
}
