#if Proxy
import Spool
import Synchronization

/// Which addresses belong to which playlist that came through the server, so that what is stored of a stream is used,
/// pinned and evicted as one.
///
/// Knows HLS streams that have an end, by what their playlists name. What a DASH manifest names follows from templates, and
/// live segments have no playlist that is stored: these are each for themselves.
final class Presentations: Sendable {
    private struct State {
        /// The playlist that was opened first, by hashes of the addresses of what belongs to it.
        var roots: [Int: CacheKey] = [:]
        /// What was last noted of a playlist.
        var noted: [CacheKey: String] = [:]
    }

    private let state = Mutex(State())
    /// The most addresses: some twenty films of two-second segments, with a few variants each. Then all are forgotten, and
    /// noted again as playlists come.
    private static let limit = 500_000

    /// The key of the playlist that an address belongs to.
    func root(of url: OriginURL) -> CacheKey? { state.withLock { $0.roots[url.hashValue] } }

    /// Notes what belongs to a playlist.
    ///
    /// - Parameters:
    ///   - url: Where it was asked for.
    ///   - key: Its key.
    ///   - tag: Tells its bytes from others.
    ///   - found: Where it was found.
    func note(_ playlist: HLSPlaylist, at url: OriginURL, _ key: CacheKey, tag: String, found: OriginURL) {
        guard state.withLock({ $0.noted[key] != tag }), let parts = try? playlist.parts(at: found) else {
            // What can't be asked for belongs to nothing.
            return
        }
        state.withLock { state in
            if state.roots.count + parts.count > Self.limit || state.noted.count > 10_000 { state = State() }
            let root = state.roots[url.hashValue] ?? key
            state.noted[key] = tag
            for part in parts.prefix(Self.limit) where part != url { state.roots[part.hashValue] = root }
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
