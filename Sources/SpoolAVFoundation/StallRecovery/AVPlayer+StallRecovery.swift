#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
import Foundation
public import Spool

extension AVPlayer {
    /// Creates a player for the media at `url` that plays through a cache and recovers from stalls.
    ///
    /// ```swift
    /// let player = AVPlayer(caching: url, in: cache)
    /// ```
    ///
    /// A ``CachingPlayer`` also replaces failed items, and has observable properties for the state of playback.
    ///
    /// - Parameter server: The server for HLS. Without a server, HLS plays directly.
    @MainActor public convenience init(caching url: URL, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.init(caching: MediaSource(url: url), in: cache, server: server)
    }

    /// Creates a player that plays the media from a source through a cache and recovers from stalls. The source may
    /// resolve its URL or credentials when they are needed.
    ///
    /// - Parameter server: See ``init(caching:in:server:)-(URL,_,_)``.
    @MainActor public convenience init(
        caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil
    ) {
        self.init(playerItem: AVPlayerItem(caching: source, in: cache, server: server))
        recoverFromStalls()
    }

    /// Makes the player recover from stalls of items that play through a cache, and suspends the loading of items that
    /// the player has left. The method does not make items play through a cache.
    ///
    /// One call for each player is enough, and there is nothing to retain. Items that do not play through a cache are
    /// not affected.
    ///
    /// Apple's documentation of `AVAssetResourceLoader.setDelegate(_:queue:)` requires
    /// `automaticallyWaitsToMinimizeStalling = false` if the delegate loads media data. Otherwise, the player, which
    /// cannot predict the rate of a delegate, may wait for a long time even though all bytes are available. However,
    /// with this setting, a player whose item has no data pauses (`rate` is 0), and playback does not resume
    /// automatically. After this call, the setting is `false` while an item plays through a cache, and unchanged for
    /// other items. A cached item without data resumes at its previous rate when bytes are received, unless it is
    /// paused in the meantime.
    ///
    /// ```swift
    /// player.recoverFromStalls()
    /// ```
    ///
    /// `AVQueuePlayer` advances to the next item, and `AVPlayer` to a replacement, without cancelling the requests of
    /// the previous item. Those requests are suspended, and resume if the item returns. Items in the queue may load
    /// ahead. After removing items from a queue, call this method again to suspend their requests immediately.
    @MainActor public func recoverFromStalls() { StallRecovery.of(self).queueLoading.update() }

    /// Replaces the current item with a new one that plays at the same time and rate.
    ///
    /// Use this method for an item that has failed, because a failed item stays failed. A player ends a loading request
    /// that receives no bytes for some time (reportedly 20 s to two minutes), even if the network returns later. Stored
    /// bytes are not fetched again. An HLS stream that plays through a server gets a new URL, in case the system closed
    /// the server's socket while the app was suspended.
    ///
    /// - Returns: Whether the new item has reached the time of the previous one. The result is also `false` if the
    ///   current item plays without a cache.
    @MainActor @discardableResult public func reloadCurrentItem() async -> Bool {
        guard let item = currentItem, let asset = (item.asset as? CachingURLAsset)?.fresh() else { return false }
        let recovery = StallRecovery.existing(of: self)
        let (time, rate) = (item.currentTime(), recovery?.intendedRate ?? self.rate)
        let playWhenReady = recovery?.playWhenReady ?? (self.rate != 0)
        let fresh = AVPlayerItem(asset: asset)
        if let queue = self as? AVQueuePlayer {
            queue.insert(fresh, after: item)
            queue.remove(item)
        } else {
            replaceCurrentItem(with: fresh)
        }
        let hasArrived =
            time.isNumeric && time > .zero ? await seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero) : true
        if playWhenReady, currentItem === fresh { self.rate = rate }
        return hasArrived
    }
}

extension AVPlayerItem {
    /// Creates an item that plays the media at `url` through a cache, or directly if that is not possible.
    ///
    /// ```swift
    /// let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
    /// ```
    ///
    /// HLS plays through a server that uses the same cache:
    ///
    /// ```swift
    /// let server = try ProxyServer(cache: cache)  // import SpoolProxy
    /// try await server.start()
    /// let item = AVPlayerItem(caching: playlist, in: cache, server: server)
    /// ```
    ///
    /// - Parameter server: The server for HLS. Without a server, HLS plays directly. Other media does not use it.
    public convenience init(caching url: URL, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.init(asset: CachingURLAsset(caching: url, in: cache, server: server))
    }

    /// Creates an item that plays the media from a source through a cache. The source may resolve its URL or
    /// credentials when they are needed.
    ///
    /// - Parameter server: See ``init(caching:in:server:)-(URL,_,_)``. The server also sends the credentials to the
    ///   origin.
    public convenience init(caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.init(asset: CachingURLAsset(caching: source, in: cache, server: server))
    }

    /// The server that the item plays through, if any.
    var mediaServer: (any MediaServer)? { (asset as? CachingURLAsset)?.server }

    /// The item's asset if a resource loader serves it from a cache, or `nil` for other items, such as those that play
    /// through a ``Spool/MediaServer``.
    public var cachingAsset: CachingURLAsset? {
        guard let asset = asset as? CachingURLAsset, asset.loader != nil else { return nil }
        return asset
    }
}
#endif
