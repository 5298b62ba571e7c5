import ByteRanges
import XMLTokens

/// A parser that reads the elements of an MPD once, for ``DASHDocument``.
struct DASHParser {
    /// The maximum number of representations, and of entries in lists and timelines.
    static let maximumEntries = 20_000
    /// The maximum number of prefixes that an element and those around it declare for the namespace of DASH.
    static let maximumPrefixes = 16

    /// A URL to which references are relative.
    private struct Base {
        /// The index in ``bases``.
        let index: Int
        /// The rewriter that resolves references, or `nil` if the URL cannot be requested through the proxy.
        let rewriter: ReferenceRewriter?
        /// The properties of the alternatives that further `BaseURL` elements specify.
        var alternatives: Bases

        init(index: Int, rewriter: ReferenceRewriter?, alternatives: Bases? = nil) {
            (self.index, self.rewriter) = (index, rewriter)
            self.alternatives = alternatives ?? Bases(rewriter)
        }
    }

    /// A summary of the bases to which a reference is relative.
    ///
    /// An absolute path, such as `/a.mp4`, refers to a different origin for each base. After rewriting, only a relative
    /// path can refer to several origins. It starts with `../` for each directory of the bases.
    private struct Bases {
        /// The number of directories, or `nil` if it differs between the bases.
        private(set) var depth: Int?
        /// One of the origins, or `nil` if a base cannot be requested through the proxy.
        private(set) var origin: OriginURL?
        private(set) var hasSeveralOrigins = false

        init(_ rewriter: ReferenceRewriter?) { (depth, origin) = (rewriter?.depth, rewriter?.finalURL) }

        mutating func add(_ other: Bases) {
            if depth != other.depth { depth = nil }
            hasSeveralOrigins = hasSeveralOrigins || other.hasSeveralOrigins || !isSameOrigin(as: other.origin)
        }

        /// Returns whether both URLs can be requested through the proxy and have the same origin.
        func isSameOrigin(as url: OriginURL?) -> Bool {
            guard let origin, let url else { return false }
            return origin.isSameOrigin(as: url)
        }

        /// Returns the bases that result from a relative reference, which changes the number of directories from
        /// `start` to `depth`.
        func moved(to depth: Int?, from start: Int?) -> Bases {
            var moved = self
            moved.depth = self.depth == start ? depth : nil
            return moved
        }
    }

    /// An element whose end has not been read yet.
    private struct Element {
        let tagName: ArraySlice<UInt8>
        /// The name without the namespace prefix of DASH's elements. It is empty for an element in a different
        /// namespace.
        let name: String
        /// The prefixes that are declared for the namespace of DASH in the element.
        let prefixes: [ArraySlice<UInt8>]
        /// The position of the element's start tag.
        let start: Int
        /// The base of the element's own `BaseURL` elements.
        let outer: Base
        /// The base of the references in the element, from its first `BaseURL`.
        var inner: Base
        var hasBase = false
        /// Whether references in the element stay unchanged.
        let isIgnored: Bool
        /// The text of the element, without surrounding white space.
        var text: ArraySlice<UInt8>?
        var isCharacterData = false
        /// Whether the element contains more than one run of text, or both text and child elements.
        var isMixed = false
        /// The segments that the element describes for itself and its descendants.
        var segments: DASHSegments
        /// The bases of the representations in the element, or `nil` if there are no representations.
        var bases: Bases?
        /// The indices of the references that belong to these representations.
        var pending: [Int] = []
    }

    private(set) var prefix: [UInt8] = []
    /// The namespace of DASH, as the root declares it for its own prefix.
    private var namespace = "urn:mpeg:dash:schema:mpd:2011"
    private(set) var firstChild: Int?
    private(set) var hasBaseURL = false
    private(set) var references: [DASHDocument.Reference] = []
    private(set) var bases: [DASHDocument.Base]
    private(set) var media = DASHPresentation()
    /// The ranges of the elements for content steering and for patches.
    private(set) var removable: [Range<Int>] = []
    /// The allowed names of the root, without its prefix.
    private let roots: Set<String>
    private var open: [Element] = []
    private var baseCount = 0
    private var entryCount = 0
    private var representationCount = 0
    private var representation: DASHPresentation.Representation?
    private let document: Base

