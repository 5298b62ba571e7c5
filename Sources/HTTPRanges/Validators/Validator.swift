import ByteRanges
package import HTTPTypes

/// The validators of a version, which show whether the origin's resource is still the stored one (RFC 9110 §8.8).
///
/// The validators are the entity tag and the date of the last modification. ``ResourceVersion`` contains the length.
package struct Validator: Sendable, Hashable {
    /// The `ETag` of the response.
    package var entityTag: EntityTag?
    /// The `Last-Modified` of the response, as in the header; `nil` if it was not a date.
    package var lastModified: String?
    /// The `Date` of the response. A modification shortly before this date may not have been the last.
    package var date: HTTPDate?

    /// Creates a validator from these parts. A `lastModified` that is not an HTTP date is ignored.
    package init(entityTag: EntityTag? = nil, lastModified: String? = nil, date: HTTPDate? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified.flatMap { HTTPDate(parsing: $0) == nil ? nil : $0 }
        self.date = date
    }

    /// Parses the fields of a response. Malformed fields, and repeated ones with different values, count as absent or
    /// weak.
    package init(fields: HTTPFields) {
        func single(_ name: HTTPField.Name) -> String? {
            let values = fields[values: name]
            return Set(values).count == 1 ? values.first : nil
        }
        self.entityTag = EntityTag(fields: fields)
        self.lastModified = single(.lastModified).flatMap { HTTPDate(parsing: $0) == nil ? nil : $0 }
        self.date = single(.date).flatMap { HTTPDate(parsing: $0) }
    }

    /// The date of ``lastModified``.
    var lastModifiedDate: HTTPDate? { lastModified.flatMap { HTTPDate(parsing: $0) } }

    /// Whether an origin can use the validator to confirm a response in a conditional request (RFC 9110 §13.1).
    package var canConfirm: Bool { entityTag != nil || lastModified != nil }

    /// Whether the validator can prove that two responses contain the same bytes (RFC 9110 §8.8.2.2).
    ///
    /// A strong entity tag proves this. If there is no tag, so does a strong `Last-Modified`, which is at least 60
    /// seconds older than `Date`.
    package var isStrong: Bool {
        if let entityTag { return !entityTag.isWeak }
        return hasStrongDate
    }

    /// The text for `If-Range`, with which the origin sends the whole resource if its version differs (RFC 9110
    /// §13.1.5); `nil` unless ``isStrong``.
    package var ifRangeText: String? {
        guard isStrong else { return nil }
        return entityTag?.text ?? lastModified
    }

    /// Returns whether the validators prove that both versions are the same, byte for byte (RFC 9110 §8.8.3.2,
    /// §8.8.2.2).
    ///
    /// If both validators contain a tag, only the tags are compared. If either validator has no tag, equal strong dates
    /// are sufficient, unless the tag of the other validator is weak.
    package func stronglyMatches(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag { return entityTag.stronglyMatches(otherTag) }
        guard entityTag?.isWeak != true, other.entityTag?.isWeak != true else { return false }
        return hasStrongDate && other.hasStrongDate && lastModifiedDate == other.lastModifiedDate
    }

    /// Returns whether both validators may belong to the same version. Their tags must be equal, ignoring weakness. If
    /// either validator has no tag, their dates must be equal. The result is false if there is nothing to compare.
    package func weaklyMatches(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag { return entityTag.weaklyMatches(otherTag) }
        guard let lastModifiedDate else { return false }
        return lastModifiedDate == other.lastModifiedDate
    }

    /// Returns whether the validators prove that the versions differ: the tags differ, or the dates differ and the tags
    /// are not the same strong tag. The result is false if there is nothing to compare.
    package func contradicts(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag {
            if !entityTag.weaklyMatches(otherTag) { return true }
            if entityTag.stronglyMatches(otherTag) { return false }
        }
        guard let date = lastModifiedDate, let otherDate = other.lastModifiedDate else { return false }
        return date != otherDate
    }

    /// Returns whether both validators show that they belong to the same version.
    ///
    /// The validators must not contradict each other. Their tags must match weakly or, if one of them has no tag, their
    /// dates must be equal. The result is false if there is nothing to compare.
    package func confirms(_ other: Validator) -> Bool {
        guard !contradicts(other) else { return false }
        if entityTag != nil, other.entityTag != nil { return true }
        return lastModifiedDate != nil && lastModifiedDate == other.lastModifiedDate
    }

    /// Returns whether a request with this `If-Range` may receive a part of the version. If not, send the whole
    /// resource with status 200 (RFC 9110 §13.1.5).
    ///
    /// The result is true only for the same strong entity tag, or exactly the same strong date.
    package func satisfies(ifRange text: String) -> Bool {
        if let asked = EntityTag(parsing: text) { return entityTag?.stronglyMatches(asked) ?? false }
        guard let asked = HTTPDate(parsing: text) else { return false }
        return hasStrongDate && asked == lastModifiedDate
    }

    /// The validator for a version that also contains bytes to which it does not apply. It can prove that versions
    /// differ, but never that they are the same.
    var weakened: Validator {
        Validator(entityTag: entityTag?.weakened, lastModified: lastModified, date: nil)
    }

    private var hasStrongDate: Bool {
        guard let modified = lastModifiedDate, let date else { return false }
        let (age, overflow) = date.secondsSince1970.subtractingReportingOverflow(modified.secondsSince1970)
        return overflow ? date > modified : age >= 60
    }
}

