import SpoolAVFoundation

/// Plays a URL through the cache: first from the origin, later from disk. It resumes automatically after a stall.
@MainActor
func player(for url: URL, in cache: MediaCache) -> AVPlayer {
    let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
    player.enableCaching()
    return player
}
