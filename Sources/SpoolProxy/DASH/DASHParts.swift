#if Proxy
import XMLTokens

/// What an MPD names: addresses, and templates that give more of them.
package struct DASHParts {
    /// The most addresses, templates and bases that are looked at: a film has some hundreds.
    package static let limit = 20_000

    /// Addresses that are named as they are.
    package private(set) var urls: [OriginURL] = []
    /// Templates in which times and numbers are still to be put (ISO/IEC 23009-1 §5.3.9.4.4).
    package private(set) var templates: [DASHTemplate] = []

    /// Lists what an MPD names. What can't be asked for through the proxy is left out, and so is what follows after
    /// ``limit``. Time and memory are proportional to the document's length, and to ``limit`` times an address's.
    ///
    /// - Parameter url: Where the MPD was found.
    /// - Throws: ``ManifestError``, as ``DASHManifest/init(parsing:)``.
    package init(of bytes: [UInt8], at url: OriginURL) throws(ManifestError) {
        let manifest = try DASHManifest(parsing: bytes)
        var walk = Walk(prefix: manifest.prefix, base: ReferenceRewriter(finalURL: url) { $0.description })
        var scanner = XMLScanner(bytes[...])
        while let token = try scanner.nextOfManifest() {
            guard walk.count < Self.limit else { break }
            walk.take(token)
        }
        (urls, templates) = (walk.urls, walk.templates)
    }
}

/// One walk through an MPD.
private struct Walk {
    /// What holds in an element.
    private struct Note {
        /// The templates, by attribute: a nearer element's go before those around it.
        var templates: [String: String] = [:]
        /// Whether it, or what is around it, lists segments.
        var listsSegments = false
        var id = ""
        var bandwidth = ""
    }

    private var elements: DASHElements<Note>
    var urls: [OriginURL] = []
    var templates: [DASHTemplate] = []
    private var namedCount = 0

    /// How many have been looked at.
    var count: Int { namedCount + elements.baseCount }

    init(prefix: ArraySlice<UInt8>, base: ReferenceRewriter) {
        elements = DASHElements(prefix: prefix, base: base, Note())
    }

    mutating func take(_ token: XMLScanner.Token) {
        switch token {
        case .start(let tag):
            start(tag)
            if tag.isEmpty { end() }
        case .end: end()
        case .text(let text): elements.add(text, isCharacterData: false)
        case .characterData(let text): elements.add(text, isCharacterData: true)
        }
    }

    private mutating func start(_ tag: XMLStartTag) {
        let parent = elements.last
        let inherited = Note(templates: parent.note.templates, listsSegments: parent.note.listsSegments)
        var element = elements.element(tag, inherited)
        switch element.name {
        case "Representation":
            element.note.id = tag.text("id") ?? ""
            element.note.bandwidth = tag.text("bandwidth") ?? ""
        case "SegmentTemplate":
            for attribute in ["media", "initialization", "index", "bitstreamSwitching"] {
                if let value = tag.text(attribute) { elements.last.note.templates[attribute] = value }
            }
        case "SegmentList": elements.last.note.listsSegments = true
        case "SegmentURL":
            for attribute in ["media", "index"] { note(tag.text(attribute), parent.base) }
        case "Initialization", "RepresentationIndex", "BitstreamSwitching": note(tag.text("sourceURL"), parent.base)
        case "InitializationSet": note(tag.text("initialization"), parent.base)
        default: break
        }
        elements.push(element)
    }

    private mutating func note(_ reference: String?, _ base: ReferenceRewriter?) {
        guard let reference, reference.utf8.count <= 2048 else { return }
        namedCount += 1
        if let url = base?.url(of: reference) { urls.append(url) }
    }

    private mutating func end() {
        guard let element = elements.pop(), element.name == "Representation", let base = element.base else { return }
        let note = element.note
        for value in note.templates.values {
            namedCount += 1
            let template = DASHTemplate(value, id: note.id, bandwidth: note.bandwidth, base: base)
            guard let template else { continue }
            if template.hasNumber {
                templates.append(template)
            } else if let url = try? OriginURL(template.head) {  // It was one before.
                urls.append(url)
            }
        }
        // One file, of which ranges are asked for.
        if note.templates.isEmpty || note.listsSegments { self.note("", base) }
    }
}
#endif
