import SpoolAVFoundation

/// Plays a URL through the cache: the first time from the origin, later from disk, and on by itself after a stall.
@MainActor
func player(for url: URL, in cache: MediaCache) -> AVPlayer {
    let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
    player.enableCaching()
    return player
}
