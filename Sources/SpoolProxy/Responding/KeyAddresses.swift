#if Proxy
import Synchronization

/// Where the keys of the encrypted streams are that came through the server: what is not kept unless an app says so.
final class KeyAddresses: Sendable {
    private let known = Mutex<Set<String>>([])
    private static let limit = 4096

    /// Whether a playlist has named it as a key.
    func contains(_ url: OriginURL) -> Bool { known.withLock { $0.contains(url.description) } }

    /// Notes the keys that a playlist names.
    ///
    /// - Parameter found: Where it was found.
    func note(_ playlist: HLSPlaylist, found: OriginURL) {
        let keys = Set(playlist.sessionKeys.map(\.uri) + playlist.segments.flatMap(\.keys).map(\.uri))
        guard !keys.isEmpty else { return }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        let addresses = keys.prefix(Self.limit).compactMap { rewriter.url(of: $0)?.description }
        known.withLock { known in
            if known.count + addresses.count > Self.limit { known = [] }
            known.formUnion(addresses)
        }
    }
}
#endif
