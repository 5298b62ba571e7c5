#if Proxy
import XMLTokens

/// Rewrites an MPD so that a client that got it from the proxy asks the proxy for what it names.
///
/// Rewritten are `BaseURL`, `Location`, `PatchLocation`, `xlink:href`, the server of `ContentSteering` (ETSI TS 103 998), and
/// the URLs and URL templates of `SegmentTemplate`, `SegmentURL`, `InitializationSet` and their like, where they have to be;
/// everything else stays byte for byte. What `ContentProtection` holds is left alone, and so are the clocks in `UTCTiming`:
/// what a cache says of the time is what was true once.
package enum DASHRewriting {
    /// The most bytes that a rewritten MPD may have.
    package static let maximumBytes = 4 * DASHManifest.maximumBytes

    /// The most `BaseURL`s that an MPD may have.
    package static let maximumBases = 20_000

    /// An MPD that was found elsewhere than where the client believes it to be gets a `BaseURL` if it has none of its own:
    /// templates are inherited by representations with different ones, so that they can't be rewritten for all at once.
    ///
    /// - Parameters:
    ///   - bytes: The MPD, decoded of any content coding. Time and memory are proportional to its length and its outcome's.
    ///   - finalURL: Where it was found, after redirects.
    ///   - requestedURL: What the client asked for, if that is another URL.
    ///   - proxied: See ``ReferenceRewriter/init(finalURL:requestedURL:proxied:)``.
    /// - Throws: ``ManifestError``, as ``DASHManifest/init(parsing:)``; also `tooLarge` for the outcome, and for
    ///   more than ``maximumBases``.
    package static func rewrite(
        _ bytes: [UInt8], finalURL: OriginURL, requestedURL: OriginURL? = nil, proxied: @escaping (OriginURL) -> String
    ) throws(ManifestError) -> [UInt8] {
        let manifest = try DASHManifest(parsing: bytes)
        let document = ReferenceRewriter(finalURL: finalURL, requestedURL: requestedURL, proxied: proxied)
        var walk = DASHWalk(bytes, manifest: manifest, document: document)
        var scanner = XMLScanner(bytes[...])
        while let token = try scanner.nextOfManifest() { try walk.take(token) }
        return try walk.finished()
    }
}

/// One walk through an MPD from its beginning to its end.
private struct DASHWalk {
    private struct Element {
        let name: ArraySlice<UInt8>
        /// What this element's own `BaseURL`s are relative to; nil if that can't be asked through the proxy.
        let outer: ReferenceRewriter?
        /// What the references in it are relative to: the first of its `BaseURL`s.
        var inner: ReferenceRewriter?
        var hasBase = false
        /// What is in it, if it is only text.
        var text: ArraySlice<UInt8>?
        var isCharacterData = false
        var isMixed = false
    }

    private var splices: TextSplices
    private let manifest: DASHManifest
    private let document: ReferenceRewriter
    private var open: [Element] = []
    /// How many of the open elements are, or lie in, what is left alone.
    private var untouched = 0
    private var bases = 0

    init(_ bytes: [UInt8], manifest: DASHManifest, document: ReferenceRewriter) {
        splices = TextSplices(bytes, limit: DASHRewriting.maximumBytes)
        self.manifest = manifest
        self.document = document
    }

    consuming func finished() throws(ManifestError) -> [UInt8] { try splices.finished() }

    mutating func take(_ token: XMLScanner.Token) throws(ManifestError) {
        switch token {
        case .start(let tag): try start(tag)
        case .end: try end()
        case .text(let text): add(text, isCharacterData: false)
        case .characterData(let text): add(text, isCharacterData: true)
        }
    }

    /// A name without the prefix of DASH's elements; nil for an element of another namespace.
    private func name(_ name: ArraySlice<UInt8>) -> String? {
        let local = name.localName
        guard local.count <= 32, name[..<local.startIndex].elementsEqual(manifest.prefix) else { return nil }
        return String(decoding: local, as: UTF8.self)
    }

