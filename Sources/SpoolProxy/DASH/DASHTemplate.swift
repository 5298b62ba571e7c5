#if Proxy
/// An address of an MPD's segments in which numbers or times are still to be put (ISO/IEC 23009-1 §5.3.9.4.4).
package struct DASHTemplate: Hashable, Sendable {
    /// What stands before, between and after the numbers: those of one template have digits between them, and an address
    /// without any is one piece.
    private let pieces: [String]

    /// The most bytes of a template, and of what is put into it: players' addresses are no longer.
    private static let limit = 2048

    /// - Parameters:
    ///   - text: As the MPD has it.
    ///   - id: What `$RepresentationID$` means.
    ///   - bandwidth: What `$Bandwidth$` means.
    ///   - base: What it is relative to.
    /// - Returns: Nil for what can't be asked for through the proxy or is too long, and where an identifier is unknown or
    ///   not closed. Takes time proportional to the limit at most.
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
        // A reference that is nothing yet would mean the base itself; behind a number sign no server is told anything.
        let ending = pieces.count > 1 ? "0" : ""
        guard !pieces[0].utf8.contains(UInt8(ascii: "#")), let first = base.url(of: pieces[0] + ending) else {
            return nil
        }
        pieces[0] = String(first.description.dropLast(ending.count))
        self.pieces = pieces
    }

    /// The address up to the first number; all of it where there is none.
    package var head: String { pieces[0] }
    /// The length of its text, in bytes.
    var byteCount: Int { pieces.reduce(0) { $0 + $1.utf8.count } }
    /// Whether it gives more than one address.
    package var hasNumber: Bool { pieces.count > 1 }

    /// Whether an address is one of those that it gives.
    package func gives(_ address: Substring) -> Bool {
        var rest = address.utf8
        for (number, piece) in pieces.enumerated() {
            if number > 0 {
                let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
                // Digits may follow in the text itself: as many are the number's as leave it all of its own.
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
#endif
