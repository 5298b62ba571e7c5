#if Proxy
import XMLTokens

/// Which manifest a body is, told from its first bytes: addresses' endings and servers' types are often wrong.
package enum ManifestKind: Hashable, Sendable {
    /// A playlist with tags of RFC 8216.
    case hls
    /// An XML document whose root element is `MPD` (ISO/IEC 23009-1).
    case dash

    /// How many bytes of a body ``init(prefix:isWhole:contentType:)`` looks at.
    package static let prefixLength = 4096

    /// Nil for everything else, a plain `.m3u` list among it: that is a list of files and not a stream.
    ///
    /// - Parameters:
    ///   - prefix: The body's first bytes, decoded of any content coding; more than ``prefixLength`` are not looked at.
    ///   - contentType: `Content-Type` as sent. A hint: it decides only where a list of comments, or an XML document's
    ///     head, fills the whole prefix.
    package init?(prefix: some Collection<UInt8>, contentType: String? = nil) {
        var bytes = Array(prefix.prefix(Self.prefixLength))[...]
        let fills = bytes.count == Self.prefixLength
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        let type = contentType?.lowercased() ?? ""
        if HLSLines.isPlaylist(bytes) {
            let tagged = HLSLines(bytes).contains { $0.isHLSTag }
            guard tagged || fills && type.contains("mpegurl") else { return nil }
            self = .hls
            return
        }
        switch XMLScanner.rootName(bytes) {
        case .name(let name) where name.elementsEqual("MPD".utf8): self = .dash
        case .cut where fills && type.contains("dash+xml"): self = .dash
        default: return nil
        }
    }

    /// Whether a body that begins with these bytes, of which more may come, can be a manifest.
    static func isPossible(prefix: [UInt8]) -> Bool {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if mark.starts(with: prefix) { return true }
        let bytes = prefix.starts(with: mark) ? prefix.dropFirst(3) : prefix[...]
        let tag = Array("#EXTM3U".utf8)
        if bytes.starts(with: tag) || tag.starts(with: bytes) || bytes.allSatisfy(XMLScanner.isSpace) { return true }
        return switch XMLScanner.rootName(bytes) {
        case .name(let name): name.elementsEqual("MPD".utf8)
        case .cut: true
        case .none: false
        }
    }
}
#endif
