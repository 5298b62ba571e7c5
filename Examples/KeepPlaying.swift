import SpoolAVFoundation

/// Returns a player for an album. Playback continues after stalls, failures and a temporary network loss.
@MainActor
func player(of album: [URL], in cache: MediaCache) -> CachingPlayer {
    let player = CachingPlayer(in: cache)
    player.load(album.map { MediaSource(url: $0) })
    player.queue.repeatMode = .all
    player.rate = 1.25
    player.play()
    return player
}
