#if Proxy
/// Leaves out of a master playlist what can't be played for now; everything else stays byte for byte.
enum HLSMasterFilter {
    /// Without the variants that need more bits per second, by their peak; where all do, with the one that needs least.
    static func capped(_ bytes: [UInt8], _ playlist: HLSPlaylist, at limit: Int64) -> [UInt8] {
        guard let least = playlist.variants.map(\.bandwidth).min() else { return bytes }
        let wanted = Set(playlist.variants.filter { $0.bandwidth <= max(limit, least) }.map(\.uri))
        let others = Set(playlist.variants.map(\.uri)).subtracting(wanted)
        return others.isEmpty ? bytes : filtered(bytes, playlist) { !others.contains($0) }
    }

    /// - Parameters:
    ///   - bytes: The playlist.
    ///   - playlist: The same, parsed: it has the references with their variables substituted.
    ///   - keeps: Whether the playlist that a reference means can be played.
    static func filtered(_ bytes: [UInt8], _ playlist: HLSPlaylist, keeps: (String) -> Bool) -> [UInt8] {
        var kept: [UInt8] = []
        // A variant's tag, and what stands between that and its URI.
        var variantLines: [UInt8]?
        var (variants, renditions, streams) = (
            playlist.variants[...], playlist.renditions[...], playlist.iFrameStreams[...]
        )
        var rest = bytes[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
            let text = rest[..<end]
            rest = rest[end...]
            let line = HLSLine(text.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") })
            var isKept = true
            switch line.tag.map({ String(decoding: $0.name.prefix(32), as: UTF8.self) }) {
            case "#EXT-X-STREAM-INF":
                // One without a URI is no variant.
                kept += variantLines ?? []
                variantLines = Array(text)
                continue
            case "#EXT-X-MEDIA":
                let type = line.tag.flatMap { HLSAttributeList($0.value).symbol("TYPE") }
                if type.flatMap({ HLSRendition.Kind(rawValue: $0) }) != nil, let rendition = renditions.popFirst() {
                    isKept = rendition.uri.map(keeps) ?? true
                }
            case "#EXT-X-I-FRAME-STREAM-INF":
                if line.tag.flatMap({ HLSAttributeList($0.value).string("URI") }) != nil, let uri = streams.popFirst() {
                    isKept = keeps(uri)
                }
            default:
                guard let lines = variantLines else { break }
                guard line.isURI, let variant = variants.popFirst() else {
                    variantLines = lines + text
                    continue
                }
                if keeps(variant.uri) { kept += lines + text }
                variantLines = nil
                continue
            }
            if isKept { kept += text }
        }
        return kept + (variantLines ?? [])
    }
}
#endif
