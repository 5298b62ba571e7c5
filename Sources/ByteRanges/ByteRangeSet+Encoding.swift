// The compact form for the catalog consists of unsigned LEB128 varints: seven bits in each byte, lowest first. The top
// bit is set in all bytes except the last. Each integer is in its shortest form and at most Int64.max.
//
//     number of ranges, then for each range: missing bytes before it, bytes in it
//
// The missing bytes are counted from the end of the previous range, or from 0 for the first range. Each set has exactly
// one encoding, and invalid encodings are rejected. Therefore, two sets are equal if and only if their encodings are
// identical.

extension ByteRangeSet {
    /// Returns the set in a compact binary form.
    ///
    /// An empty set occupies 1 byte, and a set with one range occupies 2 to 19 bytes. Each range of a fragmented file
    /// usually occupies 4 to 8 bytes.
    package func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(2 + count * 6)
        bytes.appendVarint(UInt64(count))
        var end: Int64 = 0
        for range in self {
            bytes.appendVarint(UInt64(range.lowerBound - end))
            bytes.appendVarint(UInt64(range.upperBound - range.lowerBound))
            end = range.upperBound
        }
        return bytes
    }

    /// Decodes the result of ``encoded()``.
    ///
    /// The bytes may be arbitrary. The memory use is proportional to the number of bytes.
    ///
    /// - Throws: ``ByteRangeSetDecodingError`` unless `bytes` is exactly the encoding of a set.
    package init(decoding bytes: [UInt8]) throws(ByteRangeSetDecodingError) {
        self.init()
        var reader = VarintReader(bytes)
        let rangeCount = try reader.next()
        var remaining = rangeCount
        var end: Int64 = 0
        while remaining > 0 {
            let start = reader.index
            let hole = try reader.next()
            let length = try reader.next()
            if hole == 0 && remaining < rangeCount { throw reader.error(.adjacentRanges, at: start) }
            if length == 0 { throw reader.error(.emptyRange, at: start) }
            let (lower, lowerOverflows) = end.addingReportingOverflow(hole)
            let (upper, upperOverflows) = lower.addingReportingOverflow(length)
            if lowerOverflows || upperOverflows { throw reader.error(.offsetOverflow, at: start) }
            leaves.append(lower..<upper)
            end = upper
            remaining -= 1
        }
        if reader.index < bytes.count { throw reader.error(.trailingBytes, at: reader.index) }
    }
}

extension ByteRangeSet: Codable {
    /// Decodes an array of `[start, end]` pairs, as ``encode(to:)`` writes it.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if a pair is empty, starts below 0, or does not follow the previous one
    ///   with missing bytes in between. Errors from the decoder are rethrown.
    public init(from decoder: any Decoder) throws {
        self.init()
        var pairs = try decoder.unkeyedContainer()
        while !pairs.isAtEnd {
            let range = try pairs.decode(Range<Int64>.self)
            let end = leaves.last?.upperBound ?? -1
            guard !range.isEmpty && range.lowerBound > end else {
                throw DecodingError.dataCorruptedError(
                    in: pairs,
                    debugDescription: "The byte range \(range) is empty, or does not follow the previous one with "
                        + "missing bytes in between."
                )
            }
            leaves.append(range)
        }
    }

    /// Encodes an array of half-open `[start, end]` pairs: `[[0, 10], [20, 30]]` in JSON.
    public func encode(to encoder: any Encoder) throws {
        var pairs = encoder.unkeyedContainer()
        for range in self {
            try pairs.encode(range)
        }
    }
}

extension [UInt8] {
    fileprivate mutating func appendVarint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }
}

/// A reader of consecutive varints in arbitrary bytes.
private struct VarintReader {
    let bytes: [UInt8]
    private(set) var index = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the next integer, from 0 to `Int64.max`. Its encoding has at most nine bytes with seven bits each. The
    /// last byte is not 0, unless it is the only one.
    mutating func next() throws(ByteRangeSetDecodingError) -> Int64 {
        let start = index
        var value: Int64 = 0
        for shift in stride(from: Int64(0), to: 63, by: 7) {
            guard index < bytes.count else { throw error(.truncated, at: index) }
            let byte = bytes[index]
            index += 1
            value |= Int64(byte & 0x7F) << shift
            if byte < 0x80 {
                if byte == 0 && shift > 0 { throw error(.malformedInteger, at: start) }
                return value
            }
        }
        throw error(.malformedInteger, at: start)
    }

    func error(_ code: ByteRangeSetDecodingError.Code, at index: Int) -> ByteRangeSetDecodingError {
        ByteRangeSetDecodingError(code: code, byteIndex: index, byteCount: bytes.count)
    }
}

/// An error that states why stored bytes are not a valid encoding of a ``ByteRangeSet``: they are truncated, damaged or
/// forged.
///
/// The error does not contain the name of the resource, so callers should add it to the message. Using an empty set
/// instead is safe, because all bytes are then fetched again.
package struct ByteRangeSetDecodingError: Error, Hashable, Sendable {
    /// The kind of damage. More codes may be added.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The text that follows "the encoded byte ranges are malformed:" in the message.
        package let description: String

        /// The bytes end before the stated number of ranges has been read.
        package static let truncated = Code(description: "the bytes end too early")
        /// There are more bytes after the stated number of ranges.
        package static let trailingBytes = Code(description: "bytes follow the last range")
        /// An integer exceeds `Int64.max`, or is not in its shortest form.
        package static let malformedInteger = Code(description: "an integer is too large or not in its shortest form")
        /// A range is empty.
        package static let emptyRange = Code(description: "a range is empty")
        /// A range touches the previous one. The two ranges must be encoded as one, because a set has exactly one
        /// encoding.
        package static let adjacentRanges = Code(description: "two ranges touch each other")
        /// A range ends beyond `Int64.max`.
        package static let offsetOverflow = Code(description: "a range ends beyond the largest offset")
    }

    /// The kind of damage.
    package let code: Code

    /// The index of the first invalid byte.
    package let byteIndex: Int

    /// The total number of bytes.
    package let byteCount: Int
}

extension ByteRangeSetDecodingError: CustomStringConvertible {
    /// A message for logs that states the cause and the position.
    package var description: String {
        "the encoded byte ranges are malformed: \(code), at byte \(byteIndex) of \(byteCount)"
    }
}
