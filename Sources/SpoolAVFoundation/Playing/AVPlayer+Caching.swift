#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation

extension AVPlayer {
    /// Makes the player play through a cache as it plays plainly: it survives stalls, and a queue loads what plays first.
    ///
    /// Call it once for each player, or as often as you like: more than once changes nothing, and there is nothing to keep.
    /// Items that play without a cache are played as before.
    ///
    /// Apple's documentation of `AVAssetResourceLoader.setDelegate(_:queue:)` asks for
    /// `automaticallyWaitsToMinimizeStalling = false` when the delegate loads media data: the player can't foresee how
    /// fast a delegate will be, and may wait long where all is there. The price: an item that runs dry pauses its
    /// player (`rate` is 0), and nothing starts it again. So from now on the setting is false while an item plays through
    /// a cache, and what it is now for others; and a cached item that runs dry plays on at its former rate when bytes
    /// come, unless it is paused meanwhile.
    ///
    /// ```swift
    /// player.enableCaching()
    /// ```
    ///
    /// `AVQueuePlayer` moves on to the next item, and `AVPlayer` to a replacement, without cancelling what the former item
    /// loads: that is suspended, and goes on where it stopped if the item comes back. Items in the queue may load ahead.
    /// After taking items out of a queue, call it again to have them suspended at once.
    @MainActor public func enableCaching() { StallRecovery.of(self).queueLoading.update() }

    /// Puts a fresh item in the place of the current one, at the same time, and plays on at the same rate.
    ///
    /// For an item that has failed, which is for good: a player gives up a loading request that brings nothing for some
    /// time (about 20 s, or two minutes, as is reported), even if the network comes back later. What has landed
    /// is in the cache and is not fetched again. HLS through a server gets a new URL, in case the system has taken the
    /// server's socket away while the app was suspended.
    ///
    /// - Returns: Whether the new item stands where the former stood. False also if the current item plays
    ///   without a cache.
    @MainActor @discardableResult public func replaceCurrentItemWithFresh() async -> Bool {
        guard let item = currentItem, let asset = (item.asset as? CachingURLAsset)?.fresh() else { return false }
        let recovery = StallRecovery.existing(of: self)
        let (time, rate) = (item.currentTime(), recovery?.intendedRate ?? self.rate)
        let isMeantToPlay = recovery?.isMeantToPlay ?? (self.rate != 0)
        let fresh = AVPlayerItem(asset: asset)
        if let queue = self as? AVQueuePlayer {
            queue.insert(fresh, after: item)
            queue.remove(item)
        } else {
            replaceCurrentItem(with: fresh)
        }
        let hasArrived =
            time.isNumeric && time > .zero ? await seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero) : true
        if isMeantToPlay, currentItem === fresh { self.rate = rate }
        return hasArrived
    }
}
#endif
