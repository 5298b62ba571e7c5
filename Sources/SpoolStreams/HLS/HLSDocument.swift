import ByteRanges

/// An HLS playlist, parsed once into its text, the positions of its references in the text, and its contents.
///
/// Its methods rewrite the playlist, filter it and list its keys. They also work on a playlist with errors, because
/// players accept many errors. For such a playlist, ``playlist`` is `nil`.
package struct HLSDocument: Sendable {
    /// The maximum number of references in a playlist. A day of one-second segments needs fewer than 200,000.
    package static let maximumReferences = 1_000_000

    /// A URI in the text: a line, or the value of an attribute.
    struct Reference {
        /// The range in the text, without quotes.
        let place: Range<Int>
        let isKey: Bool
        /// Whether the reference points to a list of interstitial assets, whose references are not rewritten.
        let isAssetList: Bool
        /// The number of variable definitions before the reference.
        let definitionCount: Int
    }

    /// A variant, rendition or I-frame stream in a master playlist.
    struct Entry {
        /// The ranges of the entry's lines in the text, including line ends.
        var lines: [Range<Int>]
        /// The peak bit rate, in bits per second. It is 0 if the playlist does not specify it, and `Int64.max` if it is
        /// invalid.
        var bitRate: Int64 = 0
        /// Whether the entry may have video.
        var hasVideo = true
    }

    let bytes: [UInt8]
    /// The URL of the playlist, after redirects.
    package let url: OriginURL
    /// The variables of the master playlist.
    let imported: [String: String]
    /// The references, in document order.
    let references: [Reference]
    /// The definitions of variables, in document order.
    let definitions: [HLSDefinition]
    /// The ranges of the lines for content steering.
    private let steering: [Range<Int>]
    private(set) var variants: [Entry]
    private var renditions: [Entry]
    private var iFrameStreams: [Entry]
    /// The ranges of the text that filters have removed.
    private(set) var removed: ByteRangeSet = []
    private var contents: Result<HLSPlaylist, ManifestError>

    /// Parses a playlist. Time and memory are proportional to the length of the playlist.
    ///
    /// - Parameters:
    ///   - bytes: The body, without any content coding.
    ///   - url: The URL of the playlist, after redirects.
    ///   - imported: The variables of the master playlist. References with unknown imported variables stay unchanged.
    ///   - maximumReferences: The maximum number of references.
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `malformed` if the first line is not `#EXTM3U`.
    package init(
        parsing bytes: [UInt8], at url: OriginURL, importing imported: [String: String] = [:],
        maximumReferences: Int = maximumReferences
    ) throws(ManifestError) {
        var parser = HLSParser(
            HLSVariables(query: url.reference.query, imported: imported), maximumReferences: maximumReferences)
        try parser.read(bytes)
        // A reference that consists only of a fragment resolves to the same URL as an empty one.
        let repeating = parser.references.count { $0.place.isEmpty || bytes[$0.place.lowerBound] == UInt8(ascii: "#") }
        try ManifestError.checkURLs(parser.references.count, in: url, withQuery: repeating)
        (self.bytes, self.url, self.imported) = (bytes, url, imported)
        (references, definitions, steering) = (parser.references, parser.definitions, parser.steering)
        (variants, renditions, iFrameStreams) = (parser.variants, parser.renditions, parser.iFrameStreams)
        contents = parser.playlist
    }

    /// The size of the text without removed ranges, in bytes.
    package var byteCount: Int { bytes.count - Int(removed.byteCount) }

    /// The contents of the playlist without removed entries, or `nil` if the playlist has errors.
    package var playlist: HLSPlaylist? { try? contents.get() }

    /// Removes entries from the text and from ``playlist``.
    ///
    /// - Parameters: Whether each entry stays, in the order of the playlist.
    private mutating func filter(variants: [Bool], renditions: [Bool], iFrameStreams: [Bool]) {
        let entries = [(self.variants, variants), (self.renditions, renditions), (self.iFrameStreams, iFrameStreams)]
        for (entries, stays) in entries {
            for (entry, stays) in zip(entries, stays) where !stays {
                for lines in entry.lines { removed.insert(Int64(lines.lowerBound)..<Int64(lines.upperBound)) }
            }
        }
        self.variants = self.variants.filtered(by: variants)
        self.renditions = self.renditions.filtered(by: renditions)
        self.iFrameStreams = self.iFrameStreams.filtered(by: iFrameStreams)
        contents = contents.map { playlist in
            var playlist = playlist
            playlist.variants = playlist.variants.filtered(by: variants)
            playlist.renditions = playlist.renditions.filtered(by: renditions)
            playlist.iFrameStreams = playlist.iFrameStreams.filtered(by: iFrameStreams)
            return playlist
        }
    }
}