    private mutating func start(_ tag: XMLStartTag) throws(ManifestError) {
        if tag.start == manifest.firstChild, !manifest.hasBaseURL, document.movesRelativeReferences {
            let prefix = manifest.prefix
            var element = Array("<".utf8)
            element.append(contentsOf: prefix)
            element.append(contentsOf: "BaseURL>".utf8)
            element.append(contentsOf: XMLText.escaped(document.manifest))
            element.append(contentsOf: "</".utf8)
            element.append(contentsOf: prefix)
            element.append(contentsOf: "BaseURL>".utf8)
            try splices.replace(tag.start..<tag.start, with: element)
            if !open.isEmpty { open[open.count - 1].inner = document.relative(to: "", maximumPath: .max) }
        }
        let outer = open.isEmpty ? document : open[open.count - 1].inner
        let name = name(tag.name)
        if untouched == 0, name != "ContentProtection" { try rewriteAttributes(of: tag, name, outer) }
        guard !tag.isEmpty else { return }
        if untouched > 0 || name == "ContentProtection" { untouched += 1 }
        if !open.isEmpty { open[open.count - 1].isMixed = true }
        open.append(Element(name: tag.name, outer: outer, inner: outer))
    }

    private mutating func add(_ text: ArraySlice<UInt8>, isCharacterData: Bool) {
        let trimmed = XMLText.trimmed(text)
        guard !trimmed.isEmpty, !open.isEmpty else { return }
        let last = open.count - 1
        if open[last].text != nil { open[last].isMixed = true }
        open[last].text = trimmed
        open[last].isCharacterData = isCharacterData
    }

    private mutating func end() throws(ManifestError) {
        guard let element = open.popLast() else { return }
        if untouched > 0 {
            untouched -= 1
            return
        }
        guard let text = element.text, !element.isMixed else { return }
        switch name(element.name) {
        case "BaseURL":
            guard let base = open.last.map(\.outer) else { return }
            bases += 1
            guard bases <= DASHRewriting.maximumBases else {
                throw ManifestError(.tooLarge, "an MPD has more than \(DASHRewriting.maximumBases) BaseURLs")
            }
            guard let reference = unescaped(text, element.isCharacterData) else { return }
            try rewrite(text, element.isCharacterData, base)
            if !open[open.count - 1].hasBase {
                open[open.count - 1].hasBase = true
                open[open.count - 1].inner = (base ?? document(for: reference))?.relative(to: reference)
            }
        case "Location", "PatchLocation", "ContentSteering": try rewrite(text, element.isCharacterData, document)
        default: break
        }
    }

    private mutating func rewriteAttributes(
        of tag: XMLStartTag, _ name: String?, _ base: ReferenceRewriter?
    ) throws(ManifestError) {
        let references: [String]
        switch name {
        case "SegmentTemplate": references = ["media", "initialization", "index", "bitstreamSwitching"]
        case "SegmentURL": references = ["media", "index"]
        case "Initialization", "RepresentationIndex", "BitstreamSwitching": references = ["sourceURL"]
        case "InitializationSet": references = ["initialization"]
        default: references = []
        }
        for (attribute, value) in tag.attributes {
            if references.contains(where: { $0.utf8.elementsEqual(attribute) }) {
                try rewrite(XMLText.trimmed(value), false, base)
            } else if attribute.contains(UInt8(ascii: ":")), attribute.localName.elementsEqual("href".utf8) {
                try rewrite(XMLText.trimmed(value), false, document)
            }
        }
    }

    private func unescaped(_ text: ArraySlice<UInt8>, _ isCharacterData: Bool) -> String? {
        isCharacterData ? String(validating: text, as: UTF8.self) : XMLText.unescaped(text)
    }

    /// What resolves a reference where the base is unknown: absolute ones need none.
    private func document(for reference: String) -> ReferenceRewriter? {
        URIReference(reference).scheme == nil ? nil : document
    }

    private mutating func rewrite(
        _ text: ArraySlice<UInt8>, _ isCharacterData: Bool, _ base: ReferenceRewriter?
    ) throws(ManifestError) {
        guard !text.isEmpty, let reference = unescaped(text, isCharacterData),
            let written = (base ?? document(for: reference))?.rewritten(reference)
        else { return }
        if isCharacterData {
            // What would end the section can't stand in it.
            try splices.replace(text.indices, with: Array(written.replacing("]]>", with: "]]%3E").utf8))
        } else {
            try splices.replace(text.indices, with: XMLText.escaped(written))
        }
    }
}
#endif
