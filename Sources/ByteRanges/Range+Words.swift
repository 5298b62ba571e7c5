// How byte ranges and counts are put in sentences for people; never in anything that is read by a program.

extension Range<Int64> {
    /// The bytes with both ends named, as people and HTTP count them: `byte 7`, `bytes 0–1,048,575`,
    /// `bytes 5 to the end` where the range is open, `no bytes` where it is empty.
    package var inWords: String {
        if isEmpty { return "no bytes" }
        if upperBound == .max { return "bytes \(lowerBound.grouped) to the end" }
        if upperBound - 1 == lowerBound { return "byte \(lowerBound.grouped)" }
        return "bytes \(lowerBound.grouped)–\((upperBound - 1).grouped)"
    }
}

extension BinaryInteger {
    /// The digits in groups of three: `1,048,576`.
    package var grouped: String {
        let digits = String(magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return self < 0 ? "-" + text : text
    }

    /// So many of something: `1 block`, `2 blocks`; for nouns whose plural is an s.
    package func counted(_ noun: String) -> String { "\(grouped) \(noun)\(self == 1 ? "" : "s")" }
}
