import SpoolAVFoundation

/// Returns a queue that plays through the cache, advances automatically, and recovers from stalls.
@MainActor
func queue(of urls: [URL], in cache: MediaCache) -> AVQueuePlayer {
    let player = AVQueuePlayer(items: urls.map { AVPlayerItem(caching: $0, in: cache) })
    player.recoverFromStalls()
    return player
}
