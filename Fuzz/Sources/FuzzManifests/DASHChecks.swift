import XMLTokens

@testable import SpoolStreams

/// The checks for every MPD: a rewritten manifest can be parsed, and has the same properties and tags.
enum DASHChecks {
    static func run(_ bytes: [UInt8], _ place: Place) {
        guard let old = try? DASHDocument(parsing: bytes, at: place.final) else { return }
        let parts = DASHParts(of: old)
        precondition(parts.urls.count + parts.templates.count <= 2 * DASHParts.limit)
        checkFilter(old)
        guard let written = try? old.rewritten(requestedURL: place.requested, proxied: Place.path) else { return }
        guard let new = try? DASHDocument(parsing: written, at: place.final) else {
            preconditionFailure("the rewritten manifest can't be parsed")
        }
        precondition(old.isDynamic == new.isDynamic && old.minimumUpdatePeriod == new.minimumUpdatePeriod)
        let inserts = place.final != place.requested && !old.hasBaseURL && new.hasBaseURL
        precondition(tags(written).count == tags(bytes).count + (inserts ? 1 : 0))
        precondition(new.minimumUpdatePeriod ?? 0 >= 0)
    }

    /// Checks that a document that is filtered to the first representation of each set contains these representations.
    private static func checkFilter(_ document: DASHDocument) {
        guard let presentation = try? document.presentation() else { return }
        for period in presentation.periods.indices { checkFiles(presentation, period, document.url) }
        var filtered = document
        filtered.filter(
            presentation.periods.map { period in
                period.sets.map { set in set.representations.indices.map { $0 == 0 ? .whole : .none } }
            })
        guard let rest = try? filtered.presentation(), let text = try? filtered.rewritten(proxied: \.description),
            let seen = try? DASHDocument(parsing: text, at: document.url).presentation()
        else { preconditionFailure("the filtered manifest can't be parsed") }
        let counts = { (presentation: DASHPresentation) in
            presentation.periods.map { $0.sets.map(\.representations.count) }
        }
        precondition(counts(rest) == counts(seen))
    }

    /// Checks that the first files of each representation have a range of bytes that can be requested, if any.
    private static func checkFiles(_ presentation: DASHPresentation, _ index: Int, _ url: OriginURL) {
        let duration = presentation.duration(of: index)
        for representation in presentation.periods[index].sets.flatMap(\.representations).prefix(20) {
            for seconds in [nil, 0, 5, Double.infinity] {
                var files = presentation.files(of: representation, until: seconds, period: duration, url)
                for _ in 0..<20 {
                    guard let file = try? files.next() else { break }
                    precondition(file.byteRange.map { $0.lowerBound >= 0 && !$0.isEmpty } ?? true)
                }
            }
        }
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
