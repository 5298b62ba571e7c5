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
    public convenience init(caching url: URL, in cache: MediaCache) {
        self.init(asset: CachingURLAsset(caching: url, in: cache))
    }

    /// An item that plays a media file through a cache, with credentials or a URL found when needed.
    public convenience init(caching source: MediaSource, in cache: MediaCache) {
        self.init(asset: CachingURLAsset(caching: source, in: cache))
    }

    /// The item's asset, if it plays through a cache.
    public var cachingAsset: CachingURLAsset? {
        guard let asset = asset as? CachingURLAsset, asset.loader != nil else { return nil }
        return asset
    }
}
#endif
