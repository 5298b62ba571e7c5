// The compact form, for the catalog. Each integer is an unsigned LEB128 varint (seven bits a byte, lowest first, the top
// bit set on all but the last), in its shortest form and at most Int64.max:
//
//     number of ranges, then for each: bytes of hole before it, bytes in it
//
// "Hole before it" counts from the end of the range before, and from 0 for the first. One set has one encoding, and an
// encoding that breaks the set's rules is refused, so equal bytes mean equal sets and the other way round.

extension ByteRangeSet {
    /// The set in a compact binary form: 1 byte for an empty set, 2 to 19 for one range, and mostly 4 to 8 for each
    /// range of a fragmented file.
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

    /// Reads what ``encoded()`` wrote.
    ///
    /// The bytes may come from anywhere: whatever they are, this returns or throws, and the memory it takes stays in
    /// proportion to how many they are.
    ///
    /// - Throws: ``ByteRangeSetDecodingError`` if `bytes` is not exactly what ``encoded()`` gives for some set.
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
    /// Reads an array of `[start, end]` pairs, as ``encode(to:)`` writes it.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if a pair is empty, begins below 0, or does not lie behind the one
    ///   before it with a hole between them; and what the decoder throws for anything that is not such an array.
    public init(from decoder: any Decoder) throws {
        self.init()
        var pairs = try decoder.unkeyedContainer()
        while !pairs.isAtEnd {
            let range = try pairs.decode(Range<Int64>.self)
            let end = leaves.last?.upperBound ?? -1
            guard !range.isEmpty && range.lowerBound > end else {
                throw DecodingError.dataCorruptedError(
                    in: pairs,
                    debugDescription: "Byte ranges must be ascending, not empty, and apart; \(range) is not."
                )
            }
            leaves.append(range)
        }
    }

    /// Writes an array of `[start, end]` pairs, half-open: `[[0, 10], [20, 30]]` in JSON.
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

/// Reads varints one after the other from bytes that may be anything.
private struct VarintReader {
    let bytes: [UInt8]
    private(set) var index = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The next integer, `0 ... Int64.max`: at most nine bytes of seven bits, the last of them not 0 unless it is alone.
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