    init(_ url: OriginURL, roots: Set<String>) {
        self.roots = roots
        bases = [DASHDocument.Base(url: url, parent: 0)]
        document = Base(index: 0, rewriter: ReferenceRewriter(finalURL: url))
    }

    /// Whether the number of entries has reached ``maximumEntries``. Further entries of lists and timelines are not in
    /// ``media``.
    var hasTooManyEntries: Bool { entryCount >= Self.maximumEntries }

    /// Reads the whole document.
    ///
    /// - Returns: The tag of the root.
    /// - Throws: The same errors as ``DASHDocument/init(parsing:at:)``.
    mutating func read(_ bytes: [UInt8]) throws(ManifestError) -> XMLStartTag {
        guard bytes.count <= DASHDocument.maximumBytes else {
            throw ManifestError(
                .tooLarge, "the MPD has \(bytes.count) bytes (limit: \(DASHDocument.maximumBytes) bytes)")
        }
        var scanner = XMLScanner(bytes[...])
        var root: XMLStartTag?
        while let token = try next(&scanner) {
            switch token {
            case .start(let tag):
                if open.isEmpty {
                    guard root == nil, roots.contains(String(decoding: tag.name.localName, as: UTF8.self)) else {
                        throw ManifestError(
                            .malformed,
                            "the XML document must have exactly one root element, named "
                                + roots.sorted().joined(separator: " or "))
                    }
                    root = tag
                    prefix = Array(tag.name[..<tag.name.localName.startIndex])
                    let own = String(decoding: prefix.dropLast(), as: UTF8.self)
                    let declared = tag.value(prefix.isEmpty ? "xmlns" : "xmlns:" + own)
                    namespace = declared.flatMap { XMLText.unescaped($0) } ?? namespace
                }
                try start(tag)
                if tag.isEmpty { try end(at: scanner.position) }
            case .end(let name):
                guard let last = open.last, last.tagName.elementsEqual(name) else {
                    throw ManifestError(
                        .malformed, "the end tag at byte \(name.startIndex) of the MPD does not match a start tag")
                }
                try end(at: scanner.position)
            case .text(let text): try read(text, isCharacterData: false)
            case .characterData(let text): try read(text, isCharacterData: true)
            }
        }
        guard let root, open.isEmpty else { throw ManifestError(.malformed, "the MPD ends inside its root element") }
        return root
    }

    private func next(_ scanner: inout XMLScanner) throws(ManifestError) -> XMLScanner.Token? {
        do throws(XMLError) {
            return try scanner.next()
        } catch {
            let code: ManifestError.Code =
                switch error {
                case .documentType: .refused
                case .malformed: .malformed
                case .tooLarge: .tooLarge
                }
            throw ManifestError(code, "the MPD cannot be read: \(error)")
        }
    }

    /// Returns the prefixes, without colons, that are declared for the namespace of DASH in an element (Namespaces in
    /// XML 1.0, §6.1).
    private func declaredPrefixes(in tag: XMLStartTag) throws(ManifestError) -> [ArraySlice<UInt8>] {
        var prefixes = open.last?.prefixes ?? []
        for (name, value) in tag.attributes where name.elementsEqual("xmlns".utf8) || name.starts(with: "xmlns:".utf8) {
            let declared = name.dropFirst(6)
            prefixes.removeAll { $0 == declared }
            guard XMLText.unescaped(value) == namespace else { continue }
            guard prefixes.count < Self.maximumPrefixes else {
                throw ManifestError(
                    .tooLarge, "the MPD declares more than \(Self.maximumPrefixes) prefixes for its namespace")
            }
            prefixes.append(declared)
        }
        return prefixes
    }

    // MARK: Elements

