/// Reads the small grammar that header fields share: digits, optional white space, comma lists (RFC 9110 §5.6).
///
/// Works on UTF-8 bytes, never on characters, so that what looks alike is not taken for equal. Total: no input traps.
enum FieldText {
    /// `text` as a run of one or more decimal digits; a value beyond `Int64.max` is `Int64.max`.
    ///
    /// Nil if empty or if anything but `0`–`9` occurs: no sign, no space.
    static func digits(_ text: some Sequence<UInt8>) -> Int64? {
        var value: Int64 = 0
        var count = 0
        for byte in text {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            value = overflow || carry ? .max : sum
            count += 1
        }
        return count == 0 ? nil : value
    }

    /// `text` as digits that fit an `Int64`; nil where ``digits(_:)`` would have to saturate.
    static func exactDigits(_ text: some Collection<UInt8>) -> Int64? {
        guard let value = digits(text) else { return nil }
        if value < .max { return value }
        return text.drop { $0 == UInt8(ascii: "0") }.elementsEqual("9223372036854775807".utf8) ? value : nil
    }

    /// `text` without spaces and tabs at either end (`OWS`, RFC 9110 §5.6.3).
    static func trimmed(_ text: Substring) -> Substring {
        var utf8 = text.utf8[...]
        while let first = utf8.first, isBlank(first) { utf8.removeFirst() }
        while let last = utf8.last, isBlank(last) { utf8.removeLast() }
        return Substring(utf8)
    }

    /// The elements of a comma list (`#element`, RFC 9110 §5.6.1): trimmed, empty ones dropped, commas within quoted
    /// strings kept.
    static func elements(_ text: String) -> [Substring] {
        var elements: [Substring] = []
        var start = text.utf8.startIndex
        var isQuoted = false
        var isEscaped = false
        func take(upTo end: String.Index) {
            let element = trimmed(text[start..<end])
            if !element.utf8.isEmpty { elements.append(element) }
        }
        var index = start
        while index < text.utf8.endIndex {
            let byte = text.utf8[index]
            if isEscaped {
                isEscaped = false
            } else if isQuoted {
                isEscaped = byte == UInt8(ascii: "\\")
                isQuoted = byte != UInt8(ascii: "\"")
            } else if byte == UInt8(ascii: "\"") {
                isQuoted = true
            } else if byte == UInt8(ascii: ",") {
                take(upTo: index)
                start = text.utf8.index(after: index)
            }
            index = text.utf8.index(after: index)
        }
        take(upTo: index)
        return elements
    }

    /// Whether both are the same but for the case of ASCII letters.
    static func equalIgnoringCase(_ one: some Sequence<UInt8>, _ other: some Sequence<UInt8>) -> Bool {
        one.lazy.map(lowercased).elementsEqual(other.lazy.map(lowercased))
    }

    /// `byte` in lower case if it is an ASCII letter.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    /// `text` with its ASCII letters in lower case.
    static func lowercased(_ text: Substring) -> String {
        String(decoding: text.utf8.map(lowercased), as: UTF8.self)
    }

    /// `text` without the quotes around it, if it has both.
    static func unquoted(_ text: Substring) -> Substring {
        let utf8 = text.utf8
        guard utf8.count >= 2, utf8.first == UInt8(ascii: "\""), utf8.last == UInt8(ascii: "\"") else { return text }
        return Substring(utf8.dropFirst().dropLast())
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
