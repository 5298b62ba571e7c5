/// How a response's version compares with the stored one.
enum VersionMatch {
    /// Bytes of both may be put together; the version that they then are.
    case same(ResourceVersion)
    /// Nothing proves that they differ, and not enough that they are the same.
    case unproven
    /// They differ.
    case different

    /// Compares validators, lengths, encodings and, where the validators don't decide, types.
    init(of landing: PartialResponse.Landing, to stored: StoredVersion, rule: CombiningRule) {
        let new = landing.version
        let old = stored.version
        if new.validator.contradicts(old.validator) || new.contentEncoding != old.contentEncoding
            || VersionMatch.lengthsContradict(landing, stored)
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

    private static func lengthsContradict(_ landing: PartialResponse.Landing, _ stored: StoredVersion) -> Bool {
        if let new = landing.version.length {
            if let old = stored.version.length, old != new { return true }
            if new < stored.storedEnd { return true }
        }
        if let old = stored.version.length, let end = landing.end, end > old { return true }
        return false
    }

    /// Both descriptions together: the newer one, and from the older what it leaves out.
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

extension PartialResponse.Landing {
    /// Whether there is no proof that these bytes are of the stored version, and none that they are of another one.
    package func isUnproven(against stored: StoredVersion, rule: CombiningRule) -> Bool {
        if case .unproven = VersionMatch(of: self, to: stored, rule: rule) { true } else { false }
    }
}
