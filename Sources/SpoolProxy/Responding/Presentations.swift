#if Proxy
import Spool
import Synchronization

/// Which addresses belong to which manifest that came through the server, so that what is stored of a stream is used,
/// pinned and evicted as one.
///
/// Knows streams that have an end, by what their playlists and MPDs name. Live segments have no manifest that is stored:
/// they are each for themselves.
final class Presentations: Sendable {
    private struct State {
        /// The manifest that was opened first, by hashes of the addresses of what belongs to it.
        var roots: [Int: CacheKey] = [:]
        /// The same for addresses that follow from templates, by what these begin with.
        var templates: [Substring: [DASHTemplate: CacheKey]] = [:]
        var templateCount = 0
        var templateBytes = 0
        /// The hash of the last recorded tag of each manifest.
        var noted: [CacheKey: Int] = [:]
    }

    private let state = Mutex(State())
    /// The most addresses: some twenty films of two-second segments, with a few variants each. Then all are forgotten, and
    /// noted again as playlists come.
    private static let limit = 500_000
    /// The maximum size of all templates together, in bytes.
    private static let templateBytes = 16 << 20
    /// The most templates that begin alike, and the most digits of an address of which one may be a number's first.
    private static let alikeLimit = 32
    private static let digitLimit = 64

    /// The key of the manifest that an address belongs to.
    func root(of url: OriginURL) -> CacheKey? {
        let (root, hasTemplates) = state.withLock { ($0.roots[url.hashValue], !$0.templates.isEmpty) }
        if root != nil || !hasTemplates { return root }
        let text = url.description[...]
        let digits = text.utf8.prefix(4096).indices.filter {
            text.utf8[$0] >= UInt8(ascii: "0") && text.utf8[$0] <= UInt8(ascii: "9")
        }
        return state.withLock { state in
            // The number may begin at each digit, most likely at one of the last.
            for digit in digits.suffix(Self.digitLimit).reversed() {
                let found = state.templates[text[..<digit]]?.first { $0.key.gives(text) }
                if let found { return found.value }
            }
            return nil
        }
    }

    /// Notes what belongs to a playlist.
    ///
    /// - Parameters:
    ///   - url: Where it was asked for.
    ///   - key: Its key.
    ///   - tag: Tells its bytes from others.
    ///   - found: Where it was found.
    func note(_ playlist: HLSPlaylist, at url: OriginURL, _ key: CacheKey, tag: String, found: OriginURL) {
        // What can't be asked for belongs to nothing.
        guard isNews(tag, of: key), let parts = try? playlist.parts(at: found) else { return }
        note(parts, [], at: url, key, tag: tag)
    }

    /// Notes what belongs to an MPD; its other parameters are a playlist's.
    func note(mpd bytes: [UInt8], at url: OriginURL, _ key: CacheKey, tag: String, found: OriginURL) {
        // One with faults names nothing.
        guard isNews(tag, of: key), let parts = try? DASHParts(of: bytes, at: found) else { return }
        note(parts.urls, parts.templates, at: url, key, tag: tag)
    }

    private func isNews(_ tag: String, of key: CacheKey) -> Bool { state.withLock { $0.noted[key] != tag.hashValue } }

    private func note(
        _ parts: [OriginURL], _ templates: [DASHTemplate], at url: OriginURL, _ key: CacheKey, tag: String
    ) {
        state.withLock { state in
            if state.roots.count + state.templateCount + parts.count + templates.count > Self.limit
                || state.noted.count > 10_000 || state.templateBytes > Self.templateBytes
            {
                state = State()
            }
            let root = state.roots[url.hashValue] ?? key
            state.noted[key] = tag.hashValue
            for part in parts.prefix(Self.limit) where part != url { state.roots[part.hashValue] = root }
            for template in templates where state.templateBytes <= Self.templateBytes {
                let head = template.head[...]
                guard state.templates[head, default: [:]].count < Self.alikeLimit else { continue }
                let former = state.templates[head, default: [:]].updateValue(root, forKey: template)
                guard former == nil else { continue }
                state.templateCount += 1
                state.templateBytes += template.byteCount
            }
        }
    }
}

extension HLSPlaylist {
    /// What belongs to it: of a master playlist the other playlists, of one of segments these and what they need; nothing
    /// where it has no end.
    fileprivate func parts(at url: OriginURL) throws(ManifestError) -> [OriginURL] {
        switch kind {
        case .media: return isEnded && !isDelta ? try downloads(at: url).map(\.url) : []
        case .master:
            let rewriter = ReferenceRewriter(finalURL: url) { $0.description }
            let keys = try downloads(at: url).map(\.url)
            return keys
                + (variants.map(\.uri) + renditions.compactMap(\.uri) + iFrameStreams).compactMap {
                    rewriter.url(of: $0)
                }
        }
    }
}
#endif
