#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
import Foundation
public import Spool

/// An asset that plays through a cache: what was played once is not fetched again.
///
/// Use it where an `AVURLAsset` is used. It gives AVFoundation a URL that only its own ``loader`` can load
/// (`spool+https://…`); ``originalURL`` is the one that it was made with. Media that can't be cached plays plainly, as an
/// `AVURLAsset` of the same URL would: files and other schemes than `http` and `https`, unless a `MediaSource` with a
/// resolver says where their bytes are, and playlists (`.m3u8`), whose segments AVFoundation never asks a loader for.
///
/// With a ``server``, HLS plays through the cache, too: the player is handed the server's URL for it. A URL is known for HLS
/// by its ending (`.m3u8`, `.m3u`), or by `AVURLAssetOverrideMIMETypeKey` with `application/vnd.apple.mpegurl`.
///
/// A playlist without either, and on Apple platforms a stream without a length, are found out when they are loaded,
/// and the player is sent to the server's URL for a playlist if there is a server. Else it is sent to ``originalURL``, or
/// where a resolver found it, without the header fields that a `MediaSource` would have added to the request.
///
/// ```swift
/// let asset = CachingURLAsset(caching: url, in: cache)
/// let player = AVPlayer(playerItem: AVPlayerItem(asset: asset))
/// player.enableCaching()
/// player.play()
/// ```
///
/// The asset holds its loader; releasing the asset ends what it still loads, and what has landed stays in the cache.
///
/// `@unchecked Sendable`, restated from the superclass: everything that this class adds is constant, and `Sendable` but
/// for the options, which are only handed on to another asset.
public final class CachingURLAsset: AVURLAsset, @unchecked Sendable {
    /// The URL that the asset was made with.
    public let originalURL: URL
    /// The name of the media file in the cache; nil when it plays plainly.
    public let cacheKey: CacheKey?
    /// Serves the player's loading requests; nil when the asset plays plainly.
    public let loader: CachingResourceLoader?
    /// The server that it plays through; nil where a ``loader`` serves it, and when it plays plainly.
    public let server: (any MediaServer)?
    private let source: MediaSource?
    private let cache: MediaCache?
    private let options: [String: Any]?

    /// The media file as the cache knows it: what has landed, and counts; nil when the asset plays plainly.
    public var media: MediaResource? { loader?.media }

    /// `AVURLAssetOverrideMIMETypeKey`, by its value: SDKs before iOS 17's don't declare it, and these sources are also
    /// checked with one of them. The value of each of AVFoundation's option keys is its name.
    static let overrideMIMETypeKey = "AVURLAssetOverrideMIMETypeKey"

    /// An asset of a media file whose URL or credentials are found anew when needed.
    ///
    /// - Parameters:
    ///   - source: where the bytes come from. One with a resolver is cached whatever the scheme of its `url` is.
    ///   - cache: where they are kept.
    ///   - server: what HLS plays through, over the same cache: a `ProxyServer` of `SpoolProxy`. Nil, and one that is not
    ///     running: HLS plays plainly, uncached.
    ///   - options: `AVURLAsset…Key`s. Those that concern HTTP (cookies, cellular access) have no effect on what goes
    ///     through the cache, since its upstream makes the requests. `AVURLAssetOverrideMIMETypeKey` goes before what
    ///     the origin says and before what the first bytes look like.
    public init(
        caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil,
        options: [String: Any]? = nil
    ) {
        originalURL = source.url
        self.source = source
        self.cache = cache
        self.options = options
        let mimeType = options?[Self.overrideMIMETypeKey] as? String
        if let server, CachingURL.isHLS(source.url, mimeType: mimeType), let url = server.url(for: source) {
            self.server = server
            loader = nil
            cacheKey = nil
            super.init(url: url, options: options)
        } else if let cachingURL = CachingURL.caching(source) {
            self.server = nil
            let loader = CachingResourceLoader(caching: source, in: cache, server: server, mimeType: mimeType)
            self.loader = loader
            cacheKey = loader.media.key
            super.init(url: cachingURL, options: options)
            resourceLoader.setDelegate(loader, queue: loader.queue)
        } else {
            self.server = nil
            loader = nil
            cacheKey = nil
            super.init(url: source.url, options: options)
            if CachingURL.isHLS(source.url, mimeType: mimeType) {
                cache.noteBypass(of: source, reason: CachingURL.reason(withoutServer: server))
            }
        }
    }

    /// An asset of the media file, or the stream, at a URL.
    public convenience init(
        caching url: URL, in cache: MediaCache, server: (any MediaServer)? = nil, options: [String: Any]? = nil
    ) {
        self.init(caching: MediaSource(url: url), in: cache, server: server, options: options)
    }

    /// An asset without a cache, which plays plainly: what AVFoundation itself may call.
    @available(
        *, deprecated, message: "plays without a cache; use init(caching:in:server:options:)"
    )
    public override init(url URL: URL, options: [String: Any]? = nil) {
        originalURL = CachingURL.original(URL) ?? URL
        loader = nil
        cacheKey = nil
        cache = nil
        server = nil
        source = nil
        self.options = options
        super.init(url: originalURL, options: options)
    }

    /// As ``init(url:options:)``.
    @available(
        *, deprecated, message: "plays without a cache; use init(caching:in:server:options:)"
    )
    public convenience init(url: URL) { self.init(url: url, options: nil) }

    deinit {
        // The player may still hold requests of ours; what they read ends now, whoever else holds the loader.
        loader?.suspend()
    }

    /// Another asset of the same media, which has not failed yet; nil for one that plays plainly.
    func fresh() -> CachingURLAsset? {
        guard let cache, let source, loader != nil || server != nil else { return nil }
        return CachingURLAsset(caching: source, in: cache, server: server ?? loader?.server, options: options)
    }

    /// Whether media at this URL goes through a cache: `http` or `https`, and no playlist.
    public static func canCache(_ url: URL) -> Bool { CachingURL.canBeCached(url) }

    /// Whether media of this source goes through a cache: as its URL does, or of any scheme where it has a resolver.
    public static func canCache(_ source: MediaSource) -> Bool { CachingURL.caching(source) != nil }

    /// The URL by which a player asks a resource loader; nil for one that plays plainly.
    public static func cachingURL(for url: URL) -> URL? { CachingURL.caching(url) }

    /// The origin's URL for one that ``cachingURL(for:)`` gave; any other comes back as it is.
    public static func originalURL(of url: URL) -> URL { CachingURL.original(url) ?? url }
}

extension AVURLAsset {
    /// An asset that plays through the cache where that is possible, and a plain one where it is not.
    ///
    /// - Parameter server: What HLS plays through; without one, it plays plainly.
    public static func caching(
        _ url: URL, in cache: MediaCache, server: (any MediaServer)? = nil, options: [String: Any]? = nil
    ) -> AVURLAsset {
        let asset = CachingURLAsset(caching: url, in: cache, server: server, options: options)
        return asset.loader != nil || asset.server != nil ? asset : AVURLAsset(url: url, options: options)
    }
}
#endif
