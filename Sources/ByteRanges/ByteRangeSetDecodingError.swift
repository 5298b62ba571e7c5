/// Says why stored bytes are not an encoded ``ByteRangeSet``: someone cut, damaged or forged them.
///
/// Which resource the bytes belong to, the caller knows and should add; what is safe to do is to treat the set as empty
/// and its bytes as holes.
package struct ByteRangeSetDecodingError: Error, Hashable, Sendable {
    /// The kind of damage, as a value to compare with; more may come.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code in words, to be read after "the encoded byte ranges are malformed:".
        package let description: String

        /// The bytes end before the last range that they announce.
        package static let truncated = Code(description: "the bytes end too early")
        /// Bytes follow the last range that they announce.
        package static let trailingBytes = Code(description: "bytes follow the last range")
        /// An integer is above `Int64.max`, or not written in the shortest form.
        package static let malformedInteger = Code(description: "an integer is too large or not in its shortest form")
        /// A range has no bytes.
        package static let emptyRange = Code(description: "a range is empty")
        /// A range follows the one before it without a hole; one set has one encoding, so they should have been merged.
        package static let adjacentRanges = Code(description: "two ranges have no hole between them")
        /// A range ends beyond `Int64.max`.
        package static let offsetOverflow = Code(description: "a range ends beyond the largest offset")
    }

    /// The kind of damage.
    package let code: Code

    /// Where: the index of the first byte that could not be read as it should.
    package let byteIndex: Int

    /// How many bytes there were.
    package let byteCount: Int
}

extension ByteRangeSetDecodingError: CustomStringConvertible {
    /// One sentence for logs, with the cause and the place.
    package var description: String {
        "the encoded byte ranges are malformed: \(code), at byte \(byteIndex) of \(byteCount)"
    }
}
