#if Proxy
/// Rewrites a playlist so that a client that got it from the proxy asks the proxy for what it names.
///
/// References are replaced where they have to be, in URI lines and in every tag that has one; everything else stays byte
/// for byte. `EXT-X-DATERANGE` is left alone: its URLs are for an app, not for a player.
package enum HLSRewriting {
    /// The most bytes that a rewritten playlist may have.
    package static let maximumBytes = 3 * HLSPlaylist.maximumBytes

    /// - Parameters:
    ///   - bytes: The playlist, decoded of any content coding. Faults in it are the player's to find. Time and memory are
    ///     proportional to its length and its outcome's.
    ///   - finalURL: Where it was found, after redirects.
    ///   - requestedURL: What the client asked for, if that is another URL.
    ///   - imported: The master playlist's variables, if they are known. A reference that begins with one that is not is
    ///     left as it is.
    ///   - limit: The most bytes that the outcome may have, and for which variables may stand.
    ///   - proxied: See ``ReferenceRewriter/init(finalURL:requestedURL:proxied:)``.
    /// - Throws: ``ManifestError`` with code `tooLarge`, or `malformed` for what does not begin with `#EXTM3U`.
    package static func rewrite(
        _ bytes: [UInt8], finalURL: OriginURL, requestedURL: OriginURL? = nil,
        importing imported: [String: String] = [:],
        limit: Int = maximumBytes, proxied: @escaping (OriginURL) -> String
    ) throws(ManifestError) -> [UInt8] {
        guard bytes.count <= HLSPlaylist.maximumBytes else {
            throw ManifestError(
                .tooLarge, "a playlist of \(bytes.count) bytes is larger than \(HLSPlaylist.maximumBytes)")
        }
        guard HLSLines.isPlaylist(bytes[...]) else {
            throw ManifestError(.malformed, "a playlist does not begin with #EXTM3U")
        }
        var references = HLSReferences(
            rewriter: ReferenceRewriter(finalURL: finalURL, requestedURL: requestedURL, proxied: proxied),
            variables: HLSVariables(query: finalURL.reference.query, imported: imported),
            clientVariables: HLSVariables(query: (requestedURL ?? finalURL).reference.query, imported: imported),
            limit: limit)
        var splices = TextSplices(bytes, limit: limit)
        for line in HLSLines(bytes[...]) {
            if line.isURI {
                try references.rewrite(line.bytes, into: &splices)
            } else if let tag = line.tag {
                if tag.name.elementsEqual("#EXT-X-DEFINE".utf8) {
                    references.define(HLSAttributeList(tag.value))
                } else if let name = attribute(of: tag.name) {
                    for attribute in HLSAttributeList(tag.value).attributes
                    where attribute.isQuoted && attribute.name.elementsEqual(name.utf8) {
                        try references.rewrite(attribute.value, into: &splices)
                    }
                }
            }
        }
        return try splices.finished()
    }

    /// The attribute of a tag that is a reference.
    private static func attribute(of tag: ArraySlice<UInt8>) -> String? {
        guard tag.count <= 32 else { return nil }
        switch String(decoding: tag, as: UTF8.self) {
        case "#EXT-X-KEY", "#EXT-X-MAP", "#EXT-X-MEDIA", "#EXT-X-I-FRAME-STREAM-INF", "#EXT-X-SESSION-KEY",
            "#EXT-X-SESSION-DATA", "#EXT-X-PART", "#EXT-X-PRELOAD-HINT", "#EXT-X-RENDITION-REPORT",
            "#EXT-X-IMAGE-STREAM-INF":
            return "URI"
        case "#EXT-X-CONTENT-STEERING": return "SERVER-URI"
        default: return nil
        }
    }
}

/// What becomes of a playlist's references, by the variables defined so far.
private struct HLSReferences {
    let rewriter: ReferenceRewriter
    /// As the origin means them, and as the client sees them, whose own query may be another.
    var variables: HLSVariables
    var clientVariables: HLSVariables
    /// How many bytes variables may still stand for.
    private var substitutionsLeft: Int

    init(rewriter: ReferenceRewriter, variables: HLSVariables, clientVariables: HLSVariables, limit: Int) {
        self.rewriter = rewriter
        self.variables = variables
        self.clientVariables = clientVariables
        substitutionsLeft = limit
    }

    mutating func define(_ attributes: HLSAttributeList) {
        variables.define(attributes)
        clientVariables.define(attributes)
    }

    mutating func rewrite(_ bytes: ArraySlice<UInt8>, into splices: inout TextSplices) throws(ManifestError) {
        // A reference that is not UTF-8 is left to those who can read it.
        guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else { return }
        guard
            let written = HLSVariables.areReferred(in: text)
                ? try rewrittenWithVariables(text) : rewriter.rewritten(text)
        else { return }
        try splices.replace(bytes.indices, with: written.utf8)
    }

    private mutating func rewrittenWithVariables(_ text: String) throws(ManifestError) -> String? {
        guard let meant = try variables.substituted(text, limit: substitutionsLeft) else {
            // What is unknown is left for the client to fill in, unless it decides which host is meant.
            return text.hasPrefix("{$") ? nil : rewriter.rewritten(text)
        }
        substitutionsLeft -= meant.utf8.count
        if let written = rewriter.rewritten(meant) { return written.escapingVariables }
        guard meant != (try clientVariables.substituted(text, limit: .max)) else { return nil }
        return rewriter.written(meant)?.escapingVariables
    }
}

extension String {
    /// The text with nothing that a client would take for a variable, or for an attribute's end.
    fileprivate var escapingVariables: String {
        replacing("{$", with: "%7B$").replacing("\"", with: "%22")
    }
}
#endif
