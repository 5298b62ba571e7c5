#if os(iOS)
import MediaPlayer
import SpoolAVFoundation

// An example from docs/guides/playback.md.

@MainActor
private func playInBackground(_ player: CachingPlayer) throws {
    try AVAudioSession.sharedInstance().setCategory(.playback)
    player.publishNowPlaying { entry in
        [MPMediaItemPropertyTitle: entry.source.url.lastPathComponent]
    }
}
#endif
