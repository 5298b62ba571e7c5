import ByteRanges

/// The common grammar of header fields: digits, optional white space, comma lists (RFC 9110 §5.6).
///
/// This type works on UTF-8 bytes, never on characters, so that similar text is not treated as equal. No input causes a
/// crash.
enum FieldText {
    /// Parses one or more decimal digits. A value larger than `limit`, which is at most 2^55, is read as `limit`.
    ///
    /// Returns `nil` if `text` is empty or contains anything except `0`–`9`.
    static func digits(_ text: some Sequence<UInt8>, limit: Int64) -> Int64? {
        var value: Int64 = 0
        var count = 0
        for byte in text {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            // The product is at most 2^55 * 10 + 9.
            value = min(value * 10 + Int64(byte - UInt8(ascii: "0")), limit)
            count += 1
        }
        return count == 0 ? nil : value
    }

    /// Parses a number of seconds. A value larger than `NumberLimits.seconds` is read as that limit (RFC 9111 §1.2.2).
    static func seconds(_ text: some Sequence<UInt8>) -> Int64? { digits(text, limit: NumberLimits.seconds) }

    /// Parses an offset or a length. A value larger than `NumberLimits.byteOffset` is read as that limit.
    static func clampedOffset(_ text: some Sequence<UInt8>) -> Int64? { digits(text, limit: NumberLimits.byteOffset) }

    /// Parses an offset or a length that Spool stores or compares.
    ///
    /// - Throws: ``OffsetTooLarge`` if it is larger than `NumberLimits.byteOffset`.
    static func offset(_ text: some Sequence<UInt8>) throws(OffsetTooLarge) -> Int64? {
        guard let value = digits(text, limit: NumberLimits.byteOffset + 1) else { return nil }
        guard value <= NumberLimits.byteOffset else { throw OffsetTooLarge() }
        return value
    }

    /// The error for a number in a header that is larger than any offset that Spool can store.
    struct OffsetTooLarge: Error {}

    /// Returns `text` without spaces or tabs at either end (`OWS`, RFC 9110 §5.6.3).
    static func trimmed(_ text: Substring) -> Substring {
        var utf8 = text.utf8[...]
        while let first = utf8.first, isBlank(first) { utf8.removeFirst() }
        while let last = utf8.last, isBlank(last) { utf8.removeLast() }
        return Substring(utf8)
    }

    /// Returns the elements of a comma list (`#element`, RFC 9110 §5.6.1): trimmed, without empty ones. Commas within
    /// quoted strings don't separate elements.
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

    /// Returns whether both sequences are equal, ignoring the case of ASCII letters.
    static func equalIgnoringCase(_ one: some Sequence<UInt8>, _ other: some Sequence<UInt8>) -> Bool {
        one.lazy.map(lowercased).elementsEqual(other.lazy.map(lowercased))
    }

    /// Returns `byte` in lower case if it is an ASCII letter.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    /// Returns `text` with its ASCII letters in lower case.
    static func lowercased(_ text: Substring) -> String {
        String(decoding: text.utf8.map(lowercased), as: UTF8.self)
    }

    /// Returns `text` without its surrounding quotes, or unchanged if it does not start and end with a quote.
    static func unquoted(_ text: Substring) -> Substring {
        let utf8 = text.utf8
        guard utf8.count >= 2, utf8.first == UInt8(ascii: "\""), utf8.last == UInt8(ascii: "\"") else { return text }
        return Substring(utf8.dropFirst().dropLast())
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
