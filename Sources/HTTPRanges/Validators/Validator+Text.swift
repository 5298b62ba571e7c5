import ByteRanges

/// The form in which a catalog keeps a validator: one short line of text.
extension Validator: Codable, LosslessStringConvertible {
    /// One line: the tag, a bar, `Last-Modified`, a bar, `Date` in seconds since 1970; what is absent is empty. For
    /// example `"v1"|Sun, 06 Nov 1994 08:49:37 GMT|784111800`. ``init(_:)`` reads it back.
    package var description: String {
        let modifiedText = lastModifiedDate == nil ? nil : lastModified
        return "\(entityTag?.text ?? "")|\(modifiedText ?? "")|\(date.map { "\($0.secondsSince1970)" } ?? "")"
    }

    /// Reads what ``description`` gives; nil for anything else.
    package init?(_ description: String) {
        // From the right: a tag may hold bars, a date never does.
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

    /// Writes ``description`` as one string.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Reads what ``encode(to:)`` wrote; throws `DecodingError.dataCorrupted` for any other text.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let validator = Validator(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a validator's text")
        }
        self = validator
    }
}
