/// A URI or a relative reference, split into its five parts and resolved as in RFC 3986, byte for byte.
///
/// Only the delimiters are interpreted. The text between them stays the same, including percent-encodings, spaces and
/// other characters that a URI cannot contain, because players accept such characters. Therefore, any string can be
/// split. Time and memory are proportional to the length of the string.
package struct URIReference: Hashable, Sendable {
    /// The scheme without its colon, or `nil` for a relative reference.
    package var scheme: Substring?
    /// The text after `//`: user information, host and port.
    package var authority: Substring?
    /// The path, which may be empty.
    package var path: Substring
    /// The query without its question mark.
    package var query: Substring?
    /// The fragment without its number sign.
    package var fragment: Substring?

    /// Splits a string (RFC 3986 appendix B).
    package init(_ text: Substring) {
        var rest = text
        if let number = rest.utf8.firstIndex(of: UInt8(ascii: "#")) {
            fragment = rest[rest.utf8.index(after: number)...]
            rest = rest[..<number]
        }
        if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
            query = rest[rest.utf8.index(after: mark)...]
            rest = rest[..<mark]
        }
        if let colon = URIReference.schemeEnd(rest) {
            scheme = rest[..<colon]
            rest = rest[rest.utf8.index(after: colon)...]
        }
        if rest.utf8.starts(with: "//".utf8) {
            let start = rest.utf8.index(rest.startIndex, offsetBy: 2)
            let end = rest.utf8[start...].firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = rest[start..<end]
            rest = rest[end...]
        }
        path = rest
    }

    /// Splits a string.
    package init(_ text: String) { self.init(text[...]) }

    /// Returns the position of the colon after a scheme. A scheme is a letter, followed by letters, digits, `+`, `-`
    /// and `.` (RFC 3986 §3.1).
    private static func schemeEnd(_ text: Substring) -> String.Index? {
        guard let first = text.utf8.first, first.isASCIILetter else { return nil }
        for index in text.utf8.indices {
            let byte = text.utf8[index]
            if byte == UInt8(ascii: ":") { return index }
            guard byte.isASCIILetter || byte.isASCIIDigit || "+-.".utf8.contains(byte) else { return nil }
        }
        return nil
    }

    /// The reference as a string.
    package var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    /// Returns the reference resolved against `base` (RFC 3986 §5.2.2, strict), with its own fragment and without dot
    /// segments.
    ///
    /// - Parameter base: An absolute URI. If it is relative, the result is relative, too.
    package func resolved(against base: URIReference) -> URIReference {
        var target = self
        if scheme != nil {
            target.path = URIReference.removingDotSegments(path)
            return target
        }
        target.scheme = base.scheme
        if authority != nil {
            target.path = URIReference.removingDotSegments(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.utf8.first == UInt8(ascii: "/") {
            target.path = URIReference.removingDotSegments(path)
        } else {
            target.path = URIReference.removingDotSegments(merged(with: base))
        }
        return target
    }

    /// Returns the path, appended to the directory of the base's path (RFC 3986 §5.2.3).
    private func merged(with base: URIReference) -> Substring {
        if base.authority != nil, base.path.isEmpty { return "/" + path }
        guard let slash = base.path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return base.path[...slash] + path
    }

    /// Returns a path without its segments `.` and `..`. A `..` at the root has no effect (RFC 3986 §5.2.4).
    package static func removingDotSegments(_ path: Substring) -> Substring {
        let slash = UInt8(ascii: "/")
        guard path.utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else { return path }
        var input = path.utf8[...]
        let isAbsolute = input.first == slash
        if isAbsolute { input = input.dropFirst() }
        var kept: [Substring.UTF8View.SubSequence] = []
        var endsInDirectory = false
        for segment in input.split(separator: slash, omittingEmptySubsequences: false) {
            endsInDirectory = false
            switch DotSegment(segment) {
            case .parent:
                if !kept.isEmpty { kept.removeLast() }
                endsInDirectory = true
            case .current: endsInDirectory = true
            case nil: kept.append(segment)
            }
        }
        var text = isAbsolute ? "/" : ""
        text.reserveCapacity(path.utf8.count)
        for (index, segment) in kept.enumerated() {
            if index > 0 { text += "/" }
            text += Substring(segment)
        }
        if endsInDirectory, !kept.isEmpty { text += "/" }
        return text[...]
    }
}

/// A path segment that denotes a directory: `.` or `..`. Percent-encoded dots are equivalent to plain dots (RFC 3986
/// §6.2.2.2), and browsers also treat them as equivalent.
enum DotSegment {
    case current, parent

    init?(_ segment: Substring.UTF8View.SubSequence) {
        guard !segment.isEmpty, segment.count <= 6 else { return nil }
        var (rest, dots) = (segment, 0)
        while let first = rest.first {
            if first == UInt8(ascii: ".") {
                rest = rest.dropFirst()
            } else if rest.starts(with: "%2e".utf8) || rest.starts(with: "%2E".utf8) {
                rest = rest.dropFirst(3)
            } else {
                return nil
            }
            dots += 1
        }
        switch dots {
        case 1: self = .current
        case 2: self = .parent
        default: return nil
        }
    }
}

extension UInt8 {
    /// Whether the byte is `A`–`Z` or `a`–`z`.
    var isASCIILetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
    /// Whether the byte is `0`–`9`.
    var isASCIIDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    /// Whether the byte is a hexadecimal digit, as in a percent-encoding.
    var isHexDigit: Bool { isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }
}
