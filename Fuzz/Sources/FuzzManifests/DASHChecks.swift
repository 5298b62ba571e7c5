import XMLTokens

/// What must hold of every MPD: what is written is read as before, and has the same tags.
enum DASHChecks {
    static func run(_ bytes: [UInt8], _ place: Place) {
        guard
            let written = try? DASHRewriting.rewrite(
                bytes, finalURL: place.final, requestedURL: place.requested, proxied: Place.path)
        else { return }
        guard let old = try? DASHManifest(parsing: bytes), let new = try? DASHManifest(parsing: written) else {
            preconditionFailure("what was rewritten can't be read")
        }
        precondition(old.isDynamic == new.isDynamic && old.minimumUpdatePeriod == new.minimumUpdatePeriod)
        let inserts = place.final != place.requested && !old.hasBaseURL && new.hasBaseURL
        precondition(tags(written).count == tags(bytes).count + (inserts ? 1 : 0))
        precondition(new.minimumUpdatePeriod ?? 0 >= 0)
    }

    private static func tags(_ bytes: [UInt8]) -> [[UInt8]] {
        var scanner = XMLScanner(bytes[...])
        var names: [[UInt8]] = []
        while let token = try? scanner.next() {
            if case .start(let tag) = token { names.append(Array(tag.name)) }
        }
        return names
    }
}
