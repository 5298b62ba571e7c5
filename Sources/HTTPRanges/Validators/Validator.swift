package import HTTPTypes

/// Tells whether the media file at an origin is still the one of which bytes are stored (RFC 9110 §8.8).
///
/// Holds what a response says of its version: its entity tag, and when it was last modified. It doesn't hold the length;
/// ``ResourceVersion`` does.
package struct Validator: Sendable, Hashable {
    /// The response's `ETag`.
    package var entityTag: EntityTag?
    /// The response's `Last-Modified` as it stood in the header; nil if it was not a date.
    package var lastModified: String?
    /// When the origin made the response (`Date`): a modification shortly before it may not have been the last.
    package var date: HTTPDate?

    /// A validator of these parts. A `lastModified` that is no HTTP date counts as none.
    package init(entityTag: EntityTag? = nil, lastModified: String? = nil, date: HTTPDate? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified.flatMap { HTTPDate(parsing: $0) == nil ? nil : $0 }
        self.date = date
    }

    /// Reads a response's fields. Fields that are malformed, or that are there several times with different values,
    /// count as absent, or as weak.
    package init(fields: HTTPFields) {
        func single(_ name: HTTPField.Name) -> String? {
            let values = fields[values: name]
            return Set(values).count == 1 ? values.first : nil
        }
        self.entityTag = EntityTag(fields: fields)
        self.lastModified = single(.lastModified).flatMap { HTTPDate(parsing: $0) == nil ? nil : $0 }
        self.date = single(.date).flatMap { HTTPDate(parsing: $0) }
    }

    /// The moment that ``lastModified`` names.
    package var lastModifiedDate: HTTPDate? { lastModified.flatMap { HTTPDate(parsing: $0) } }

    /// Whether an origin can use it to confirm a response in a conditional request (RFC 9110 §13.1).
    package var canConfirm: Bool { entityTag != nil || lastModified != nil }

    /// Whether it can prove that two responses are of the same bytes: a strong entity tag; or, where there is no tag at
    /// all, a strong-enough `Last-Modified`, at least 60 seconds older than `Date` (RFC 9110 §8.8.2.2).
    package var isStrong: Bool {
        if let entityTag { return !entityTag.isWeak }
        return hasStrongDate
    }

    /// The text for `If-Range`, so that the origin sends the whole if its version is another (RFC 9110 §13.1.5);
    /// nil unless ``isStrong``.
    package var ifRangeText: String? {
        guard isStrong else { return nil }
        return entityTag?.text ?? lastModified
    }

    /// Whether both prove to be of the same version byte for byte (RFC 9110 §8.8.3.2, §8.8.2.2).
    ///
    /// Two tags decide alone. Where one side or both have none, equal and strong-enough dates do, unless the other
    /// side's tag is weak.
    package func stronglyMatches(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag { return entityTag.stronglyMatches(otherTag) }
        guard entityTag?.isWeak != true, other.entityTag?.isWeak != true else { return false }
        return hasStrongDate && other.hasStrongDate && lastModifiedDate == other.lastModifiedDate
    }

    /// Whether both may be of the same version: equal tags but for their weakness, or equal dates where one side has
    /// no tag. False if there is nothing to compare.
    package func weaklyMatches(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag { return entityTag.weaklyMatches(otherTag) }
        guard let lastModifiedDate else { return false }
        return lastModifiedDate == other.lastModifiedDate
    }

    /// Whether both show that they are of different versions: different tags; or, where not two equal strong tags
    /// decide, different dates. False if there is nothing to compare.
    package func contradicts(_ other: Validator) -> Bool {
        if let entityTag, let otherTag = other.entityTag {
            if !entityTag.weaklyMatches(otherTag) { return true }
            if entityTag.stronglyMatches(otherTag) { return false }
        }
        guard let date = lastModifiedDate, let otherDate = other.lastModifiedDate else { return false }
        return date != otherDate
    }

    /// Whether both validators show that they are of the same version.
    ///
    /// Their tags must match weakly or, if one of them has no tag, their dates must be equal. `false` if there is
    /// nothing to compare.
    package func confirms(_ other: Validator) -> Bool {
        guard !contradicts(other) else { return false }
        if entityTag != nil, other.entityTag != nil { return true }
        return lastModifiedDate != nil && lastModifiedDate == other.lastModifiedDate
    }

    /// Whether a request with this `If-Range` may be served a part of the version that this validates; if not,
    /// send the whole with status 200 (RFC 9110 §13.1.5).
    ///
    /// True only for the same strong entity tag, or exactly the same, strong-enough date.
    package func satisfies(ifRange text: String) -> Bool {
        if let asked = EntityTag(parsing: text) { return entityTag?.stronglyMatches(asked) ?? false }
        guard let asked = HTTPDate(parsing: text) else { return false }
        return hasStrongDate && asked == lastModifiedDate
    }

    /// The validator that is left when bytes were joined that this one can't vouch for: still able to show a difference, never sameness.
    var weakened: Validator {
        Validator(entityTag: entityTag?.weakened, lastModified: lastModified, date: nil)
    }

    private var hasStrongDate: Bool {
        guard let modified = lastModifiedDate, let date else { return false }
        let (age, overflow) = date.secondsSince1970.subtractingReportingOverflow(modified.secondsSince1970)
        return overflow ? date > modified : age >= 60
    }
}
