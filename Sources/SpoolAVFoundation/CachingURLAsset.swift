#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
import Foundation
public import Spool

/// An asset that plays through a cache, so that played bytes are not fetched again.
///
/// Use this class instead of `AVURLAsset`. The asset passes AVFoundation a URL that only the asset's own ``loader`` can
/// load (`spool+https://…`). ``originalURL`` is the URL with which the asset was created.
///
/// Some media cannot be cached and plays directly, as it would from an `AVURLAsset` with the same URL:
///
/// - files, and URLs with a scheme other than `http` or `https`, unless the `MediaSource` has a resolver
/// - playlists (`.m3u8`, `.m3u`, `.mpd`), because AVFoundation never requests their segments from a loader
///
/// With a ``server``, HLS also plays through the cache, because the player gets the server's URL. The value of
/// `AVURLAssetOverrideMIMETypeKey`, such as `application/vnd.apple.mpegurl`, determines whether a URL is HLS. Without a
/// value, the URL's extension (`.m3u8`, `.m3u`) determines it.
///
/// Other playlists, and on Apple platforms streams without a length, are detected when they are loaded. If there is a
/// server, the player is then redirected to the server's URL. Otherwise, the player is redirected to ``originalURL``,
/// or to the resolver's URL, without the header fields of the `MediaSource`.
///
/// On Apple platforms, the player is also redirected to ``originalURL`` if the transport can't load the media. For
/// example, App Transport Security may allow a URL for AVFoundation only. `MediaCache.events()` reports the reason
/// (`.bypassed`).
///
/// ```swift
/// let asset = CachingURLAsset(caching: url, in: cache)
/// let player = AVPlayer(playerItem: AVPlayerItem(asset: asset))
/// player.recoverFromStalls()
/// player.play()
/// ```
///
/// The asset retains its loader. Releasing the asset cancels its requests, but received bytes stay in the cache.
///
/// `@unchecked Sendable` is restated from the superclass. All properties that this class adds are constant, and they
/// are `Sendable` except the options, which are only passed to another asset.
public final class CachingURLAsset: AVURLAsset, @unchecked Sendable {
    /// The URL with which the asset was created.
    public let originalURL: URL
    /// The key of the resource in the cache, or `nil` if the asset plays directly or through a server.
    public let cacheKey: CacheKey?
    /// The loader for the player's requests, or `nil` if the asset plays directly or through a server.
    public let loader: CachingResourceLoader?
    /// The server that the asset plays through, or `nil` if the asset has a ``loader`` or plays directly.
    public let server: (any MediaServer)?
    private let source: MediaSource?
    private let cache: MediaCache?
    private let options: [String: Any]?

    /// The resource, with its stored ranges and statistics, or `nil` if the asset has no ``loader``.
    public var media: MediaResource? { loader?.media }

    /// The value of `AVURLAssetOverrideMIMETypeKey`.
    ///
    /// SDKs before iOS 17, with which these sources are also checked, do not declare this key. The value of each
    /// AVFoundation option key equals its name.
    static let overrideMIMETypeKey = "AVURLAssetOverrideMIMETypeKey"

    /// Creates an asset for a source that may resolve its URL or credentials when they are needed.
    ///
    /// - Parameters:
    ///   - source: The source of the bytes. If it has a resolver, the media is cached regardless of the scheme of the
    ///     source's `url`.
    ///   - cache: The cache.
    ///   - server: The server for HLS, a `ProxyServer` from `SpoolProxy` that uses the same cache. Without a running
    ///     server, HLS plays directly, uncached.
    ///   - options: `AVURLAsset…Key` options. HTTP options (cookies, cellular access) have no effect on cached media,
    ///     because the cache's transport sends the requests. `AVURLAssetOverrideMIMETypeKey` takes precedence over the
    ///     origin's media type and the first bytes.
    ///   - deliversProbe: See ``CachingResourceLoader/init(caching:in:server:contentType:deliversProbe:)``.
    public init(
        caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil,
        options: [String: Any]? = nil, deliversProbe: Bool = true
    ) {
        originalURL = source.url
        self.source = source
        self.cache = cache
        self.options = options
        let contentType = options?[Self.overrideMIMETypeKey] as? String
        if let server, CachingURL.isHLS(source.url, contentType: contentType), let url = server.url(for: source) {
            self.server = server
            loader = nil
            cacheKey = nil
            super.init(url: url, options: options)
        } else if let cachingURL = CachingURL.caching(source) {
            self.server = nil
            let loader = CachingResourceLoader(
                caching: source, in: cache, server: server, contentType: contentType, deliversProbe: deliversProbe)
            self.loader = loader
            cacheKey = loader.media.key
            super.init(url: cachingURL, options: options)
            resourceLoader.setDelegate(loader, queue: loader.queue)
        } else {
            self.server = nil
            loader = nil
            cacheKey = nil
            super.init(url: source.url, options: options)
            if CachingURL.isHLS(source.url, contentType: contentType) {
                cache.recordBypass(of: source, reason: CachingURL.reason(withoutServer: server))
            }
        }
    }

    /// Creates an asset for the media or stream at a URL.
    public convenience init(
        caching url: URL, in cache: MediaCache, server: (any MediaServer)? = nil, options: [String: Any]? = nil
    ) {
        self.init(caching: MediaSource(url: url), in: cache, server: server, options: options)
    }

    /// Creates an asset that plays directly, without a cache. AVFoundation itself may call this initializer.
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

    /// Creates an asset without a cache; see ``init(url:options:)``.
    @available(
        *, deprecated, message: "plays without a cache; use init(caching:in:server:options:)"
    )
    public convenience init(url: URL) { self.init(url: url, options: nil) }

    deinit {
        // The player may still retain requests. Their readers end now, even if another object retains the loader.
        loader?.suspend()
    }

    /// Returns a new asset for the same media, to replace one that has failed, or `nil` if the asset plays directly.
    func fresh() -> CachingURLAsset? {
        guard let cache, let source, loader != nil || server != nil else { return nil }
        return CachingURLAsset(
            caching: source, in: cache, server: server ?? loader?.server, options: options,
            deliversProbe: loader?.deliversProbe ?? true)
    }

    /// Returns whether media at this URL can be cached: `http` or `https`, and not a playlist.
    public static func canCache(_ url: URL) -> Bool { CachingURL.canBeCached(url) }

    /// Returns whether media from this source can be cached. If the source has a resolver, the URL may have any scheme,
    /// but not the extension of a playlist.
    public static func canCache(_ source: MediaSource) -> Bool { CachingURL.caching(source) != nil }

    /// Returns the URL that makes a player use a resource loader, or `nil` for media that plays directly.
    public static func cachingURL(for url: URL) -> URL? { CachingURL.caching(url) }

    /// Returns the origin's URL for a URL from ``cachingURL(for:)``. Other URLs are returned unchanged.
    public static func originalURL(of url: URL) -> URL { CachingURL.original(url) ?? url }
}

extension AVURLAsset {
    /// Returns an asset that plays through the cache if possible, or a plain asset otherwise.
    ///
    /// - Parameter server: The server for HLS. Without a server, HLS plays directly.
    public static func caching(
        _ url: URL, in cache: MediaCache, server: (any MediaServer)? = nil, options: [String: Any]? = nil
    ) -> AVURLAsset {
        let asset = CachingURLAsset(caching: url, in: cache, server: server, options: options)
        return asset.loader != nil || asset.server != nil ? asset : AVURLAsset(url: url, options: options)
    }
}
#endif
