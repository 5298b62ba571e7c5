extension HLSPlaylist {
    /// Returns the URLs of the media playlists to download for a variant, without duplicates: its own playlist, and
    /// those of its audio, video and subtitles.
    ///
    /// - Parameters:
    ///   - selection: The choice of the variant.
    ///   - url: The URL of this master playlist.
    ///   - isStart: Whether to return only the playlists that a player uses by default.
    /// - Throws: ``ManifestError`` with code `malformed` if this is not a master playlist or has no variants, or
    ///   `address` if a playlist cannot be requested.
    package func playlists(
        for selection: HLSVariantSelection, at url: OriginURL, isStart: Bool = false
    ) throws(ManifestError) -> [OriginURL] {
        guard kind == .master, let variant = selection.choose(from: variants) else {
            throw ManifestError(.malformed, "the playlist at \(url.nameForMessages) has no variants")
        }
        var list = HLSDownloadList(at: url)
        try list.append(variant.uri)
        for kind in HLSRendition.Kind.allCases {
            var group = renditions.filter { $0.kind == kind && variant.groups[kind] == $0.groupID }
            if isStart { group = Self.defaults(of: group, kind) }
            for uri in group.compactMap(\.uri) { try list.append(uri) }
        }
        return list.downloads.map(\.url)
    }

    /// Returns the rendition of a group that a player uses by default, if any. If no rendition is marked as the
    /// default, the result is the first rendition of an audio or video group.
    private static func defaults(of group: [HLSRendition], _ kind: HLSRendition.Kind) -> [HLSRendition] {
        let isNeeded = kind == .audio || kind == .video
        return (group.first { $0.isDefault } ?? (isNeeded ? group.first : nil)).map { [$0] } ?? []
    }

    /// Returns the files that a stream needs, without duplicates, in the order in which a player uses them.
    ///
    /// The files are keys, initialization sections and segments. For a master playlist, the result contains only the
    /// session keys. Keys with a scheme other than `http` or `https` are left out.
    ///
    /// - Parameters:
    ///   - url: The URL of this playlist.
    ///   - seconds: The duration of the start to download, in seconds. The first segment is always included, and later
    ///     segments are included if they start within this time. If the value is `nil`, all segments are included.
    /// - Throws: ``ManifestError`` with one of these codes:
    ///   - `live` if this is a media playlist without an end, or one that skips segments
    ///   - `address` if a file cannot be requested
    ///   - `tooLarge` if the total size of the URLs exceeds 256 MiB
    package func downloads(at url: OriginURL, seconds: Double? = nil) throws(ManifestError) -> [StreamFile] {
        guard kind == .master || isEnded && !isDelta else {
            throw ManifestError(
                .live, "the stream at \(url.nameForMessages) is live, so it can't be downloaded completely")
        }
        var list = HLSDownloadList(at: url)
        for key in sessionKeys { try list.append(key) }
        var start = 0.0
        for segment in segments {
            if let seconds, start > 0, start >= seconds { break }
            start += segment.duration
            guard !segment.isGap else { continue }
            for key in segment.keys { try list.append(key) }
            if let map = segment.map { try list.append(map.uri, map.byteRange) }
            try list.append(segment.uri, segment.byteRange, isSegment: true)
        }
        return list.downloads
    }

    /// Removes all keys.
    mutating func removeKeys() {
        sessionKeys = []
        for index in segments.indices { segments[index].keys = [] }
    }
}

/// A list of files to download, without duplicates.
private struct HLSDownloadList {
    private(set) var downloads: [StreamFile] = []
    private var seen: Set<StreamFile> = []
    private var bytes = 0
    private let url: OriginURL
    private let rewriter: ReferenceRewriter
    private var lastKey: HLSKey?

    init(at url: OriginURL) {
        self.url = url
        rewriter = ReferenceRewriter(finalURL: url) { $0.description }
    }

    mutating func append(_ key: HLSKey) throws(ManifestError) {
        guard key != lastKey else { return }
        lastKey = key
        // The player itself resolves keys with other schemes.
        if let scheme = URIReference(key.uri).scheme, OriginURL.Scheme(scheme) == nil { return }
        try append(key.uri)
    }

    mutating func append(
        _ uri: String, _ byteRange: Range<Int64>? = nil, isSegment: Bool = false
    ) throws(ManifestError) {
        // The playlist itself contains the bytes of this URI.
        if URIReference(uri).scheme?.lowercased() == "data" { return }
        guard let target = rewriter.url(of: uri) else {
            let name = URIReference(uri).path
            throw ManifestError(
                .address,
                "\(String(name).escapedForMessage) in the playlist at \(url.nameForMessages) cannot be requested")
        }
        let download = StreamFile(url: target, byteRange: byteRange, isSegment: isSegment)
        guard seen.insert(download).inserted else { return }
        bytes += target.target.utf8.count
        guard bytes <= ManifestError.maximumURLBytes else {
            throw ManifestError(
                .tooLarge,
                "the URLs in the playlist at \(url.nameForMessages) exceed \(ManifestError.maximumURLBytes >> 20) MiB")
        }
        downloads.append(download)
    }
}
