import ByteRanges
import XMLTokens

/// An MPD, parsed once into its text, the positions of its references in the text, and its media (ISO/IEC 23009-1
/// §5.3).
///
/// Its methods rewrite the MPD, filter it and list its media.
package struct DASHDocument: Sendable {
    /// The maximum size of an MPD, in bytes.
    package static let maximumBytes = 8 << 20
    /// The maximum nesting depth of elements.
    package static let maximumDepth = 64
    /// The maximum number of `BaseURL` elements in an MPD.
    package static let maximumBases = 20_000

    /// The kind of a reference, which determines how it is resolved.
    enum ReferenceKind {
        /// The URL of media, relative to a base.
        case media
        /// A URL template, relative to a base.
        case template
        /// A `BaseURL`, relative to the base of the element around it.
        case base
        /// A reference that is relative to the URL of the MPD.
        case document
        /// The URL of a clock, relative to the URL of the MPD.
        case clock
    }

    /// A URI in the text of an element or in the value of an attribute.
    struct Reference {
        /// The range in the text, without surrounding quotes or white space.
        let place: Range<Int>
        let kind: ReferenceKind
        /// The index of the base.
        let base: Int
        let isCharacterData: Bool
        /// The number of directories in the path of each base, if not all bases are on the same origin. An absolute
        /// path is then rewritten as a relative one.
        var depth: Int?
    }

    /// A URL to which references are relative.
    struct Base {
        /// The URL, or `nil` if it cannot be requested through the proxy.
        let url: OriginURL?
        /// The index of the base of the element around it.
        let parent: Int
    }

    /// Whether the stream is live, that is, whether its `type` is `dynamic`.
    package let isDynamic: Bool
    /// The time after which a player requests the MPD again, in seconds.
    package let minimumUpdatePeriod: Double?

    let bytes: [UInt8]
    /// The URL of the MPD, after redirects.
    package let url: OriginURL
    /// The namespace prefix of DASH elements, including the colon. It is empty if they have no prefix.
    let prefix: [UInt8]
    /// The position of the first child of the root that may follow a `BaseURL`.
    let firstChild: Int?
    /// Whether the root has a `BaseURL` that is not empty.
    let hasBaseURL: Bool
    /// The references, in document order.
    let references: [Reference]
    /// The bases. The first one is the URL of the MPD.
    let bases: [Base]
    /// The ranges of the elements for content steering and for patches.
    private let removable: [Range<Int>]
    /// The ranges of the text that filters have removed.
    private(set) var removed: ByteRangeSet = []
    /// The media, up to the limit on entries.
    private(set) var media: DASHPresentation
    private let hasTooManyEntries: Bool

    /// Parses an MPD. Time and memory are proportional to the length of the MPD.
    ///
    /// - Parameters:
    ///   - bytes: The body, without any content coding.
    ///   - url: The URL of the MPD, after redirects.
    /// - Throws: ``ManifestError`` with one of these codes:
    ///   - `tooLarge` if the MPD is too large or has too many `BaseURL` elements
    ///   - `refused` if it has a document type
    ///   - `malformed` if it is not XML, its root is not `MPD`, or its tags do not match
    package init(parsing bytes: [UInt8], at url: OriginURL) throws(ManifestError) {
        try self.init(parsing: bytes, at: url, roots: ["MPD"])
    }

    /// Parses an element that is in its own document, and that an MPD references with `xlink:href` (ISO/IEC 23009-1
    /// §5.5).
    ///
    /// - Throws: The same errors as ``init(parsing:at:)``. A document with several root elements is also an error.
    package init(parsingRemoteElement bytes: [UInt8], at url: OriginURL) throws(ManifestError) {
        try self.init(parsing: bytes, at: url, roots: ManifestKind.remoteElements)
    }

    private init(parsing bytes: [UInt8], at url: OriginURL, roots: Set<String>) throws(ManifestError) {
        var parser = DASHParser(url, roots: roots)
        let root = try parser.read(bytes)
        try ManifestError.checkURLs(parser.references.count, in: url, withQuery: parser.references.count)
        (self.bytes, self.url) = (bytes, url)
        isDynamic = root.value("type").map { $0.elementsEqual("dynamic".utf8) } ?? false
        minimumUpdatePeriod = root.value("minimumUpdatePeriod").flatMap { DecimalNumbers.duration($0) }
        (prefix, firstChild, hasBaseURL) = (parser.prefix, parser.firstChild, parser.hasBaseURL)
        (references, bases, removable) = (parser.references, parser.bases, parser.removable)
        (media, hasTooManyEntries) = (parser.media, parser.hasTooManyEntries)
    }

    /// The maximum time for which the MPD may be stored. The MPD of a live stream is not stored.
    package var lifetime: ManifestLifetime { isDynamic ? .none : .unchanging }

    /// The size of the text without removed ranges, in bytes.
    package var byteCount: Int { bytes.count - Int(removed.byteCount) }

    /// Returns the media from which a player can choose, without removed representations.
    ///
    /// - Throws: ``ManifestError`` with code `live` if the stream has no end, or `tooLarge` if it has too many entries.
    package func presentation() throws(ManifestError) -> DASHPresentation {
        guard !isDynamic else {
            throw ManifestError(
                .live, "the stream at \(url.nameForMessages) is live, so it can't be downloaded completely")
        }
        guard !hasTooManyEntries else {
            throw ManifestError(
                .tooLarge, "the MPD at \(url.nameForMessages) has more than \(DASHParser.maximumEntries) entries")
        }
        return media
    }

    /// Returns the text of a reference, or `nil` if it is not UTF-8 or contains unknown entities.
    fileprivate func text(of reference: Reference) -> String? {
        let text = bytes[reference.place]
        return reference.isCharacterData ? String(validating: text, as: UTF8.self) : XMLText.unescaped(text)
    }
}

