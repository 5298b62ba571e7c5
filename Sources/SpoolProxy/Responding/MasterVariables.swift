#if Proxy
import Synchronization

/// The variables that master playlists define for the playlists that they name: a player has them, and asks for these alone.
final class MasterVariables: Sendable {
    /// The variables, by the address of a media playlist without delivery directives.
    private let known = Mutex(Remembered<String, [String: String]>(count: limit))
    private static let limit = 1000
    private static let byteLimit = 16 << 10

    /// What a playlist may import; empty if nothing is known.
    subscript(url: OriginURL) -> [String: String] {
        known.withLock { $0[HLSDelivery.withoutDirectives(url)] } ?? [:]
    }

    /// Notes what a master playlist defines.
    ///
    /// - Parameter found: Where it was found.
    func note(_ playlist: HLSPlaylist, found: OriginURL) {
        guard playlist.kind == .master, !playlist.variables.isEmpty else { return }
        let bytes = playlist.variables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        guard bytes <= Self.byteLimit else { return }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        let uris = playlist.variants.map(\.uri) + playlist.renditions.compactMap(\.uri) + playlist.iFrameStreams
        let urls = uris.prefix(Self.limit).compactMap { rewriter.url(of: $0).map(HLSDelivery.withoutDirectives) }
        known.withLock { known in
            // Forgotten variables are recorded again when the stream is played the next time.
            for url in urls { known.note(playlist.variables, for: url, bytes: bytes + url.utf8.count) }
        }
    }
}
#endif
