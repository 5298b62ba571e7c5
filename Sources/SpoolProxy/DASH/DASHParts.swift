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
    private struct Element {
        let name: String
        /// What references in it are relative to; nil where that can't be asked for.
        var base: ReferenceRewriter?
        var hasBase = false
        /// The templates that hold here, by attribute: a nearer element's go before those around it.
        var templates: [String: String]
        /// Whether it, or what is around it, lists segments.
        var listsSegments: Bool
        var id = ""
        var bandwidth = ""
        var text: ArraySlice<UInt8>?
        var isCharacterData = false
    }

    private let prefix: ArraySlice<UInt8>
    private var open: [Element]
    var urls: [OriginURL] = []
    var templates: [DASHTemplate] = []
    /// How many have been looked at.
    private(set) var count = 0

    init(prefix: ArraySlice<UInt8>, base: ReferenceRewriter) {
        self.prefix = prefix
        open = [Element(name: "", base: base, templates: [:], listsSegments: false)]
    }

    mutating func take(_ token: XMLScanner.Token) {
        switch token {
        case .start(let tag):
            start(tag)
            if tag.isEmpty { end() }
        case .end: end()
        case .text(let text): add(text, isCharacterData: false)
        case .characterData(let text): add(text, isCharacterData: true)
        }
    }

    private func name(_ name: ArraySlice<UInt8>) -> String {
        let local = name.localName
        guard local.count <= 32, name[..<local.startIndex].elementsEqual(prefix) else { return "" }
        return String(decoding: local, as: UTF8.self)
    }

    private func text(_ tag: XMLStartTag, _ attribute: String) -> String? {
        tag.value(attribute).flatMap { XMLText.unescaped(XMLText.trimmed($0)) }
    }

    private mutating func start(_ tag: XMLStartTag) {
        let parent = open[open.count - 1]
        var element = Element(
            name: name(tag.name), base: parent.base, templates: parent.templates, listsSegments: parent.listsSegments)
        switch element.name {
        case "Representation":
            element.id = text(tag, "id") ?? ""
            element.bandwidth = text(tag, "bandwidth") ?? ""
        case "SegmentTemplate":
            for attribute in ["media", "initialization", "index", "bitstreamSwitching"] {
                if let value = text(tag, attribute) { open[open.count - 1].templates[attribute] = value }
            }
        case "SegmentList": open[open.count - 1].listsSegments = true
        case "SegmentURL":
            for attribute in ["media", "index"] { note(text(tag, attribute), parent.base) }
        case "Initialization", "RepresentationIndex", "BitstreamSwitching": note(text(tag, "sourceURL"), parent.base)
        case "InitializationSet": note(text(tag, "initialization"), parent.base)
        default: break
        }
        open.append(element)
    }

    private mutating func note(_ reference: String?, _ base: ReferenceRewriter?) {
        guard let reference, reference.utf8.count <= 2048 else { return }
        count += 1
        if let url = base?.url(of: reference) { urls.append(url) }
    }

    private mutating func add(_ text: ArraySlice<UInt8>, isCharacterData: Bool) {
        let trimmed = XMLText.trimmed(text)
        guard !trimmed.isEmpty else { return }
        open[open.count - 1].text = trimmed
        open[open.count - 1].isCharacterData = isCharacterData
    }

    private mutating func end() {
        guard open.count > 1, let element = open.popLast() else { return }
        switch element.name {
        case "BaseURL":
            let last = open.count - 1
            guard !open[last].hasBase, let text = element.text else { return }
            let reference =
                element.isCharacterData ? String(validating: text, as: UTF8.self) : XMLText.unescaped(text)
            open[last].hasBase = true
            count += 1
            open[last].base = reference.flatMap { open[last].base?.relative(to: $0) }
        case "Representation":
            guard let base = element.base else { return }
            for value in element.templates.values {
                count += 1
                let template = DASHTemplate(value, id: element.id, bandwidth: element.bandwidth, base: base)
                guard let template else { continue }
                if template.hasNumber {
                    templates.append(template)
                } else if let url = try? OriginURL(template.head) {  // It was one before.
                    urls.append(url)
                }
            }
            // One file, of which ranges are asked for.
            if element.templates.isEmpty || element.listsSegments { note("", base) }
        default: break
        }
    }
}
#endif
