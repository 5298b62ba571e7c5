import SpoolAVFoundation

/// A queue that plays through the cache, moves on by itself, and survives stalls.
@MainActor
func queue(of urls: [URL], in cache: MediaCache) -> AVQueuePlayer {
    let player = AVQueuePlayer(items: urls.map { AVPlayerItem(caching: $0, in: cache) })
    player.enableCaching()
    return player
}