// MARK: Filtering

extension HLSDocument {
    /// Removes entries of a master playlist by their URIs. A playlist with errors stays unchanged.
    ///
    /// - Parameter keeps: A function that returns whether to retain the entry with the given URI. A rendition without a
    ///   URI always stays.
    package mutating func filter(_ keeps: (String) -> Bool) {
        guard let playlist else { return }
        filter(
            variants: playlist.variants.map { keeps($0.uri) },
            renditions: playlist.renditions.map { $0.uri.map(keeps) ?? true },
            iFrameStreams: playlist.iFrameStreams.map(keeps))
    }

    /// Removes the variants and I-frame streams whose peak bit rate exceeds a limit.
    ///
    /// If all variants with video exceed the limit, the one with the lowest bit rate stays. If no variant has video and
    /// all exceed the limit, the variant with the lowest bit rate stays.
    ///
    /// - Parameters:
    ///   - limit: The limit, in bits per second.
    ///   - kept: The indices of variants that always stay.
    package mutating func limitBitRate(to limit: Int64, keeping kept: Set<Int> = []) {
        var stays = variants.indices.map { variants[$0].bitRate <= limit || kept.contains($0) }
        let indices = variants.indices
        if !indices.contains(where: { stays[$0] && variants[$0].hasVideo }) {
            let withVideo = indices.filter { variants[$0].hasVideo }
            let candidates = withVideo.isEmpty && !stays.contains(true) ? Array(indices) : withVideo
            if let lowest = candidates.min(by: { variants[$0].bitRate < variants[$1].bitRate }) { stays[lowest] = true }
        }
        guard stays.contains(false) else { return }
        filter(
            variants: stays, renditions: renditions.map { _ in true },
            iFrameStreams: iFrameStreams.map { $0.bitRate <= limit })
    }
}

extension Array {
    /// Returns the elements whose counterpart in `stays` is `true`.
    fileprivate func filtered(by stays: [Bool]) -> [Element] { zip(self, stays).filter(\.1).map(\.0) }
}

// MARK: Keys

extension HLSDocument {
    /// The URLs of the keys, including keys that only parts of future segments need.
    ///
    /// A key whose URL contains unknown variables, or is too long, is left out.
    package var keyAddresses: [OriginURL] {
        let rewriter = ReferenceRewriter(finalURL: url) { $0.description }
        var variables = HLSVariables(query: url.reference.query, imported: imported)
        var definitions = definitions[...]
        var left = HLSPlaylist.maximumBytes
        var addresses: [OriginURL] = []
        var previous: ArraySlice<UInt8> = []
        for key in references where key.isKey {
            while definitions.startIndex < key.definitionCount { variables.define(definitions.removeFirst()) }
            guard bytes[key.place] != previous, let text = text(of: key) else { continue }
            previous = bytes[key.place]
            let resolved = try? variables.substituted(text, limit: left)  // An unusable URL is left out.
            guard let resolved else { continue }
            left -= resolved.utf8.count
            if let address = rewriter.url(of: resolved) { addresses.append(address) }
        }
        return addresses
    }

    /// Returns the text of a reference, or `nil` if it is not UTF-8.
    private func text(of reference: Reference) -> String? { String(validating: bytes[reference.place], as: UTF8.self) }
}

// MARK: Rewriting

extension HLSDocument {
    /// The maximum size of a rewritten playlist, in bytes.
    package static let maximumRewrittenBytes = 3 * HLSPlaylist.maximumBytes

