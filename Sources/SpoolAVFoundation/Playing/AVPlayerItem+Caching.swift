#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
import Foundation
public import Spool

extension AVPlayerItem {
    /// An item that plays the media at `url` through a cache; plainly where that is not possible.
    ///
    /// ```swift
    /// let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
    /// ```
    ///
    /// HLS plays through a server, over the same cache:
    ///
    /// ```swift
    /// let server = try ProxyServer(cache: cache)  // import SpoolProxy
    /// try await server.start()
    /// let item = AVPlayerItem(caching: playlist, in: cache, server: server)
    /// ```
    ///
    /// - Parameter server: What HLS plays through; without one, it plays plainly. Other media does not go through it.
    public convenience init(caching url: URL, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.init(asset: CachingURLAsset(caching: url, in: cache, server: server))
    }

    /// An item that plays a media file through a cache, with credentials or a URL found when needed.
    ///
    /// - Parameter server: As ``init(caching:in:server:)-(URL,_,_)``; credentials go to the origin through it, too.
    public convenience init(caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.init(asset: CachingURLAsset(caching: source, in: cache, server: server))
    }

    /// What the item plays through, if that is a server.
    var mediaServer: (any MediaServer)? { (asset as? CachingURLAsset)?.server }

    /// The item's asset, if it plays through a cache by a resource loader; not if by a ``Spool/MediaServer``.
    public var cachingAsset: CachingURLAsset? {
        guard let asset = asset as? CachingURLAsset, asset.loader != nil else { return nil }
        return asset
    }
}
#endif
