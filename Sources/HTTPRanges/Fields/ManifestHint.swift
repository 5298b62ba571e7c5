package import HTTPTypes

extension HTTPFields {
    /// Returns whether the type or the path of a response indicates an HLS playlist or an MPD.
    ///
    /// - Parameter path: The path of the URL, with or without percent encoding.
    package func indicateManifest(at path: some StringProtocol) -> Bool {
        let type = self[.contentType]?.lowercased() ?? ""
        if type.contains("mpegurl") || type.contains("dash+xml") { return true }
        return Self.hasManifestSuffix(path)
    }

    /// Returns whether the suffix of a path is that of a playlist or an MPD.
    private static func hasManifestSuffix(_ path: some StringProtocol) -> Bool {
        let path = path.lowercased()
        return [".m3u8", ".m3u", ".mpd"].contains { path.hasSuffix($0) }
    }
}
