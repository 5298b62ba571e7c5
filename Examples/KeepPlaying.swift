import SpoolAVFoundation

/// A player for an album, which keeps playing: over stalls, failures, and a network that is gone for a while.
@MainActor
func player(of album: [URL], in cache: MediaCache) -> CachingPlayer {
    let player = CachingPlayer(in: cache)
    player.load(album.map { MediaSource(url: $0) })
    player.queue.repetition = .all
    player.rate = 1.25
    player.play()
    return player
}
