#if canImport(AVFoundation) && !os(watchOS)
import Foundation
import Spool

/// The conversion between an origin's URL and a URL that a player cannot load itself, so that the player uses the
/// cache's loader.
///
/// The prefix precedes the scheme in the text of the URL: `https://host/a.mp3` becomes `spool+https://host/a.mp3`. The
/// rest is unchanged, so the original URL can be restored exactly. The prefix contains only characters that RFC 3986
/// §3.1 allows in a scheme. URL parsers since iOS 17 reject other characters, such as underscores.
enum CachingURL {
    /// The prefix before the scheme.
    static let prefix = "spool+"

    /// Returns the URL for the player, or `nil` if the URL plays directly.
    static func caching(_ url: URL) -> URL? {
        guard canBeCached(url) else { return nil }
        return URL(string: prefix + url.absoluteString)
    }

    /// Returns the URL for a source, or `nil` if the source plays directly. The URL of a source with a resolver may
    /// have any scheme.
    static func caching(_ source: MediaSource) -> URL? {
        guard source.isResolved, source.url.scheme != nil, !isOurs(source.url), !isPlaylist(source.url) else {
            return caching(source.url)
        }
        return URL(string: prefix + source.url.absoluteString)
    }

    /// Returns the origin's URL, or `nil` if `url` has no prefix.
    static func original(_ url: URL) -> URL? {
        guard isOurs(url), let original = URL(string: String(url.absoluteString.dropFirst(prefix.count))),
            original.scheme != nil
        else { return nil }
        return original
    }

    private static func isOurs(_ url: URL) -> Bool {
        url.absoluteString.prefix(prefix.count).lowercased() == prefix
    }

    /// Returns whether the URL refers to a progressive file over HTTP.
    ///
    /// The player loads playlists itself, because it never requests their media segments from a resource loader.
    static func canBeCached(_ url: URL) -> Bool {
        isHTTP(url) && !(url.host ?? "").isEmpty && !isPlaylist(url)
    }

    private static func isPlaylist(_ url: URL) -> Bool {
        playlistExtensions.contains(url.pathExtension.lowercased())
    }

    /// The extensions of playlists: HLS (RFC 8216 §4) and DASH.
    private static let playlistExtensions: Set<String> = ["m3u8", "m3u", "mpd"]

    /// Returns whether a URL is treated as an HLS playlist before any request is sent. The content type, if known,
    /// determines this; otherwise, the URL's extension does.
    static func isHLS(_ url: URL, contentType: String?) -> Bool {
        if let contentType { return UniformType.isPlaylist(contentType: contentType) }
        return ["m3u8", "m3u"].contains(url.pathExtension.lowercased())
    }

    /// Returns the reason why HLS plays directly.
    ///
    /// - Parameter server: The server that did not return a URL, or `nil` if there is no server.
    static func reason(withoutServer server: (any MediaServer)?) -> String {
        "an HLS stream plays through the cache only with a server in the app, "
            + (server == nil ? "but no server is set" : "but the server can't be reached")
    }

    private static func isHTTP(_ url: URL) -> Bool {
        ["http", "https"].contains(url.scheme?.lowercased())
    }
}
#endif
