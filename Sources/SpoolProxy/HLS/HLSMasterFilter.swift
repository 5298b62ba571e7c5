#if Proxy
/// Leaves out of a master playlist what can't be played for now; everything else stays byte for byte.
enum HLSMasterFilter {
    /// What a master playlist lists: its place among those of its kind, from 0, and its tag's attributes.
    enum Entry {
        case variant(Int, HLSAttributeList)
        case rendition(Int)
        case iFrameStream(Int, HLSAttributeList)
    }

    /// Without the variants that need more bits per second, by their peak. Where all with a picture do, with the one of these
    /// that needs least; where all do, with the one that needs least. The playlist may have faults.
    ///
    /// - Parameter kept: Variants that stay whatever they need, by their places.
    static func capped(_ bytes: [UInt8], at limit: Int64, keeping kept: Set<Int> = []) -> [UInt8] {
        var variants: [(index: Int, rate: Int64, hasPicture: Bool)] = []
        _ = filtered(bytes) { entry in
            if case .variant(let index, let attributes) = entry {
                variants.append((index, rate(attributes), hasPicture(attributes)))
            }
            return true
        }
        var wanted = variants.filter { $0.rate <= limit || kept.contains($0.index) }
        let pictures = variants.filter(\.hasPicture)
        if !wanted.contains(where: \.hasPicture), let least = (pictures.isEmpty ? variants : pictures).least,
            wanted.isEmpty || least.hasPicture
        {
            wanted.append(least)
        }
        let indices = Set(wanted.map(\.index))
        guard indices.count < variants.count else { return bytes }
        return filtered(bytes) { entry in
            switch entry {
            case .variant(let index, _): indices.contains(index)
            case .iFrameStream(_, let attributes): rate(attributes) <= limit
            case .rendition: true
            }
        }
    }

    /// What it needs, in bits per second: 0 where it does not say, and the most where it says more than can be counted.
    private static func rate(_ attributes: HLSAttributeList) -> Int64 {
        attributes.integer("BANDWIDTH") ?? (attributes.first("BANDWIDTH") == nil ? 0 : .max)
    }

    /// Whether there is something to see, as far as is said.
    private static func hasPicture(_ attributes: HLSAttributeList) -> Bool {
        if attributes.first("RESOLUTION") != nil || attributes.first("VIDEO") != nil { return true }
        return !HLSVariant.areOfSound(codecs: attributes.string("CODECS"))
    }

    /// - Parameters:
    ///   - bytes: The playlist.
    ///   - playlist: The same, parsed: it has the references with their variables substituted.
    ///   - keeps: Whether the playlist that a reference means can be played.
    static func filtered(_ bytes: [UInt8], _ playlist: HLSPlaylist, keeps: (String) -> Bool) -> [UInt8] {
        filtered(bytes) { entry in
            switch entry {
            case .variant(let index, _):
                playlist.variants.indices.contains(index) ? keeps(playlist.variants[index].uri) : true
            case .rendition(let index):
                playlist.renditions.indices.contains(index) ? playlist.renditions[index].uri.map(keeps) ?? true : true
            case .iFrameStream(let index, _):
                playlist.iFrameStreams.indices.contains(index) ? keeps(playlist.iFrameStreams[index]) : true
            }
        }
    }

    /// - Parameters:
    ///   - bytes: The playlist.
    ///   - keeps: Whether it keeps what it lists; called in the order of the list.
    static func filtered(_ bytes: [UInt8], keeps: (Entry) -> Bool) -> [UInt8] {
        var kept: [UInt8] = []
        // A variant's tag, and what stands between that and its URI.
        var variant: (attributes: HLSAttributeList, lines: [UInt8])?
        var (variants, renditions, streams) = (0, 0, 0)
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
                kept += variant?.lines ?? []
                variant = line.tag.map { (HLSAttributeList($0.value), Array(text)) }
                continue
            case "#EXT-X-MEDIA":
                let type = line.tag.flatMap { HLSAttributeList($0.value).symbol("TYPE") }
                guard type.flatMap({ HLSRendition.Kind(rawValue: $0) }) != nil else { break }
                isKept = keeps(.rendition(renditions))
                renditions += 1
            case "#EXT-X-I-FRAME-STREAM-INF":
                guard let attributes = line.tag.map({ HLSAttributeList($0.value) }), attributes.string("URI") != nil
                else { break }
                isKept = keeps(.iFrameStream(streams, attributes))
                streams += 1
            default:
                guard let (attributes, lines) = variant else { break }
                guard line.isURI else {
                    variant = (attributes, lines + text)
                    continue
                }
                if keeps(.variant(variants, attributes)) { kept += lines + text }
                variants += 1
                variant = nil
                continue
            }
            if isKept { kept += text }
        }
        return kept + (variant?.lines ?? [])
    }
}

extension [(index: Int, rate: Int64, hasPicture: Bool)] {
    /// The first of those that need least.
    fileprivate var least: Element? { self.min { $0.rate < $1.rate } }
}
#endif
