/// A template of segment URLs, with numbers or times as placeholders (ISO/IEC 23009-1 §5.3.9.4.4).
package struct DASHTemplate: Hashable, Sendable {
    /// The text before, between and after the numbers. A template without a number is one piece.
    private let pieces: [String]

    /// The maximum size of a template with its values, in bytes. Players do not request longer URLs.
    private static let limit = 2048

    /// Creates a template. The time for this is bounded, because long texts are rejected.
    ///
    /// The result is `nil` if the URLs cannot be requested through the proxy, or if the text is too long. It is also
    /// `nil` if an identifier is unknown or not closed.
    ///
    /// - Parameters:
    ///   - text: The text in the MPD.
    ///   - id: The value of `$RepresentationID$`.
    ///   - bandwidth: The value of `$Bandwidth$`.
    ///   - base: The base of the URLs.
    package init?(_ text: String, id: String, bandwidth: String, base: ReferenceRewriter) {
        guard text.utf8.count <= Self.limit, id.utf8.count <= 256, bandwidth.utf8.count <= 32 else { return nil }
        var pieces = [""]
        let parts = text.utf8.split(separator: UInt8(ascii: "$"), omittingEmptySubsequences: false)
        guard !parts.count.isMultiple(of: 2) else { return nil }
        var count = text.utf8.count
        for (number, part) in parts.enumerated() {
            if number.isMultiple(of: 2) {
                pieces[pieces.count - 1] += Substring(part)
                continue
            }
            let format = part.split(separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
            let width = format.count > 1 ? Int(Substring(format[1].dropLast())) ?? 0 : 0
            var value: String
            switch String(Substring(format[0])) {
            case "": value = "$"
            case "RepresentationID": value = id
            case "Bandwidth":
                value = String(repeating: "0", count: max(0, min(width, 32) - bandwidth.utf8.count)) + bandwidth
            case "Number", "Time", "SubNumber":
                pieces.append("")
                continue
            default: return nil
            }
            pieces[pieces.count - 1] += value
            count += value.utf8.count
            guard count <= Self.limit else { return nil }
        }
        // An empty reference would denote the base itself. The text after a number sign is never sent to a server.
        let ending = pieces.count > 1 ? "0" : ""
        guard !pieces[0].utf8.contains(UInt8(ascii: "#")), let first = base.url(of: pieces[0] + ending) else {
            return nil
        }
        pieces[0] = String(first.description.dropLast(ending.count))
        self.pieces = pieces
    }

    /// The URL up to the first number, or the whole URL if it has none.
    package var head: String { pieces[0] }
    /// The size of the template, in bytes.
    package var byteCount: Int { pieces.reduce(0) { $0 + $1.utf8.count } }
    /// Whether the template describes several URLs.
    package var hasNumber: Bool { pieces.count > 1 }

    /// Returns whether the URL matches the template.
    package func matches(_ address: Substring) -> Bool {
        var rest = address.utf8
        for (number, piece) in pieces.enumerated() {
            if number > 0 {
                let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
                // The piece may start with digits, which do not belong to the number.
                let own = piece.utf8.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }.count
                guard digits.count > own else { return false }
                rest = rest.dropFirst(digits.count - own)
            }
            guard rest.starts(with: piece.utf8) else { return false }
            rest = rest.dropFirst(piece.utf8.count)
        }
        return rest.isEmpty
    }
}
