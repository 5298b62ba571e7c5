import ByteRanges

/// Which bytes of a media file a response holds, and how long the file is (`Content-Range`, RFC 9110 §14.4).
///
/// Three forms: `bytes 0-99/1000`; `bytes 0-99/*`, length unknown; `bytes */1000`, which a 416 carries to tell the
/// length. Header text is closed (`0-99`), ``range`` half-open (`0..<100`).
package struct ContentRange: Sendable, Hashable {
    /// The bytes that follow, never empty; nil in `bytes */1000`.
    package let range: Range<Int64>?
    /// The length of the whole; nil in `bytes 0-99/*`.
    package let length: Int64?

    /// A header for `range` of a resource of `length` bytes, as a server sends it.
    ///
    /// An empty range, or one below 0, becomes nil; likewise a negative length.
    package init(range: Range<Int64>?, length: Int64?) {
        self.range = range.flatMap { $0.isEmpty || $0.lowerBound < 0 ? nil : $0 }
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
    }

    /// Reads a header's value.
    ///
    /// Returns `nil` in these cases:
    /// - The value is malformed, uses another unit, or contains neither a range nor a length.
    /// - The range ends before it starts, or after the length.
    /// - A number is larger than 2^53.
    package init?(parsing text: String) {
        // The caller needs to know only that the value can't be used.
        guard let range = try? ContentRange(checking: text) else { return nil }
        self = range
    }

    /// Reads a header's value like ``init(parsing:)``, but reports numbers that are too large.
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

    /// The header's value, for example `bytes 0-99/1000`. With neither range nor length, which is no valid header and
    /// must not be sent, `bytes */*`.
    package var text: String {
        let rangeText = range.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*"
        return "bytes \(rangeText)/\(length.map { "\($0)" } ?? "*")"
    }
}
