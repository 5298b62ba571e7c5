#if Proxy
/// An address of an MPD's segments in which numbers or times are still to be put (ISO/IEC 23009-1 §5.3.9.4.4).
package struct DASHTemplate: Hashable, Sendable {
    /// What stands before, between and after the numbers: those of one template have digits between them, and an address
    /// without any is one piece.
    private let pieces: [String]

    /// - Parameters:
    ///   - text: As the MPD has it.
    ///   - id: What `$RepresentationID$` means.
    ///   - bandwidth: What `$Bandwidth$` means.
    ///   - base: What it is relative to.
    /// - Returns: Nil for what can't be asked for through the proxy, and where an identifier is unknown or not closed.
    package init?(_ text: String, id: String, bandwidth: String, base: ReferenceRewriter) {
        var pieces = [""]
        for (number, part) in text.split(separator: "$", omittingEmptySubsequences: false).enumerated() {
            if number.isMultiple(of: 2) {
                pieces[pieces.count - 1] += part
                continue
            }
            let format = part.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
            switch format.first {
            case "": pieces[pieces.count - 1] += "$"
            case "RepresentationID": pieces[pieces.count - 1] += id
            case "Bandwidth":
                let width = format.count > 1 ? Int(format[1].dropLast()) ?? 0 : 0
                pieces[pieces.count - 1] += String(repeating: "0", count: max(0, min(width, 32) - bandwidth.count))
                pieces[pieces.count - 1] += bandwidth
            case "Number", "Time", "SubNumber": pieces.append("")
            default: return nil
            }
        }
        // A reference that is nothing yet would mean the base itself.
        let ending = pieces.count > 1 ? "0" : ""
        guard text.count(where: { $0 == "$" }).isMultiple(of: 2), let first = base.url(of: pieces[0] + ending) else {
            return nil
        }
        pieces[0] = String(first.description.dropLast(ending.count))
        self.pieces = pieces
    }

    /// Its address up to the last slash before the first number.
    package var directory: Substring {
        let first = pieces[0][...]
        return first[...(first.utf8.lastIndex(of: UInt8(ascii: "/")) ?? first.startIndex)]
    }

    /// Whether an address is one of those that it gives.
    package func gives(_ url: OriginURL) -> Bool {
        var rest = url.description[...].utf8
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
