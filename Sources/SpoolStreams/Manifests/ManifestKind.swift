import XMLTokens

/// The kind of a manifest, detected from its first bytes. File name extensions and `Content-Type` are often wrong.
package enum ManifestKind: Hashable, Sendable {
    /// A playlist with tags from RFC 8216.
    case hls
    /// An XML document whose root element is `MPD` (ISO/IEC 23009-1).
    case dash
    /// An XML document with an element that an MPD references with `xlink:href`.
    case dashElement

    /// The names of the elements of an MPD that can be in a separate document and contain references.
    static let remoteElements: Set<String> = ["Period", "AdaptationSet", "Representation", "SegmentList"]

    /// The number of bytes of a body that ``init(prefix:)`` examines.
    package static let prefixLength = 4096

    /// Detects the kind of a manifest, or returns `nil` for any other body. A plain `.m3u` list of files is not a
    /// manifest.
    ///
    /// If these bytes do not determine the kind, the result is a possible kind; see ``isPlain(_:)``.
    ///
    /// - Parameter prefix: The first bytes of the body, without any content coding. At most ``prefixLength`` are
    ///   examined.
    package init?(prefix: some Collection<UInt8>) {
        var bytes = Array(prefix.prefix(Self.prefixLength))[...]
        let fills = bytes.count == Self.prefixLength
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        if HLSLines.isPlaylist(bytes) {
            // More tags may follow after the prefix. They must not reach a player without being rewritten, so the whole
            // list has to be examined; see ``isPlain(_:)``.
            guard fills || Self.containsTag(bytes) else { return nil }
            self = .hls
            return
        }
        switch XMLScanner.rootName(bytes) {
        case .name(let name) where name.elementsEqual("MPD".utf8): self = .dash
        case .name(let name) where Self.isRemoteElement(name): self = .dashElement
        case .cut where fills: self = .dash
        default: return nil
        }
    }

    /// Returns whether a document is not a manifest, even though its first bytes can be those of this kind. Examples
    /// are a plain list of files or stations, and an RSS document whose root element follows a long comment.
    ///
    /// - Parameter bytes: The whole document.
    package func isPlain(_ bytes: [UInt8]) -> Bool {
        switch self {
        case .hls: return !Self.containsTag(bytes[...])
        case .dash:
            let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
            guard case .name(let name) = XMLScanner.rootName(text) else { return true }
            return !name.elementsEqual("MPD".utf8)
        case .dashElement: return false
        }
    }

    /// Returns whether a text contains the name of a tag that only HLS playlists contain. Some players also find tags
    /// in comments.
    private static func containsTag(_ bytes: ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        while let start = rest.firstIndex(of: UInt8(ascii: "#")) {
            rest = rest[start...]
            if rest.starts(with: "#EXT-X-".utf8) { return true }
            rest = rest.dropFirst()
        }
        return false
    }

    /// Returns whether a body that starts with these bytes can be a manifest.
    package static func isPossible(prefix: [UInt8]) -> Bool {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if mark.starts(with: prefix) { return true }
        let bytes = prefix.starts(with: mark) ? prefix.dropFirst(3) : prefix[...]
        let tag = Array("#EXTM3U".utf8)
        if bytes.starts(with: tag) || tag.starts(with: bytes) || bytes.allSatisfy(XMLScanner.isSpace) { return true }
        return switch XMLScanner.rootName(bytes) {
        case .name(let name): name.elementsEqual("MPD".utf8) || isRemoteElement(name)
        case .cut: true
        case .none: false
        }
    }

    /// Returns whether a file name extension is `m3u8` or `mpd`, so that the document must be a playlist or manifest.
    package static func isExtension(_ name: String) -> Bool { ["m3u8", "mpd"].contains(name.lowercased()) }

    /// Returns why a document is not a playlist or manifest, although the extension of its URL is `m3u8` or `mpd`. The
    /// result is `nil` for other extensions and for valid documents.
    ///
    /// Playlists and MPDs are valid for both extensions. Plain lists of files are valid for `m3u8`, even without
    /// `#EXTM3U`.
    ///
    /// - Parameter prefix: The first ``prefixLength`` bytes of the document.
    package static func contradiction(of prefix: [UInt8], toExtension name: String) -> String? {
        guard Self(prefix: prefix) == nil else { return nil }
        switch name.lowercased() {
        case "m3u8" where !HLSLines.isPlaylist(prefix[...]) && !HLSLines.isPlainList(prefix[...]):
            return "is not an HLS playlist: it does not start with #EXTM3U"
        case "mpd": return "is not a DASH manifest: its root element is not MPD"
        default: return nil
        }
    }

    private static func isRemoteElement(_ name: some Collection<UInt8>) -> Bool {
        name.count <= 16 && remoteElements.contains(String(decoding: name, as: UTF8.self))
    }
}
