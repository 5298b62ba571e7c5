#if Proxy
import ByteRanges
import XMLTokens

/// What an MPD says of the media that players choose from (ISO/IEC 23009-1 §5.3).
struct DASHPresentation {
    /// Media of one quality.
    struct Representation {
        var id = ""
        var bandwidth = ""
        /// What references are relative to; nil where that can't be asked for.
        var base: ReferenceRewriter?
        var segments = DASHSegments()
        /// Where its element stands in the MPD.
        var place = 0..<0
    }

    /// Representations of the same content.
    struct AdaptationSet {
        /// `video`, `audio`, `text` or nothing.
        var kind = ""
        var representations: [Representation] = []
        /// Where its element stands in the MPD.
        var place = 0..<0
    }

    /// A part of the time.
    struct Period {
        /// Seconds; nil where nothing says it.
        var start: Double?
        var duration: Double?
        var sets: [AdaptationSet] = []
    }

    /// In order of time.
    private(set) var periods: [Period] = []
    private var duration: Double?

    /// The most representations and list entries that are looked at.
    private static let limit = DASHParts.limit

    /// - Throws: ``ManifestError``: as ``DASHManifest/init(parsing:)``; `live` for one without end.
    init(parsing bytes: [UInt8], at url: OriginURL) throws(ManifestError) {
        let manifest = try DASHManifest(parsing: bytes)
        guard !manifest.isDynamic else {
            throw ManifestError(.live, "the stream at \(url.nameForMessages) is live: it has no end to bring it up to")
        }
        var walk = Walk(prefix: manifest.prefix, base: ReferenceRewriter(finalURL: url) { $0.description })
        var scanner = XMLScanner(bytes[...])
        while let token = try scanner.nextOfManifest() {
            guard walk.count < Self.limit else {
                throw ManifestError(.tooLarge, "the MPD at \(url.nameForMessages) has more than \(Self.limit) entries")
            }
            walk.take(token, until: scanner.position)
        }
        (periods, duration) = (walk.periods, walk.duration)
    }

    /// How long a period is, in seconds; nil where nothing says it.
    func duration(of index: Int) -> Double? {
        if let duration = periods[index].duration { return duration }
        let start = periods[index].start ?? (index == 0 ? 0 : nil)
        guard let start else { return nil }
        let end = index + 1 < periods.count ? periods[index + 1].start : duration
        return end.map { max(0, $0 - start) }
    }
}

/// One walk through an MPD.
private struct Walk {
    private var elements: DASHElements<DASHSegments>
    private(set) var periods: [DASHPresentation.Period] = []
    private(set) var duration: Double?
    private(set) var count = 0
    private var representation: DASHPresentation.Representation?

    init(prefix: ArraySlice<UInt8>, base: ReferenceRewriter) {
        elements = DASHElements(prefix: prefix, base: base, DASHSegments())
    }

    mutating func take(_ token: XMLScanner.Token, until position: Int) {
        switch token {
        case .start(let tag):
            start(tag)
            if tag.isEmpty { end(at: position) }
        case .end: end(at: position)
        case .text(let text): elements.add(text, isCharacterData: false)
        case .characterData(let text): elements.add(text, isCharacterData: true)
        }
    }

    private func number(_ tag: XMLStartTag, _ attribute: String) -> Int64? {
        tag.value(attribute).flatMap { DecimalNumbers.integer(XMLText.trimmed($0)) }
    }

    /// `first-last`, as bytes.
    private func range(_ tag: XMLStartTag, _ attribute: String) -> Range<Int64>? {
        let bounds = tag.text(attribute)?.split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard bounds.count == 2, let first = Int64(bounds[0]), let last = Int64(bounds[1]), first >= 0, last >= first,
            last < NumberLimits.byteOffset
        else { return nil }
        return first..<last + 1
    }

    private mutating func start(_ tag: XMLStartTag) {
        let element = elements.element(tag, elements.last.note)
        switch element.name {
        case "MPD": duration = tag.value("mediaPresentationDuration").flatMap { DASHManifest.seconds($0) }
        case "Period":
            periods.append(
                DASHPresentation.Period(
                    start: tag.value("start").flatMap { DASHManifest.seconds($0) },
                    duration: tag.value("duration").flatMap { DASHManifest.seconds($0) }))
        case "AdaptationSet":
            guard !periods.isEmpty else { break }
            periods[periods.count - 1].sets.append(DASHPresentation.AdaptationSet(kind: kind(tag)))
        case "Representation":
            count += 1
            representation = DASHPresentation.Representation(
                id: tag.text("id") ?? "", bandwidth: tag.text("bandwidth") ?? "")
            if let last = periods.last?.sets.indices.last, periods[periods.count - 1].sets[last].kind.isEmpty {
                periods[periods.count - 1].sets[last].kind = kind(tag)
            }
        case "SegmentTemplate", "SegmentList", "SegmentBase":
            var segments = elements.last.note
            note(tag, element.name, &segments)
            elements.last.note = segments
        case "SegmentTimeline": change(above: 2) { $0.timeline = [] }
        case "S":
            count += 1
            let entry = DASHSegments.Entry(
                time: number(tag, "t"), duration: number(tag, "d") ?? 0,
                count: tag.text("r").map { $0.hasPrefix("-") ? nil : Int64($0).map { min($0, 1 << 40) + 1 } ?? 1 } ?? 1
            )
            change(above: 3) { $0.timeline?.append(entry) }
        case "SegmentURL":
            count += 1
            let listed = DASHSegments.Listed(reference: tag.text("media") ?? "", byteRange: range(tag, "mediaRange"))
            change(above: 2) { $0.list?.append(listed) }
        case "Initialization":
            let (reference, bytes) = (tag.text("sourceURL"), range(tag, "range"))
            change(above: 2) {
                $0.initializationReference = reference ?? ""
                $0.initializationRange = bytes
            }
        default: break
        }
        elements.push(element)
    }

    private func kind(_ tag: XMLStartTag) -> String {
        let type = tag.text("contentType") ?? tag.text("mimeType") ?? ""
        return String(type.prefix { $0 != "/" }).lowercased()
    }

    /// Changes what holds for the element that is so many above the one that begins.
    private mutating func change(above: Int, _ change: (inout DASHSegments) -> Void) {
        guard elements.open.count >= above else { return }
        change(&elements.open[elements.open.count - above].note)
    }

    private func note(_ tag: XMLStartTag, _ name: String, _ segments: inout DASHSegments) {
        if let value = tag.text("media") { segments.media = value }
        if let value = tag.text("initialization") { segments.initialization = value }
        if let value = number(tag, "timescale"), value > 0 { segments.timescale = value }
        if let value = number(tag, "duration") { segments.duration = value }
        if let value = number(tag, "startNumber") { segments.startNumber = value }
        if let value = range(tag, "indexRange") { segments.indexRange = value }
        if name == "SegmentList" { segments.list = [] }
    }

    private mutating func end(at position: Int) {
        guard let element = elements.pop() else { return }
        switch element.name {
        case "Representation":
            guard var done = representation.take(), let last = periods.last?.sets.indices.last else { return }
            (done.base, done.segments, done.place) = (element.base, element.note, element.start..<position)
            periods[periods.count - 1].sets[last].representations.append(done)
        case "AdaptationSet":
            guard let last = periods.last?.sets.indices.last else { return }
            periods[periods.count - 1].sets[last].place = element.start..<position
        default: break
        }
    }
}
#endif
