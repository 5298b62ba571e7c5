#if Proxy
/// A URI or a relative reference, split into its five parts and resolved by RFC 3986, byte for byte.
///
/// Looks at no more than the delimiters: what lies between them is kept as it was written, percent-encodings, spaces and
/// other characters that a URI should not have included, since players take them, too. Any text has such parts. Work and
/// memory are proportional to the text's length.
package struct URIReference: Hashable, Sendable {
    /// Without its colon, as it was written; nil for a relative reference.
    package var scheme: Substring?
    /// What follows `//`: user information, host, port.
    package var authority: Substring?
    /// May be empty.
    package var path: Substring
    /// Without its question mark.
    package var query: Substring?
    /// Without its number sign.
    package var fragment: Substring?

    /// Splits a text (RFC 3986 appendix B).
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

    /// Splits a text.
    package init(_ text: String) { self.init(text[...]) }

    /// Where the colon after a scheme is: a letter, then letters, digits, `+`, `-` and `.` (RFC 3986 §3.1).
    private static func schemeEnd(_ text: Substring) -> String.Index? {
        guard let first = text.utf8.first, first.isASCIILetter else { return nil }
        for index in text.utf8.indices {
            let byte = text.utf8[index]
            if byte == UInt8(ascii: ":") { return index }
            guard byte.isASCIILetter || byte.isASCIIDigit || "+-.".utf8.contains(byte) else { return nil }
        }
        return nil
    }

    /// The reference as one text.
    package var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    /// This reference as seen from `base` (RFC 3986 §5.2.2, strict): the fragment is its own, dot segments are gone.
    ///
    /// - Parameter base: An absolute URI; what a relative one gives is relative, too.
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

    /// The path, put in place of the last segment of the base's (RFC 3986 §5.2.3).
    private func merged(with base: URIReference) -> Substring {
        if base.authority != nil, base.path.isEmpty { return "/" + path }
        guard let slash = base.path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return base.path[...slash] + path
    }

    /// A path without its segments `.` and `..`; none climbs above the root (RFC 3986 §5.2.4).
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

/// A segment of a path that means a directory: `.` and `..`, their dots percent-encoded or not, which is the same
/// (RFC 3986 §6.2.2.2), and the same to browsers.
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
    /// Whether it is `A`–`Z` or `a`–`z`.
    var isASCIILetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
    /// Whether it is `0`–`9`.
    var isASCIIDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    /// Whether it is a digit of a percent-encoding.
    var isHexDigit: Bool { isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }
}
#endif