/// The form of a validator in the catalog: one short line of text.
extension Validator: Codable, LosslessStringConvertible {
    /// The tag, `Last-Modified`, and `Date` in seconds since 1970, separated by vertical bars. Absent values are empty.
    ///
    /// For example `"v1"|Sun, 06 Nov 1994 08:49:37 GMT|784111800`. ``init(_:)`` parses it.
    package var description: String {
        let modifiedText = lastModifiedDate == nil ? nil : lastModified
        return "\(entityTag?.text ?? "")|\(modifiedText ?? "")|\(date.map { "\($0.secondsSince1970)" } ?? "")"
    }

    /// Parses the text of ``description``; `nil` for any other text.
    package init?(_ description: String) {
        // The search for the bars starts at the end, because a tag may contain bars, but a date can't.
        let utf8 = description.utf8
        let bar = UInt8(ascii: "|")
        guard let second = utf8.lastIndex(of: bar), let first = utf8[..<second].lastIndex(of: bar) else { return nil }
        let tagText = String(description[..<first])
        let modifiedText = String(description[utf8.index(after: first)..<second])
        let dateText = String(description[utf8.index(after: second)...])
        self.init()
        if !tagText.isEmpty {
            guard let tag = EntityTag(parsing: tagText) else { return nil }
            entityTag = tag
        }
        if !modifiedText.isEmpty {
            guard HTTPDate(parsing: modifiedText) != nil else { return nil }
            lastModified = modifiedText
        }
        if !dateText.isEmpty {
            guard let seconds = Int64(dateText), seconds.magnitude <= NumberLimits.seconds else { return nil }
            date = HTTPDate(secondsSince1970: seconds)
        }
    }

    /// Encodes ``description`` as one string.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Decodes the text that ``encode(to:)`` writes; throws `DecodingError.dataCorrupted` for any other text.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let validator = Validator(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not the text of a validator")
        }
        self = validator
    }
}

/// An origin's name for one version of a resource (`ETag`, RFC 9110 §8.8.3).
///
/// Two versions with the same strong tag are identical byte for byte. Equal weak tags indicate only equivalent content.
/// Tags are compared by their bytes, not as text, so that different tags are never equal.
package struct EntityTag: Sendable, Hashable {
    /// The text between the quotes.
    package let value: String
    /// Whether the tag is weak (`W/`).
    package let isWeak: Bool

    /// Creates a tag; `nil` if `value` contains a quote, a space, a control character, or U+FFFD.
    ///
    /// U+FFFD replaces bytes that were not UTF-8, so two different tags could appear equal.
    package init?(value: String, isWeak: Bool = false) {
        guard value.utf8.allSatisfy(EntityTag.isTagByte), !value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        self.value = value
        self.isWeak = isWeak
    }

    /// Parses an entity tag, `"…"` or `W/"…"`. The result is `nil` for all other text, including text without quotes,
    /// and for bytes that are not UTF-8.
    package init?(parsing text: String) {
        var rest = FieldText.trimmed(text[...]).utf8
        let isWeak = rest.starts(with: "W/".utf8)
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == UInt8(ascii: "\""), rest.last == UInt8(ascii: "\"") else { return nil }
        self.init(value: String(Substring(rest.dropFirst().dropLast())), isWeak: isWeak)
    }

    /// Parses the tag of a response.
    ///
    /// A tag without quotes is unreliable, and so are several different tags. The result is then a weak tag, which can
    /// prove that two versions differ, but never that they are the same.
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

    /// The value of the header: `"…"` or `W/"…"`.
    package var text: String { isWeak ? "W/\"\(value)\"" : "\"\(value)\"" }

    /// Returns whether both tags are strong and equal (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Returns whether both tags are equal, ignoring their weakness (RFC 9110 §8.8.3.2).
    package func weaklyMatches(_ other: EntityTag) -> Bool {
        value.utf8.elementsEqual(other.value.utf8)
    }

    /// The same tag as a weak tag, which does not prove that bytes are equal.
    var weakened: EntityTag { EntityTag(unchecked: value, isWeak: true) }

    private init(unchecked value: String, isWeak: Bool) {
        self.value = value
        self.isWeak = isWeak
    }

    /// Returns whether a byte is a character of `etagc` (RFC 9110 §8.8.3).
    private static func isTagByte(_ byte: UInt8) -> Bool {
        byte == 0x21 || (byte >= 0x23 && byte != 0x7F)
    }

    /// Returns whether the tags have the same bytes and strength. Unlike `==` of `String`, it ignores Unicode
    /// equivalence.
    package static func == (one: EntityTag, other: EntityTag) -> Bool {
        one.isWeak == other.isWeak && one.weaklyMatches(other)
    }

    /// Hashes bytes and strength.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        for byte in value.utf8 { hasher.combine(byte) }
    }
}