    private mutating func start(_ tag: XMLStartTag) throws(ManifestError) {
        let local = tag.name.localName
        let own = tag.name[..<local.startIndex]
        let prefixes = try declaredPrefixes(in: tag)
        // Some players ignore namespaces, so the prefix of the root is recognized even if it is declared again.
        let isKnown = local.count <= 32 && (own.elementsEqual(prefix) || prefixes.contains(own.dropLast()))
        let name = isKnown ? String(decoding: local, as: UTF8.self) : ""
        if open.count == 1, firstChild == nil, !local.elementsEqual("ProgramInformation".utf8) {
            firstChild = tag.start
        }
        let outer = open.last?.inner ?? document
        let isIgnored = open.last?.isIgnored == true || name == "ContentProtection"
        let segments = open.last?.segments ?? DASHSegments()
        let first = references.count
        if !isIgnored {
            addReferences(of: tag, name, outer)
            readMedia(tag, name)
        }
        if !tag.isEmpty, !open.isEmpty { open[open.count - 1].isMixed = true }
        open.append(
            Element(
                tagName: tag.name, name: name, prefixes: prefixes, start: tag.start, outer: outer, inner: outer,
                isIgnored: isIgnored, segments: segments,
                pending: (first..<references.count).filter { [.media, .template].contains(references[$0].kind) }))
        guard tag.isEmpty || open.count <= DASHDocument.maximumDepth else {
            throw ManifestError(
                .tooLarge, "the elements of the MPD are nested more than \(DASHDocument.maximumDepth) levels deep")
        }
    }

    private mutating func read(_ text: ArraySlice<UInt8>, isCharacterData: Bool) throws(ManifestError) {
        let trimmed = XMLText.trimmed(text)
        guard let last = open.indices.last else {
            guard trimmed.isEmpty else {
                throw ManifestError(.malformed, "the MPD has text outside its root element, at byte \(text.startIndex)")
            }
            return
        }
        guard !trimmed.isEmpty else { return }
        if open.count == 2, open[last].name == "BaseURL" { hasBaseURL = true }
        if open[last].text != nil { open[last].isMixed = true }
        open[last].text = trimmed
        open[last].isCharacterData = isCharacterData
    }

    private mutating func end(at position: Int) throws(ManifestError) {
        guard let element = open.popLast(), !element.isIgnored else { return }
        if let text = element.text, !element.isMixed { try read(text, of: element) }
        settlePending(of: element)
        switch element.name {
        case "Representation":
            guard var done = representation.take(), let set = media.lastSet,
                representationCount < Self.maximumEntries
            else { return }
            representationCount += 1
            (done.base, done.segments) = (element.inner.rewriter?.finalURL, element.segments)
            done.place = element.start..<position
            media.periods[set.period].sets[set.index].representations.append(done)
        case "AdaptationSet":
            guard let set = media.lastSet else { return }
            media.periods[set.period].sets[set.index].place = element.start..<position
        case "ContentSteering", "PatchLocation": removable.append(element.start..<position)
        default: break
        }
    }

    // MARK: References

    /// Determines how absolute paths in an element that has ended are rewritten.
    ///
    /// If the element does not contain representations, its references belong to the representations of the element
    /// around it.
    private mutating func settlePending(of element: Element) {
        let bases = element.name == "Representation" ? element.inner.alternatives : element.bases
        let parent = open.indices.last
        guard let bases else {
            if let parent { open[parent].pending += element.pending }
            return
        }
        if bases.hasSeveralOrigins || !bases.isSameOrigin(as: element.inner.rewriter?.finalURL) {
            for index in element.pending { references[index].depth = bases.depth }
        }
        guard let parent else { return }
        if open[parent].bases == nil { open[parent].bases = bases } else { open[parent].bases?.add(bases) }
    }

    /// Reads the text of an element that has ended.
    private mutating func read(_ text: ArraySlice<UInt8>, of element: Element) throws(ManifestError) {
        switch element.name {
        case "BaseURL":
            guard let last = open.indices.last else { return }
            baseCount += 1
            guard baseCount <= DASHDocument.maximumBases else {
                throw ManifestError(.tooLarge, "the MPD has more than \(DASHDocument.maximumBases) BaseURL elements")
            }
            let outer = open[last].outer
            add(text, .base, outer, isCharacterData: element.isCharacterData)
            if outer.alternatives.hasSeveralOrigins {
                references[references.count - 1].depth = outer.alternatives.depth
            }
            let reference =
                element.isCharacterData ? String(validating: text, as: UTF8.self) : XMLText.unescaped(text)
            guard let reference else { return }
            // An absolute reference does not need a base.
            let parts = URIReference(reference)
            let isAbsolute = parts.scheme != nil
            let rewriter = (outer.rewriter ?? (isAbsolute ? document.rewriter : nil))?.relative(to: reference)
            var alternatives = Bases(rewriter)
            // A relative reference has one target for each alternative of the outer base.
            if !isAbsolute, parts.authority == nil, outer.alternatives.hasSeveralOrigins {
                alternatives.add(outer.alternatives.moved(to: alternatives.depth, from: outer.rewriter?.depth))
            }
            guard !open[last].hasBase else {
                open[last].inner.alternatives.add(alternatives)
                return
            }
            open[last].hasBase = true
            open[last].inner = Base(index: bases.count, rewriter: rewriter, alternatives: alternatives)
            bases.append(DASHDocument.Base(url: rewriter?.finalURL, parent: outer.index))
        case "Location", "PatchLocation", "ContentSteering", "ImportedMPD":
            add(text, .document, document, isCharacterData: element.isCharacterData)
        default: break
        }
    }