    /// Returns the text for a client of the proxy, with references that point to the proxy.
    ///
    /// References that already point to the proxy, and all other bytes, stay unchanged. Time and memory are
    /// proportional to the lengths of the playlist and of the result.
    ///
    /// - Parameters:
    ///   - requestedURL: The URL that the client requested, if it differs from ``url``.
    ///   - removesSteering: Whether to remove content steering. A steering server can replace the proxy's host in a URL
    ///     with a different host, which would then receive URLs of the proxy. The default is `false`.
    ///   - isMoved: See ``ReferenceRewriter/init(finalURL:requestedURL:isMoved:proxied:)``.
    ///   - servesAllOrigins: Whether the proxy serves all origins, so that the URLs of interstitial asset lists become
    ///     URLs of their origin. The default is `false`.
    ///   - withheld: The imported variables whose values must not be written. References with these variables are
    ///     treated like those with unknown variables. The default is none.
    ///   - limit: The maximum size of the result, in bytes, and the maximum total size of references with variables
    ///     replaced.
    ///   - proxied: See ``ReferenceRewriter/init(finalURL:requestedURL:isMoved:proxied:)``.
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `cancelled` if the task is cancelled.
    package func rewritten(
        requestedURL: OriginURL? = nil, removesSteering: Bool = false, isMoved: Bool = false,
        servesAllOrigins: Bool = false, withholding withheld: Set<String> = [], limit: Int = maximumRewrittenBytes,
        proxied: @escaping (OriginURL) -> String
    ) throws(ManifestError) -> [UInt8] {
        let removed = removesSteering ? removed.adding(steering) : removed
        let imported = imported.filter { !withheld.contains($0.key) }
        var writer = HLSReferenceWriter(
            rewriter: ReferenceRewriter(
                finalURL: url, requestedURL: requestedURL, isMoved: isMoved, proxied: proxied),
            variables: HLSVariables(query: url.reference.query, imported: imported),
            clientVariables: HLSVariables(query: (requestedURL ?? url).reference.query, imported: imported),
            substitutionsLeft: limit)
        var definitions = definitions[...]
        var splices = TextSplices(bytes, removing: removed, limit: limit)
        for reference in references {
            try ManifestError.checkCancellation()
            while definitions.startIndex < reference.definitionCount { writer.define(definitions.removeFirst()) }
            // A reference that is not UTF-8 stays unchanged.
            guard !reference.place.isEmpty, let text = text(of: reference),
                let written = try reference.isAssetList && servesAllOrigins
                    ? writer.direct(text) : writer.rewritten(text)
            else { continue }
            try splices.replace(reference.place, with: written.utf8)
        }
        var text = try splices.finished()
        if removesSteering { Self.disableSteering(in: &text) }
        return text
    }

    /// Changes the name of the tag for content steering wherever it remains. Some players also find tags in comments
    /// and in unknown tags.
    private static func disableSteering(in text: inout [UInt8]) {
        let tag = "#EXT-X-CONTENT-STEERING".utf8
        var start = text.startIndex
        while let found = text[start...].firstIndex(of: UInt8(ascii: "#")) {
            start = found + 1
            if text[found...].starts(with: tag) { text[found + 1] = UInt8(ascii: "-") }
        }
    }
}

/// A writer of references, with the variables that are defined before the current reference.
private struct HLSReferenceWriter {
    let rewriter: ReferenceRewriter
    /// The variables with the values for the origin.
    var variables: HLSVariables
    /// The variables with the values for the client, whose query may differ.
    var clientVariables: HLSVariables
    /// The maximum total size of further references with variables, in bytes.
    var substitutionsLeft: Int

    mutating func define(_ definition: HLSDefinition) {
        variables.define(definition)
        clientVariables.define(definition)
    }

    /// Returns the origin's URL for a reference, or `nil` if it stays unchanged.
    mutating func direct(_ text: String) throws(ManifestError) -> String? {
        let hasVariables = HLSVariables.mayOccur(in: text)
        guard hasVariables || URIReference(text).scheme == nil else { return nil }
        let resolved = hasVariables ? try variables.substituted(text, limit: substitutionsLeft) : text
        guard let resolved else { return nil }
        if hasVariables { substitutionsLeft -= resolved.utf8.count }
        return rewriter.url(of: resolved)?.description.escapingVariables
    }

    /// Returns the replacement for a reference, or `nil` if it stays unchanged.
    mutating func rewritten(_ text: String) throws(ManifestError) -> String? {
        guard HLSVariables.mayOccur(in: text) else { return rewriter.rewritten(text) }
        guard let resolved = try variables.substituted(text, limit: substitutionsLeft) else {
            // The client replaces the unknown variable itself. If the variable may determine the host, the reference
            // stays unchanged.
            return text.hasPrefix("{$") ? nil : rewriter.rewritten(text)
        }
        substitutionsLeft -= resolved.utf8.count
        if let written = rewriter.rewritten(resolved) { return written.escapingVariables }
        if clientVariables.areEqual(substituting: text, to: resolved) { return nil }
        return rewriter.written(resolved)?.escapingVariables
    }
}

extension String {
    /// The text with percent-encoding for characters that a client would read as a variable or as the end of an
    /// attribute.
    fileprivate var escapingVariables: String {
        replacing("{$", with: "%7B$").replacing("\"", with: "%22")
    }
}
