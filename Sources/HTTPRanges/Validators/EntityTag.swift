import HTTPTypes

/// The name that an origin gives to one version of a media file (`ETag`, RFC 9110 §8.8.3).
///
/// Two versions with the same strong tag are the same byte for byte; a weak one promises only the same meaning. Tags
/// are compared by their bytes, not as text, so that no two ever pass for equal because they look alike.
package struct EntityTag: Sendable, Hashable {
    /// The text between the quotes.
    package let value: String
    /// Whether it carries the mark `W/`.
    package let isWeak: Bool

    /// A tag; nil if `value` holds what a tag can't: a quote, a space, a control character, or U+FFFD, which stands
    /// for bytes that were not UTF-8, so that two tags with it may look the same and be different.
    package init?(value: String, isWeak: Bool = false) {
        guard value.utf8.allSatisfy(EntityTag.isTagByte), !value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        self.value = value
        self.isWeak = isWeak
    }

    /// Reads `"…"` or `W/"…"`; nil for anything else, also for a tag without quotes and for bytes that are not UTF-8.
    package init?(parsing text: String) {
        var rest = FieldText.trimmed(text[...]).utf8
        let isWeak = rest.starts(with: "W/".utf8)
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == UInt8(ascii: "\""), rest.last == UInt8(ascii: "\"") else { return nil }
        self.init(value: String(Substring(rest.dropFirst().dropLast())), isWeak: isWeak)
    }

    /// The tag of a response. One that is doubtful (no quotes, or several that differ) is taken as weak: it can show
    /// that two versions differ, never that they are the same.
    init?(fields: HTTPFields) {
        let values = fields[values: .eTag]
        guard let first = values.first else { return nil }
        if let tag = EntityTag(parsing: first), values.dropFirst().allSatisfy({ EntityTag(parsing: $0) == tag }) {
            self = tag
            return
        }
        let kept = values.joined(separator: ",").utf8.filter { $0 < 0x80 && EntityTag.isTagByte($0) }
        guard !kept.isEmpty else { return nil }
        self.value = String(decoding: kept, as: UTF8.self)
        self.isWeak = true
    }

    /// The header's value: `"…"` or `W/"…"`.
    package var text: String { isWeak ? "W/\"\(value)\"" : "\"\(value)\"" }

    /// Whether both are strong and the same (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Whether both are the same but for their weakness (RFC 9110 §8.8.3.2).
    package func weaklyMatches(_ other: EntityTag) -> Bool {
        value.utf8.elementsEqual(other.value.utf8)
    }

    /// The same tag, as one that no longer vouches for bytes.
    var weakened: EntityTag { EntityTag(unchecked: value, isWeak: true) }

    private init(unchecked value: String, isWeak: Bool) {
        self.value = value
        self.isWeak = isWeak
    }

    /// `etagc`, RFC 9110 §8.8.3
    private static func isTagByte(_ byte: UInt8) -> Bool {
        byte == 0x21 || (byte >= 0x23 && byte != 0x7F)
    }

    /// Same bytes and same strength; unlike `String`, without regard to Unicode equivalence.
    package static func == (one: EntityTag, other: EntityTag) -> Bool {
        one.isWeak == other.isWeak && one.weaklyMatches(other)
    }

    /// Hashes bytes and strength.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        for byte in value.utf8 { hasher.combine(byte) }
    }
}
