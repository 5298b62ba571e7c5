#if canImport(AVFoundation) && !os(watchOS)
import Foundation
import Spool

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

    /// The same for a source: one with a resolver says itself where its bytes are, so its URL may have any scheme.
    static func caching(_ source: MediaSource) -> URL? {
        guard source.isResolved, source.url.scheme != nil, !isOurs(source.url), !isPlaylist(source.url) else {
            return caching(source.url)
        }
        return URL(string: prefix + source.url.absoluteString)
    }

    /// The origin's URL; nil if `url` is none of ours.
    static func original(_ url: URL) -> URL? {
        guard isOurs(url), let original = URL(string: String(url.absoluteString.dropFirst(prefix.count))),
            original.scheme != nil
        else { return nil }
        return original
    }

    private static func isOurs(_ url: URL) -> Bool {
        url.absoluteString.prefix(prefix.count).lowercased() == prefix
    }

    /// Whether the URL names a progressive media file over HTTP.
    ///
    /// Playlists are left to the player: a resource loader is never asked for the media segments that they name.
    static func canBeCached(_ url: URL) -> Bool {
        isHTTP(url) && !(url.host ?? "").isEmpty && !isPlaylist(url)
    }

    private static func isPlaylist(_ url: URL) -> Bool {
        playlistExtensions.contains(url.pathExtension.lowercased())
    }

    /// Endings of playlists: HLS (RFC 8216 §4) and DASH.
    static let playlistExtensions: Set<String> = ["m3u8", "m3u", "mpd"]

    /// Whether it is known for an HLS playlist before anybody has asked for it: by its type, or else by its ending.
    static func isHLS(_ url: URL, mimeType: String?) -> Bool {
        if let mimeType { return UniformType.isPlaylist(mimeType: mimeType) }
        return ["m3u8", "m3u"].contains(url.pathExtension.lowercased())
    }

    /// Why HLS plays plainly.
    ///
    /// - Parameter server: The one that gave no URL, if there is one.
    static func reason(withoutServer server: (any MediaServer)?) -> String {
        "HLS plays through the cache by a server in the app only, and "
            + (server == nil ? "there is none" : "that can't be reached")
    }

    private static func isHTTP(_ url: URL) -> Bool {
        ["http", "https"].contains(url.scheme?.lowercased())
    }
}
#endif
