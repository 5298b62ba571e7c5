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

    /// The number of bytes of a body that ``init(prefix:contentType:)`` examines.
    package static let prefixLength = 4096

    /// Detects the kind of a manifest, or returns `nil` for any other body. A plain `.m3u` list of files is not a
    /// manifest.
    ///
    /// - Parameters:
    ///   - prefix: The first bytes of the body, without any content coding. At most ``prefixLength`` are examined.
    ///   - contentType: The value of `Content-Type`. It is used only if comments, or the start of an XML document, fill
    ///     the whole prefix.
    package init?(prefix: some Collection<UInt8>, contentType: String? = nil) {
        var bytes = Array(prefix.prefix(Self.prefixLength))[...]
        let fills = bytes.count == Self.prefixLength
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        let type = contentType?.lowercased() ?? ""
        if HLSLines.isPlaylist(bytes) {
            let lines = HLSLines(bytes)
            // Other tags may follow after the prefix. They must not reach a player without being rewritten, so the whole
            // list has to be examined; see `isPlainList`.
            let isTagged = lines.contains { fills ? $0.isHLSTag : $0.isOnlyInHLS }
            guard isTagged || fills && type.contains("mpegurl") else { return nil }
            self = .hls
            return
        }
        switch XMLScanner.rootName(bytes) {
        case .name(let name) where name.elementsEqual("MPD".utf8): self = .dash
        case .name(let name) where Self.isRemoteElement(name): self = .dashElement
        case .cut where fills && type.contains("dash+xml"): self = .dash
        default: return nil
        }
    }

    /// Returns whether a playlist contains no tag that only HLS playlists contain, so that it is a plain list of files or
    /// stations.
    ///
    /// - Parameter bytes: The whole playlist.
    package static func isPlainList(_ bytes: [UInt8]) -> Bool {
        !HLSLines(bytes[...]).contains(where: \.isOnlyInHLS)
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

    private static func isRemoteElement(_ name: some Collection<UInt8>) -> Bool {
        name.count <= 16 && remoteElements.contains(String(decoding: name, as: UTF8.self))
    }
}
