package import HTTPTypes

/// The signs that a resource is an HLS playlist or an MPD. Only its first bytes prove it, because types and extensions
/// are often wrong.
package enum ManifestHint {
    private static let suffixes = [".m3u8", ".m3u", ".mpd"]

    /// Returns whether a path, with or without percent encoding, ends with the extension of a playlist or an MPD.
    package static func isInPath(_ path: some StringProtocol) -> Bool {
        let path = path.lowercased()
        return suffixes.contains { path.hasSuffix($0) }
    }

    /// Returns whether the fields of a response contain the type of a playlist or an MPD.
    package static func isInFields(_ fields: HTTPFields) -> Bool {
        guard let type = fields[.contentType]?.lowercased() else { return false }
        return type.contains("mpegurl") || type.contains("dash+xml")
    }
}
