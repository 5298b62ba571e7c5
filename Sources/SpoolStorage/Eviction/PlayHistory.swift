import Foundation

/// What the catalog notes of how a resource is played, for its eviction.
package struct PlayHistory: Hashable, Sendable {
    /// How often it was played again, up to 255: sittings after the first.
    package var sittings = 0
    /// Where its last play stopped, in bytes; nil: nowhere, or at its end.
    package var stop: Int64?
    /// It was heard to its end, and is played once.
    package var isSpent = false
    /// What its app calls it, for quotas.
    package var tag: String?

    package init(sittings: Int = 0, stop: Int64? = nil, isSpent: Bool = false, tag: String? = nil) {
        (self.sittings, self.stop, self.isSpent, self.tag) = (sittings, stop, isSpent, tag)
    }

    /// Reads what ``text`` gives; of what it does not know, nothing.
    package init(_ text: String?) {
        for word in (text ?? "").split(separator: " ") {
            let value = word.dropFirst()
            switch word.first {
            case "n": sittings = min(255, max(0, Int(value) ?? 0))
            case "p": stop = Int64(value).flatMap { $0 > 0 && $0 <= Block.offsetLimit ? $0 : nil }
            case "x": isSpent = value.isEmpty
            case "t": tag = value.removingPercentEncoding
            default: break
            }
        }
    }

    /// As the catalog has it; nil where there is nothing to note.
    package var text: String? {
        let name = tag.flatMap { $0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) }
        let words = [
            sittings > 0 ? "n\(sittings)" : nil, stop.map { "p\($0)" }, isSpent ? "x" : nil, name.map { "t\($0)" },
        ]
        let text = words.compactMap { $0 }.joined(separator: " ")
        return text.isEmpty ? nil : text
    }
}