// MARK: Filtering

extension DASHDocument {
    /// The extent to which a representation is stored.
    package enum Extent: Int, Comparable {
        case none, start, whole

        package static func < (one: Extent, other: Extent) -> Bool { one.rawValue < other.rawValue }
    }

    /// Removes each representation that is stored to a lesser extent than another one in its adaptation set.
    ///
    /// Adaptation sets without stored representations are removed, too. A period without stored representations stays
    /// unchanged.
    ///
    /// - Parameter extents: The extent of each representation, by period, adaptation set and index in the set.
    package mutating func filter(_ extents: [[[Extent]]]) {
        for (period, extentsOfPeriod) in zip(media.periods.indices, extents) {
            guard extentsOfPeriod.contains(where: { $0.contains { $0 > .none } }) else { continue }
            var sets: [DASHPresentation.AdaptationSet] = []
            for (set, extents) in zip(media.periods[period].sets, extentsOfPeriod) {
                let best = extents.max() ?? .none
                guard best > .none else {
                    remove(set.place)
                    continue
                }
                var set = set
                for (representation, extent) in zip(set.representations, extents) where extent < best {
                    remove(representation.place)
                }
                set.representations = zip(set.representations, extents).filter { $0.1 == best }.map(\.0)
                sets.append(set)
            }
            media.periods[period].sets = sets
        }
    }

    private mutating func remove(_ place: Range<Int>) {
        removed.insert(Int64(place.lowerBound)..<Int64(place.upperBound))
    }
}

// MARK: Rewriting

extension DASHDocument {
    /// The maximum size of a rewritten MPD, in bytes.
    package static let maximumRewrittenBytes = 4 * maximumBytes

