package import HTTPTypes

/// One version of a media file, as an origin's response describes it.
///
/// A part that is nil was not said: it neither proves nor contradicts anything.
package struct ResourceVersion: Sendable, Hashable, Codable {
    /// Tells this version from others.
    package var validator: Validator
    /// The length of the whole in bytes; nil while no response has told it.
    package var length: Int64?
    /// `Content-Type`, as it was sent.
    package var contentType: String?
    /// `Content-Encoding` other than `identity`, in lower case, such as `gzip`: the bytes and the length are then those
    /// of the encoded form, which players can't read (RFC 9110 §8.4).
    package var contentEncoding: String?
    /// Whether the origin serves ranges; nil if it didn't say: an absent `Accept-Ranges` is not a no (RFC 9110 §14.3).
    package var acceptsRanges: Bool?

    /// A version of these parts.
    package init(
        validator: Validator = Validator(), length: Int64? = nil, contentType: String? = nil,
        contentEncoding: String? = nil, acceptsRanges: Bool? = nil
    ) {
        self.validator = validator
        self.length = length
        self.contentType = contentType
        self.contentEncoding = contentEncoding
        self.acceptsRanges = acceptsRanges
    }

    /// Reads what a response's fields say, but for the length, which depends on the status.
    package init(fields: HTTPFields, length: Int64? = nil) {
        self.init(
            validator: Validator(fields: fields), length: length, contentType: fields[values: .contentType].first,
            contentEncoding: ResourceVersion.contentEncoding(fields),
            acceptsRanges: ResourceVersion.acceptsRanges(fields))
    }

    /// Whether bytes of several responses may be put together to this version under `rule` (RFC 9111 §3.4).
    ///
    /// If not, parts are of no use, not even one after another: ask for the whole in one request, without `Range`.
    package func canBeAssembled(under rule: CombiningRule) -> Bool {
        switch rule {
        case .strong: validator.isStrong
        case .immutable: true
        }
    }

    /// This version after a 304 with these fields has confirmed it: what they say takes the place of what was stored
    /// (RFC 9111 §3.2), but for the length, and for a tag that is the same in all but its strength.
    package func confirmed(by fields: HTTPFields) -> ResourceVersion {
        let new = ResourceVersion(fields: fields)
        var version = self
        version.contentType = new.contentType ?? contentType
        version.acceptsRanges = new.acceptsRanges ?? acceptsRanges
        version.validator.entityTag = validator.entityTag ?? new.validator.entityTag
        if new.validator.lastModified != nil {
            version.validator.lastModified = new.validator.lastModified
            version.validator.date = new.validator.date
        }
        return version
    }

    /// `type/subtype` in lower case, without parameters.
    var mediaType: String? {
        contentType.map { text in
            let essence = text.utf8.prefix { $0 != UInt8(ascii: ";") }
            let trimmed = FieldText.trimmed(Substring(essence))
            return String(decoding: trimmed.utf8.map(FieldText.lowercased), as: UTF8.self)
        }
    }

    private static func contentEncoding(_ fields: HTTPFields) -> String? {
        let codings = fields[values: .contentEncoding].flatMap { FieldText.elements($0) }.map {
            String(decoding: $0.utf8.map(FieldText.lowercased), as: UTF8.self)
        }.filter { $0 != "identity" }
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    private static func acceptsRanges(_ fields: HTTPFields) -> Bool? {
        let units = fields[values: .acceptRanges].flatMap { FieldText.elements($0) }
        func has(_ unit: String) -> Bool { units.contains { FieldText.equalIgnoringCase($0.utf8, unit.utf8) } }
        return has("bytes") ? true : has("none") ? false : nil
    }
}
