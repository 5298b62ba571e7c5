package import HTTPTypes

/// One version of a resource, as an origin's response describes it.
///
/// A property is `nil` if the origin did not send its value. Such a property proves nothing and contradicts nothing.
package struct ResourceVersion: Sendable, Hashable, Codable {
    /// The validator of this version.
    package var validator: Validator
    /// The length of the whole resource in bytes; `nil` before a response contains it.
    package var length: Int64?
    /// The value of `Content-Type`, as sent.
    package var contentType: String?
    /// The known content codings in `Content-Encoding`, in lower case, such as `gzip`.
    ///
    /// If there are any, the bytes and the length are those of the encoded form, which players can't read (RFC 9110
    /// §8.4). Players ignore unknown codings, and so does this type, because origins send `none`, `utf-8` or
    /// `aws-chunked` for bytes that are not encoded.
    package var contentEncoding: String?
    /// Whether the origin supports ranges; `nil` if unknown. An origin may support ranges without sending
    /// `Accept-Ranges` (RFC 9110 §14.3).
    package var acceptsRanges: Bool?

    /// Creates a version from these values.
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

    /// Parses the fields of a response, except the length, which depends on the status.
    package init(fields: HTTPFields, length: Int64? = nil) {
        self.init(
            validator: Validator(fields: fields), length: length, contentType: fields[values: .contentType].first,
            contentEncoding: ResourceVersion.contentEncoding(fields),
            acceptsRanges: ResourceVersion.acceptsRanges(fields))
    }

    /// Returns whether bytes of several responses may be combined into this version under `rule` (RFC 9111 §3.4).
    ///
    /// If not, parts are useless, even consecutive ones: request the whole resource immediately, without `Range`.
    package func canBeAssembled(under rule: CombiningRule) -> Bool {
        switch rule {
        case .strong: validator.isStrong
        case .immutable: true
        }
    }

    /// Returns this version after it was confirmed by a 304 with these fields, which replace the stored ones (RFC 9111
    /// §3.2).
    ///
    /// The length does not change, nor does a tag that differs only in its strength.
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

    /// The `type/subtype` in lower case, without parameters.
    var mediaType: String? {
        contentType.map { text in
            let essence = text.utf8.prefix { $0 != UInt8(ascii: ";") }
            let trimmed = FieldText.trimmed(Substring(essence))
            return String(decoding: trimmed.utf8.map(FieldText.lowercased), as: UTF8.self)
        }
    }

    /// The registered codings that change the bytes (RFC 9110 §8.4.1, and the IANA registry of content codings).
    private static let compressions: Set<String> = [
        "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip",
        "zstd",
    ]

    /// Returns whether `Content-Encoding` contains a known coding that changes the bytes.
    package static func isCompressed(_ fields: HTTPFields) -> Bool { contentEncoding(fields) != nil }

    private static func contentEncoding(_ fields: HTTPFields) -> String? {
        let codings = fields[values: .contentEncoding].flatMap { FieldText.elements($0) }.map {
            String(decoding: $0.utf8.map(FieldText.lowercased), as: UTF8.self)
        }.filter { compressions.contains($0) }
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    private static func acceptsRanges(_ fields: HTTPFields) -> Bool? {
        let units = fields[values: .acceptRanges].flatMap { FieldText.elements($0) }
        func has(_ unit: String) -> Bool { units.contains { FieldText.equalIgnoringCase($0.utf8, unit.utf8) } }
        return has("bytes") ? true : has("none") ? false : nil
    }
}

/// The stored part of a resource, against which a response is evaluated.
package struct StoredVersion: Sendable, Hashable {
    /// The version of the stored bytes.
    package var version: ResourceVersion
    /// The offset after the last stored byte, or 0 if no byte is stored. A length less than this offset is a
    /// contradiction.
    package var storedEnd: Int64

    /// Creates a stored version. If no byte is stored and no transfer is running, pass `nil` to ``PartialResponse``
    /// instead.
    package init(version: ResourceVersion, storedEnd: Int64) {
        self.version = version
        self.storedEnd = storedEnd
    }
}

/// The rule for combining bytes of two responses into one version.
package enum CombiningRule: Sendable, Hashable, Codable {
    /// Requires the same strong validator (RFC 9111 §3.4). Use this rule if the cache has no information about its
    /// origins.
    case strong
    /// Requires only that validators, length and type do not contradict each other. Use this rule for an app whose
    /// media never changes under its URL.
    case immutable
}

/// The result of comparing a response's version with the stored one.
enum VersionMatch {
    /// The bytes of both versions may be combined into this version.
    case same(ResourceVersion)
    /// There is no proof that the versions differ, and not enough proof that they are the same.
    case unproven
    /// The versions differ.
    case different

    /// Creates the result by comparing validators, lengths and encodings. If the validators are inconclusive, types are
    /// also compared.
    init(of placement: PartialResponse.BodyPlacement, to stored: StoredVersion, rule: CombiningRule) {
        let new = placement.version
        let old = stored.version
        if new.validator.contradicts(old.validator) || new.contentEncoding != old.contentEncoding
            || VersionMatch.lengthsContradict(placement, stored)
        {
            self = .different
        } else if new.validator.stronglyMatches(old.validator) {
            self = .same(VersionMatch.merged(new, into: old, isProven: true))
        } else if rule == .strong || new.contentEncoding != nil {
            self = .unproven
        } else if let newType = new.mediaType, let oldType = old.mediaType, newType != oldType {
            self = .different
        } else {
            self = .same(VersionMatch.merged(new, into: old, isProven: false))
        }
    }

    private static func lengthsContradict(_ placement: PartialResponse.BodyPlacement, _ stored: StoredVersion) -> Bool {
        if let new = placement.version.length {
            if let old = stored.version.length, old != new { return true }
            if new < stored.storedEnd { return true }
        }
        if let old = stored.version.length, let end = placement.end, end > old { return true }
        return false
    }

    /// Returns the newer description, with missing values from the older one.
    private static func merged(
        _ new: ResourceVersion, into old: ResourceVersion, isProven: Bool
    ) -> ResourceVersion {
        var merged = new
        merged.length = new.length ?? old.length
        merged.contentType = new.contentType ?? old.contentType
        merged.acceptsRanges = new.acceptsRanges ?? old.acceptsRanges
        merged.validator.entityTag = new.validator.entityTag ?? old.validator.entityTag
        if new.validator.lastModified == nil {
            merged.validator.lastModified = old.validator.lastModified
            merged.validator.date = old.validator.date
        }
        if !isProven { merged.validator = merged.validator.weakened }
        return merged
    }
}

extension PartialResponse.BodyPlacement {
    /// Returns whether it remains unproven that these bytes belong to the stored version: nothing proves it, and
    /// nothing disproves it.
    package func isUnproven(against stored: StoredVersion, rule: CombiningRule) -> Bool {
        if case .unproven = VersionMatch(of: self, to: stored, rule: rule) { true } else { false }
    }
}
