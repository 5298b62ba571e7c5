#if Proxy
import SpoolAVFoundation
import SpoolProxy

// Examples from docs/guides/playback.md and docs/apple.md.

@MainActor
private func resumePlayback(_ player: AVPlayer) async {
    if player.currentItem?.status == .failed { await player.reloadCurrentItem() }
}

@MainActor
private func streamPlayer(_ cache: MediaCache) -> CachingPlayer {
    let server = ProxyServer.inApp(cache)
    let player = CachingPlayer(in: cache, server: server)
    return player
}
#endif
