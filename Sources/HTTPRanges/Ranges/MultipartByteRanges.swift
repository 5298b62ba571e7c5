/// Frames several ranges of one media file as one response, `multipart/byteranges` (RFC 9110 §14.6).
///
/// Gives the texts that go between the bytes and the total length; doesn't touch the bytes. A server sends, for each
/// range, ``head(ofPart:)`` and then the range's bytes, and at last ``closing``.
package struct MultipartByteRanges: Sendable, Hashable {
    /// The ranges in the order in which they are sent; each non-empty and within `length`, as
    /// ``RangeHeader/resolve(length:limit:)`` gives them.
    package let ranges: [Range<Int64>]
    /// The length of the whole resource; nil if unknown.
    package let length: Int64?
    /// The type of the resource itself, for each part's head; left out if nil.
    package let partContentType: String?
    /// The boundary between the parts.
    package let boundary: String

    /// A frame for `ranges`.
    ///
    /// - Parameter boundary: must not occur in the bytes, so make it random and long, for example 24 hexadecimal
    ///   digits. Anything but ASCII letters, digits, `-` and `_` is left out of it, and so is what exceeds 70 (RFC 2046 §5.1.1).
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

    /// The response's own `Content-Type`.
    package var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// The text before the bytes of the part at `index`, counted from 0; empty if there is no such part.
    package func head(ofPart index: Int) -> String {
        guard ranges.indices.contains(index) else { return "" }
        var head = index == 0 ? "--\(boundary)\r\n" : "\r\n--\(boundary)\r\n"
        if let partContentType { head += "Content-Type: \(partContentType)\r\n" }
        return head + "Content-Range: \(ContentRange(range: ranges[index], length: length).text)\r\n\r\n"
    }

    /// The text after the last part's bytes.
    package var closing: String { "\r\n--\(boundary)--\r\n" }

    /// The response's `Content-Length`: heads, bytes and closing; nil if the sum exceeds `Int64.max`.
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
