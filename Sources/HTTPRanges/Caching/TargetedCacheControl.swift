package import HTTPTypes

extension CacheControl {
    /// The directives that a shared cache goes by: those of `CDN-Cache-Control` if that is there and can be read, and
    /// `Cache-Control` and `Expires` count for nothing then; else those of `Cache-Control` (RFC 9213 §2).
    ///
    /// - Returns: the directives, and whether they are `CDN-Cache-Control`'s.
    package static func governing(_ fields: HTTPFields) -> (control: CacheControl, isTargeted: Bool) {
        if let name = cdnCacheControl, fields.contains(name),
            let control = CacheControl(targeted: fields[values: name].joined(separator: ","))
        {
            return (control, true)
        }
        return (CacheControl(fields: fields), false)
    }

    private static let cdnCacheControl = HTTPField.Name("CDN-Cache-Control")

    /// Reads a targeted field: a Dictionary Structured Field (RFC 9651 §4.2.2), whose keys are taken in any case; nil if it
    /// is empty, or none in any part. A number of seconds that is none is left out.
    init?(targeted text: String) {
        self.init()
        let members = FieldText.elements(text)
        // An empty member is nothing that a Dictionary may have; a comma within quotes is.
        let isQuoted = text.utf8.contains(UInt8(ascii: "\""))
        let pieces = text.split(separator: ",", omittingEmptySubsequences: false)
        guard !members.isEmpty, isQuoted || pieces.allSatisfy({ !FieldText.trimmed($0).isEmpty }) else { return nil }
        for member in members {
            guard let (key, value) = Self.member(member) else { return nil }
            switch value {
            case .isTrue: if !Self.isNumeric(key) { apply(key, value: nil) }
            case .integer(let number):
                // Of two with one key the last counts.
                guard Self.isNumeric(key) else { continue }
                clear(key)
                apply(key, value: number)
            case .other: continue
            }
        }
    }

    private enum Value { case isTrue, integer(Substring), other }

    private static func isNumeric(_ key: String) -> Bool {
        ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"].contains(key)
    }

    private mutating func clear(_ key: String) {
        switch key {
        case "max-age": maxAge = nil
        case "s-maxage": sharedMaxAge = nil
        case "stale-while-revalidate": staleWhileRevalidate = nil
        case "stale-if-error": staleIfError = nil
        default: break
        }
    }

    private static func member(_ text: Substring) -> (key: String, value: Value)? {
        let key = FieldText.lowercased(text.prefix { $0 != "=" && $0 != ";" })
        guard let first = key.utf8.first, isLetter(first) || first == UInt8(ascii: "*"),
            key.utf8.allSatisfy({ isLetter($0) || isDigit($0) || "_-.*".utf8.contains($0) })
        else { return nil }
        let rest = text.dropFirst(key.count)
        guard rest.first == "=" else { return (key, .isTrue) }
        let item = rest.dropFirst()
        let bare = item.prefix { $0 != ";" }
        guard let start = bare.utf8.first else { return nil }
        switch start {
        case UInt8(ascii: "?"):
            if bare == "?1" { return (key, .isTrue) }
            return bare == "?0" ? (key, .other) : nil
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            if bare.utf8.allSatisfy(isDigit) { return bare.utf8.count <= 15 ? (key, .integer(bare)) : nil }
            return Double(bare) == nil ? nil : (key, .other)
        case UInt8(ascii: "-"): return Double(bare) == nil ? nil : (key, .other)
        case UInt8(ascii: "\""): return item.utf8.dropFirst().contains(start) ? (key, .other) : nil
        case UInt8(ascii: ":"), UInt8(ascii: "("), UInt8(ascii: "@"), UInt8(ascii: "*"): return (key, .other)
        default: return isLetter(start | 0x20) ? (key, .other) : nil
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") }
    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
