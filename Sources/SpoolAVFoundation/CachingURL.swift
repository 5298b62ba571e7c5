#if canImport(AVFoundation) && !os(watchOS)
import Foundation

/// Turns an origin's URL into one that a player cannot load by itself, so that it asks our loader; and back.
///
/// The prefix goes before the scheme, in the text of the URL: `https://host/a.mp3` becomes
/// `spool+https://host/a.mp3`. Nothing else is touched, so the original comes back letter for letter. The
/// characters are those of RFC 3986 §3.1; others (underscores) are refused by URL parsers since iOS 17.
enum CachingURL {
    /// The prefix before the scheme.
    static let prefix = "spool+"

    /// The URL for the player; nil for one that is to be played plainly.
    static func caching(_ url: URL) -> URL? {
        guard canBeCached(url) else { return nil }
        return URL(string: prefix + url.absoluteString)
    }

    /// The origin's URL; nil if `url` is none of ours.
    static func original(_ url: URL) -> URL? {
        let text = url.absoluteString
        guard text.prefix(prefix.count).lowercased() == prefix,
            let original = URL(string: String(text.dropFirst(prefix.count))), isHTTP(original)
        else { return nil }
        return original
    }

    /// Whether the URL names a progressive media file over HTTP.
    ///
    /// Playlists are left to the player: a resource loader is never asked for the media segments that they name.
    static func canBeCached(_ url: URL) -> Bool {
        isHTTP(url) && !(url.host ?? "").isEmpty && !playlistExtensions.contains(url.pathExtension.lowercased())
    }

    /// Endings of playlists: HLS (RFC 8216 §4) and DASH.
    static let playlistExtensions: Set<String> = ["m3u8", "m3u", "mpd"]

    private static func isHTTP(_ url: URL) -> Bool {
        ["http", "https"].contains(url.scheme?.lowercased())
    }
}
#endif