    private mutating func addReferences(of tag: XMLStartTag, _ name: String, _ base: Base) {
        let (kind, names): (DASHDocument.ReferenceKind, [String]) =
            switch name {
            case "SegmentTemplate": (.template, ["media", "initialization", "index", "bitstreamSwitching"])
            case "SegmentURL": (.media, ["media", "index"])
            case "Initialization", "RepresentationIndex", "BitstreamSwitching": (.media, ["sourceURL"])
            case "InitializationSet": (.media, ["initialization"])
            // The MPDs of list presentations, and of events for alternative presentations.
            case "ImportedMPD": (.document, ["uri"])
            case "ReplacePresentation", "InsertPresentation": (.document, ["uri", "url"])
            default: (.document, [])
            }
        let listed = Self.listedKind(tag, name)
        for (attribute, value) in tag.attributes {
            if let listed, attribute.elementsEqual("value".utf8) {
                // White space separates the references.
                for piece in value.split(whereSeparator: XMLScanner.isSpace) { add(piece, listed, document) }
            } else if names.contains(where: { $0.utf8.elementsEqual(attribute) }) {
                add(XMLText.trimmed(value), kind, kind == .document ? document : base)
            } else if attribute.contains(UInt8(ascii: ":")), attribute.localName.elementsEqual("href".utf8) {
                add(XMLText.trimmed(value), .document, document)
            }
        }
    }

    /// Returns the kind of the references in the `value` attribute of an element, or `nil` if the attribute contains
    /// none.
    ///
    /// The references point to a clock (ISO/IEC 23009-1 §5.8.4.11), or to the MPD that follows or replaces this one
    /// (§5.11, §5.12).
    private static func listedKind(_ tag: XMLStartTag, _ name: String) -> DASHDocument.ReferenceKind? {
        guard ["UTCTiming", "SupplementalProperty", "EssentialProperty"].contains(name),
            let scheme = tag.text("schemeIdUri")
        else { return nil }
        if name == "UTCTiming" { return scheme.hasPrefix("urn:mpeg:dash:utc:http-") ? .clock : nil }
        return ["urn:mpeg:dash:mpd-chaining:2016", "urn:mpeg:dash:fallback:2016"].contains(scheme) ? .document : nil
    }

    private mutating func add(
        _ text: ArraySlice<UInt8>, _ kind: DASHDocument.ReferenceKind, _ base: Base, isCharacterData: Bool = false
    ) {
        references.append(
            DASHDocument.Reference(
                place: text.indices, kind: kind, base: base.index, isCharacterData: isCharacterData))
    }

    // MARK: Media

