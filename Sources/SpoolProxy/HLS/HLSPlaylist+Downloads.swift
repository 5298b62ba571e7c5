#if Proxy
extension HLSPlaylist {
    /// The media playlists to bring for a variant: its own, and those of its sounds, pictures and subtitles, each once.
    ///
    /// - Parameters:
    ///   - selection: Which variant.
    ///   - url: Where this master playlist was found.
    ///   - isStart: Whether only those are wanted that a player begins with where nobody chose.
    /// - Throws: ``ManifestError``: `malformed` if it is no master playlist or has no variant, `address` if one of them
    ///   can't be asked for.
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
            if isStart { group = Self.begun(of: group, kind) }
            for uri in group.compactMap(\.uri) { try list.append(uri) }
        }
        return list.downloads.map(\.url)
    }

    /// Which of a group a player takes where nobody chose: its default; sound and picture also without one.
    private static func begun(of group: [HLSRendition], _ kind: HLSRendition.Kind) -> [HLSRendition] {
        let isNeeded = kind == .audio || kind == .video
        return (group.first { $0.isDefault } ?? (isNeeded ? group.first : nil)).map { [$0] } ?? []
    }

    /// What a whole ended stream needs, each thing once, in the order in which a player comes to it: keys, initialization
    /// sections, segments; of a master playlist the session's keys. Keys that are not at an `http` or `https` URL are left out.
    ///
    /// - Parameters:
    ///   - url: Where this playlist was found.
    ///   - seconds: How much of the stream: segments that begin later are left out, but for the first; nil: all.
    /// - Throws: ``ManifestError``: `live` if it is a media playlist without end or with segments left out, `address` if
    ///   something can't be asked for, `tooLarge` if the addresses have more than 256 MiB in all.
    package func downloads(at url: OriginURL, seconds: Double? = nil) throws(ManifestError) -> [StreamFile] {
        guard kind == .master || isEnded && !isDelta else {
            throw ManifestError(.live, "the stream at \(url.nameForMessages) is live: it has no end to bring it up to")
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

    /// Has it name no keys.
    mutating func removeKeys() {
        sessionKeys = []
        for index in segments.indices { segments[index].keys = [] }
    }
}

/// Things to bring, each once.
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
        // Another scheme is the player's business.
        if let scheme = URIReference(key.uri).scheme, OriginURL.Scheme(scheme) == nil { return }
        try append(key.uri)
    }

    mutating func append(
        _ uri: String, _ byteRange: Range<Int64>? = nil, isSegment: Bool = false
    ) throws(ManifestError) {
        guard let target = rewriter.url(of: uri) else {
            let name = URIReference(uri).path
            throw ManifestError(
                .address,
                "\(String(name).escapedForMessage) in the playlist at \(url.nameForMessages) can't be asked for")
        }
        let download = StreamFile(url: target, byteRange: byteRange, isSegment: isSegment)
        guard seen.insert(download).inserted else { return }
        bytes += target.target.utf8.count
        guard bytes <= 256 << 20 else {
            throw ManifestError(.tooLarge, "the addresses in the playlist at \(url.nameForMessages) have over 256 MiB")
        }
        downloads.append(download)
    }
}
#endif
