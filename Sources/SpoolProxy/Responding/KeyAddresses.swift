#if Proxy
import Synchronization

/// Where the keys of the encrypted streams are that came through the server: what is not kept unless an app says so.
final class KeyAddresses: Sendable {
    /// Addresses, by their hashes.
    private struct Known {
        var recent: Set<Int> = []
        /// What was noted before that: it is forgotten when `recent` is full.
        var former: Set<Int> = []
    }

    private let known = Mutex(Known())
    private let limit: Int

    /// - Parameter limit: How many of the last ones are known at least: as many as a playlist can name.
    init(limit: Int = HLSPlaylist.maximumSegments) { self.limit = limit }

    /// Whether a playlist has named it as a key.
    func contains(_ url: OriginURL) -> Bool {
        known.withLock { known in
            guard !known.recent.isEmpty else { return false }
            let hash = Self.hash(of: url)
            return known.recent.contains(hash) || known.former.contains(hash)
        }
    }

    /// Notes the keys that a playlist names.
    func note(_ addresses: [OriginURL]) {
        let hashes = addresses.map(Self.hash)
        known.withLock { known in
            for hash in hashes {
                if known.recent.count >= limit { known = Known(former: known.recent) }
                known.recent.insert(hash)
            }
        }
    }

    /// The same for all ways to percent-encode what has to be.
    private static func hash(of url: OriginURL) -> Int { url.description.percentDecoded.hashValue }
}
#endif
