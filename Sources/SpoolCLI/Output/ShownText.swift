extension StringProtocol {
    /// The text as a terminal may show it: what would act there instead of being seen is written as its number, such as
    /// `\u{1B}`. That is control characters (C0, DEL, C1), line separators, and all that turns the direction of writing
    /// or can't be seen, but for the joiners that scripts and emoji need.
    var shown: String {
        guard unicodeScalars.contains(where: \.acts) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.acts {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    /// The text with the middle left out of what is too long to be read, such as the path of a URL of some kilobytes.
    var abbreviated: String {
        split(separator: " ", omittingEmptySubsequences: false)
            .map { $0.count > 300 ? "\($0.prefix(200))…\($0.suffix(60))" : String($0) }
            .joined(separator: " ")
    }

    /// Text in JSON's form with the same characters written as `\u001b`; they stand within its strings only.
    var shownInJSON: String {
        guard unicodeScalars.contains(where: \.acts) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            guard scalar.acts else { return text.unicodeScalars.append(scalar) }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
    }
}

extension Unicode.Scalar {
    fileprivate var acts: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        // The zero width (non-)joiners.
        case .format: value != 0x200C && value != 0x200D
        default: false
        }
    }
}
