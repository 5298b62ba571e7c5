/// The largest numbers that Spool accepts in external input: headers, the catalog, manifests and options.
///
/// Parsers reject larger numbers, or reduce them to the limit if a standard requires it. Therefore, a sum or a
/// difference of several hundred accepted numbers fits in an `Int64`.
package enum NumberLimits {
    /// The largest offset and the largest length of a resource, in bytes: 2^53, more than any disk holds.
    ///
    /// The limit is a multiple of the block size. Offsets up to it fit in the parameters of all file interfaces.
    package static let byteOffset: Int64 = 1 << 53

    /// The largest age or delay in seconds, and the largest distance of a date from 1970: 10,000 years.
    package static let seconds: Int64 = 10_000 * 31_556_952
}

extension Int64 {
    /// Creates the integer nearest to zero that differs from `value` by less than one. A number that is too large
    /// becomes the largest or smallest integer, and a value that is not a number becomes 0.
    ///
    /// Use this initializer for numbers that are calculated from input, because `Int64(_:)` stops the process if the
    /// number does not fit.
    package init(saturating value: Double) {
        self = Int64(exactly: value.rounded(.towardZero)) ?? (value.isNaN ? 0 : value < 0 ? .min : .max)
    }
}

// Byte ranges and counts in the form that is shown to users. Programs do not parse this text.

extension Range<Int64> {
    /// A description of the range in words, such as `byte 7` or `bytes 0–1,048,575`. Both ends are included, as in
    /// HTTP. An open range is `bytes 5 to the end`, and an empty one is `no bytes`.
    package var inWords: String {
        if isEmpty { return "no bytes" }
        if upperBound == .max { return "bytes \(lowerBound.grouped) to the end" }
        if upperBound - 1 == lowerBound { return "byte \(lowerBound.grouped)" }
        return "bytes \(lowerBound.grouped)–\((upperBound - 1).grouped)"
    }
}

extension BinaryInteger {
    /// The number with its digits in groups of three: `1,048,576`.
    package var grouped: String {
        let digits = String(magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return self < 0 ? "-" + text : text
    }

    /// Returns the number with a noun: `1 block`, `2 blocks`. The plural of the noun must end in “s”.
    package func counted(_ noun: String) -> String { "\(grouped) \(noun)\(self == 1 ? "" : "s")" }
}
