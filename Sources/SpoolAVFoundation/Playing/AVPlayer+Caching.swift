#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation

extension AVPlayer {
    /// Sets the player up for items whose media comes from a resource loader, as a cache's does.
    ///
    /// Apple's documentation of `AVAssetResourceLoader.setDelegate(_:queue:)` asks for
    /// `automaticallyWaitsToMinimizeStalling = false` when the delegate loads media data: the player can't foresee how
    /// fast a delegate will be, and may wait long where all is there. The price: an item that runs dry pauses its
    /// player (`rate` is 0), and nothing starts it again. What is returned does:
    ///
    /// ```swift
    /// let recovery = player.prepareForCaching()
    /// ```
    ///
    /// - Returns: Plays on after a stall, as long as it is kept; without it, listen to
    ///   `AVPlayerItem.playbackStalledNotification` and call `play()`.
    @MainActor public func prepareForCaching() -> StallRecovery {
        automaticallyWaitsToMinimizeStalling = false
        return StallRecovery(self)
    }
}
#endif
