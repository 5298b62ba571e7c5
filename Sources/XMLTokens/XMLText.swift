/// Functions for text and attribute values in XML (XML 1.0 §2.4, §4.1, §4.6).
package enum XMLText {
    /// Returns the text with its entities replaced.
    ///
    /// The result is `nil` if the text is not UTF-8 or contains an unknown entity. Known entities are the five
    /// predefined ones, and character references.
    package static func unescaped(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.contains(UInt8(ascii: "&")) else { return String(validating: bytes, as: UTF8.self) }
        var text: [UInt8] = []
        var rest = bytes
        while let ampersand = rest.firstIndex(of: UInt8(ascii: "&")) {
            text += rest[..<ampersand]
            // The longest reference is `&#x10FFFF;`. The limit allows a few leading zeros.
            guard let semicolon = rest[ampersand...].prefix(16).firstIndex(of: UInt8(ascii: ";")),
                let scalar = scalar(String(decoding: rest[(ampersand + 1)..<semicolon], as: UTF8.self))
            else { return nil }
            text += Array(String(scalar).utf8)
            rest = rest[(semicolon + 1)...]
        }
        text += rest
        return String(validating: text, as: UTF8.self)
    }

    private static func scalar(_ entity: String) -> Unicode.Scalar? {
        switch entity {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case let hex where hex.hasPrefix("#x"): UInt32(hex.dropFirst(2), radix: 16).flatMap { Unicode.Scalar($0) }
        case let decimal where decimal.hasPrefix("#"): UInt32(decimal.dropFirst()).flatMap { Unicode.Scalar($0) }
        default: nil
        }
    }

    /// Returns the text, in which characters that are not allowed between tags or in quotes of either kind are escaped.
    package static func escaped(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): bytes += "&amp;".utf8
            case UInt8(ascii: "<"): bytes += "&lt;".utf8
            case UInt8(ascii: ">"): bytes += "&gt;".utf8
            case UInt8(ascii: "\""): bytes += "&quot;".utf8
            case UInt8(ascii: "'"): bytes += "&apos;".utf8
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    /// Returns the slice without surrounding white space.
    package static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = bytes.drop(while: XMLScanner.isSpace)
        return start[..<((start.lastIndex { !XMLScanner.isSpace($0) }).map { $0 + 1 } ?? start.startIndex)]
    }
}