    /// Returns the text for a client of the proxy, with references that point to the proxy.
    ///
    /// This method rewrites `BaseURL`, `Location`, `PatchLocation`, `xlink:href`, the server of `ContentSteering` (ETSI
    /// TS 103 998), and the URLs and templates of segments. It also rewrites the URL of the MPD that follows or
    /// replaces this one. References that already point to the proxy, and all other bytes, stay unchanged. The contents
    /// of `ContentProtection` also stay unchanged. So do the absolute URLs of clocks (`UTCTiming`), because a time from
    /// a cache would be wrong.
    ///
    /// After a redirect to a different directory, a `BaseURL` is added to an MPD that does not contain one. The
    /// templates of the MPD cannot be rewritten instead, because representations with different bases inherit them.
    ///
    /// - Parameters:
    ///   - requestedURL: The URL that the client requested, if it differs from ``url``.
    ///   - removesSteering: Whether to remove content steering, as in a playlist, and the URLs of patches, because
    ///     patches are not rewritten. Players then request the whole MPD again. The default is `false`.
    ///   - isMoved: See ``ReferenceRewriter/init(finalURL:requestedURL:isMoved:proxied:)``.
    ///   - servesAllOrigins: Whether the proxy serves all origins, so that relative URLs of clocks are resolved to URLs
    ///     of the origin. The default is `false`.
    ///   - proxied: See ``ReferenceRewriter/init(finalURL:requestedURL:isMoved:proxied:)``.
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `cancelled` if the task is cancelled.
    package func rewritten(
        requestedURL: OriginURL? = nil, removesSteering: Bool = false, isMoved: Bool = false,
        servesAllOrigins: Bool = false, proxied: @escaping (OriginURL) -> String
    ) throws(ManifestError) -> [UInt8] {
        let removed = removesSteering ? removed.adding(removable) : removed
        let document = ReferenceRewriter(
            finalURL: url, requestedURL: requestedURL, isMoved: isMoved, proxied: proxied)
        var insertion = hasBaseURL || !document.movesRelativeReferences ? nil : firstChild
        // Nothing can be inserted into a removed element.
        if removesSteering {
            while let element = removable.first(where: { $0.lowerBound == insertion }) {
                insertion = element.upperBound
            }
        }
        var rewriters = DASHBaseRewriters(
            bases, insertion == nil ? document : ReferenceRewriter(finalURL: url, proxied: proxied), proxied)
        var splices = TextSplices(bytes, removing: removed, limit: Self.maximumRewrittenBytes)
        var isInserted = insertion == nil
        for reference in references {
            try ManifestError.checkCancellation()
            if !isInserted, let insertion, reference.place.lowerBound >= insertion {
                try splices.replace(insertion..<insertion, with: base(document.manifest))
                isInserted = true
            }
            guard !reference.place.isEmpty, let text = text(of: reference) else { continue }
            let isOfDocument = [.document, .clock].contains(reference.kind)
            var rewriter = isOfDocument || !isInserted ? document : rewriters[reference.base]
            // An absolute reference does not need a base.
            if rewriter == nil, URIReference(text).scheme != nil { rewriter = document }
            guard let written = reference.rewritten(text, by: rewriter, servesAllOrigins) else { continue }
            if reference.isCharacterData {
                // The new text must not contain the end of a CDATA section.
                try splices.replace(reference.place, with: Array(written.replacing("]]>", with: "]]%3E").utf8))
            } else {
                try splices.replace(reference.place, with: XMLText.escaped(written))
            }
        }
        if !isInserted, let insertion {
            try splices.replace(insertion..<insertion, with: base(document.manifest))
        }
        return try splices.finished()
    }

    /// Returns a `BaseURL` element.
    private func base(_ url: String) -> [UInt8] {
        let name = prefix + "BaseURL>".utf8
        return Array("<".utf8) + name + XMLText.escaped(url) + "</".utf8 + name
    }
}

extension DASHDocument.Reference {
    /// Returns the replacement for the reference, whose text is `text`, or `nil` if it stays unchanged.
    fileprivate func rewritten(_ text: String, by rewriter: ReferenceRewriter?, _ servesAllOrigins: Bool) -> String? {
        if let path = relativePath(text) { return path }
        guard let rewriter else { return nil }
        guard kind == .clock else { return rewriter.rewritten(text) }
        if URIReference(text).scheme != nil { return nil }
        return servesAllOrigins ? rewriter.url(of: text)?.description : rewriter.rewritten(text)
    }