    private mutating func readMedia(_ tag: XMLStartTag, _ name: String) {
        switch name {
        case "MPD": media.duration = tag.duration("mediaPresentationDuration")
        case "Period":
            media.periods.append(
                DASHPresentation.Period(start: tag.duration("start"), duration: tag.duration("duration")))
        case "AdaptationSet":
            guard let period = media.periods.indices.last else { break }
            media.periods[period].sets.append(DASHPresentation.AdaptationSet(kind: tag.kind))
        case "Representation":
            entryCount += 1
            representation = DASHPresentation.Representation(
                id: tag.text("id") ?? "", bandwidth: tag.text("bandwidth") ?? "")
            guard let set = media.lastSet else { break }
            if media.periods[set.period].sets[set.index].kind.isEmpty {
                media.periods[set.period].sets[set.index].kind = tag.kind
            }
        case "SegmentTemplate", "SegmentList", "SegmentBase":
            change(above: 1) { $0.read(tag, isList: name == "SegmentList") }
        case "SegmentTimeline": change(above: 2) { $0.timeline = [] }
        case "S":
            guard countEntry() else { break }
            change(above: 3) { $0.timeline?.append(DASHSegments.Entry(tag)) }
        case "SegmentURL":
            guard countEntry() else { break }
            change(above: 2) { $0.list?.append(DASHSegments.Listed(tag)) }
        case "Initialization":
            change(above: 2) {
                $0.initializationReference = tag.text("sourceURL") ?? ""
                $0.initializationRange = tag.byteRange("range")
            }
        default: break
        }
    }

    /// Counts an entry of a list or timeline, and returns whether the limit allows it.
    private mutating func countEntry() -> Bool {
        entryCount += 1
        return !hasTooManyEntries
    }

    /// Changes the segments of an open element.
    ///
    /// - Parameter levels: The number of levels above the element that is being read.
    private mutating func change(above levels: Int, _ change: (inout DASHSegments) -> Void) {
        guard open.count >= levels else { return }
        change(&open[open.count - levels].segments)
    }
}

extension DASHPresentation {
    /// The position of the last adaptation set, if the last period has one.
    fileprivate var lastSet: (period: Int, index: Int)? {
        guard let period = periods.indices.last, let index = periods[period].sets.indices.last else { return nil }
        return (period, index)
    }
}

extension DASHSegments {
    /// Reads the attributes of an element that describes segments.
    fileprivate mutating func read(_ tag: XMLStartTag, isList: Bool) {
        if let value = tag.text("media") { media = value }
        if let value = tag.text("initialization") { initialization = value }
        if let value = tag.text("index") { index = value }
        if let value = tag.text("bitstreamSwitching") { bitstreamSwitching = value }
        if let value = tag.integer("timescale"), value > 0 { timescale = value }
        if let value = tag.integer("duration") { duration = value }
        if let value = tag.integer("startNumber") { startNumber = value }
        if let value = tag.byteRange("indexRange") { indexRange = value }
        if isList { list = [] }
    }
}

extension DASHSegments.Entry {
    /// Reads an `S` element.
    fileprivate init(_ tag: XMLStartTag) {
        time = tag.integer("t")
        duration = tag.integer("d") ?? 0
        let repeats = tag.text("r")
        let isOpen = repeats?.hasPrefix("-") ?? false
        count = isOpen ? nil : repeats.flatMap { Int64($0) }.map { min($0, 1 << 40) + 1 } ?? 1
    }
}

extension DASHSegments.Listed {
    /// Reads a `SegmentURL` element.
    fileprivate init(_ tag: XMLStartTag) {
        reference = tag.text("media") ?? ""
        byteRange = tag.byteRange("mediaRange")
    }
}

// MARK: Attributes

extension XMLStartTag {
    /// Returns the value of an attribute with its entities replaced, or `nil` if it is missing or cannot be read.
    fileprivate func text(_ attribute: String) -> String? {
        value(attribute).flatMap { XMLText.unescaped(XMLText.trimmed($0)) }
    }

    fileprivate func integer(_ attribute: String) -> Int64? {
        value(attribute).flatMap { DecimalNumbers.integer(XMLText.trimmed($0)) }
    }

    /// Returns the duration that an attribute specifies, in seconds.
    fileprivate func duration(_ attribute: String) -> Double? {
        value(attribute).flatMap { DecimalNumbers.duration($0) }
    }

    /// Parses a byte range in the form `FIRST-LAST`.
    fileprivate func byteRange(_ attribute: String) -> Range<Int64>? {
        let bounds = text(attribute)?.split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard bounds.count == 2, let first = Int64(bounds[0]), let last = Int64(bounds[1]), first >= 0, last >= first,
            last < NumberLimits.byteOffset
        else { return nil }
        return first..<last + 1
    }

    /// The kind of the media, such as `video`.
    fileprivate var kind: String {
        let type = text("contentType") ?? text("mimeType") ?? ""
        return String(type.prefix { $0 != "/" }).lowercased()
    }
}