    /// Returns the relative form of an absolute path whose bases are on several origins, or `nil` if the reference is
    /// rewritten for its own base.
    private func relativePath(_ text: String) -> String? {
        guard let depth, text.hasPrefix("/"), !text.hasPrefix("//") else { return nil }
        return (depth == 0 ? "./" : String(repeating: "../", count: depth)) + text.dropFirst()
    }
}

/// The rewriters for the bases of an MPD, each created when it is needed.
///
/// Only the rewriters of the current base and of its parents stay in memory.
private struct DASHBaseRewriters {
    private let bases: [DASHDocument.Base]
    private let proxied: (OriginURL) -> String
    /// The rewriters of the current base and of its parents.
    private var rewriters: [Int: ReferenceRewriter]

    init(_ bases: [DASHDocument.Base], _ document: ReferenceRewriter, _ proxied: @escaping (OriginURL) -> String) {
        self.bases = bases
        self.proxied = proxied
        rewriters = [0: document]
    }

    /// The rewriter of a base, or `nil` if the base cannot be requested through the proxy.
    subscript(base: Int) -> ReferenceRewriter? {
        mutating get {
            if let known = rewriters[base] { return known }
            guard let url = bases[base].url else { return nil }
            var parents: Set<Int> = []
            var parent = base
            while parent > 0 {
                parent = bases[parent].parent
                parents.insert(parent)
            }
            rewriters = rewriters.filter { parents.contains($0.key) }
            let rewriter = ReferenceRewriter(finalURL: url, proxied: proxied)
            rewriters[base] = rewriter
            return rewriter
        }
    }
}

// MARK: Parts

/// The URLs in an MPD, and the templates for further URLs.
package struct DASHParts {
    /// The maximum number of URLs and templates. A long video needs several hundred.
    package static let limit = 20_000

    /// The complete URLs.
    package private(set) var urls: [OriginURL] = []
    /// The templates with times or numbers (ISO/IEC 23009-1 §5.3.9.4.4).
    package private(set) var templates: [DASHTemplate] = []

    /// Lists the parts of a document, except for removed ranges. URLs that cannot be requested through the proxy are
    /// left out, and so are all parts after ``limit``.
    package init(of document: DASHDocument) {
        var count = 0
        var base: (url: OriginURL, rewriter: ReferenceRewriter)?
        for representation in document.media.periods.flatMap(\.sets).flatMap(\.representations) {
            guard count < Self.limit else { return }
            guard let url = representation.base else { continue }
            let rewriter = base.flatMap { $0.url == url ? $0.rewriter : nil } ?? ReferenceRewriter(finalURL: url)
            base = (url, rewriter)
            list(representation, rewriter, &count)
        }
        var rewriters = DASHBaseRewriters(document.bases, ReferenceRewriter(finalURL: document.url), \.description)
        for reference in document.references where reference.kind == .media {
            guard count < Self.limit else { return }
            guard !document.removed.contains(Int64(reference.place.lowerBound)),
                let text = document.text(of: reference), text.utf8.count <= 2048
            else { continue }
            count += 1
            if let url = rewriters[reference.base]?.url(of: text) { urls.append(url) }
        }
    }

    /// Lists the templates or the file of a representation.
    private mutating func list(
        _ representation: DASHPresentation.Representation, _ base: ReferenceRewriter, _ count: inout Int
    ) {
        let texts = representation.segments.templates
        // If there are no templates, the representation is one file that clients request in ranges.
        if texts.isEmpty || representation.segments.list != nil {
            count += 1
            if let url = base.url(of: "") { urls.append(url) }
        }
        for text in texts {
            count += 1
            let template = DASHTemplate(text, id: representation.id, bandwidth: representation.bandwidth, base: base)
            guard let template else { continue }
            if template.hasNumber {
                templates.append(template)
            } else if let url = try? OriginURL(template.head) {  // The template starts with a valid URL.
                urls.append(url)
            }
        }
    }
}
