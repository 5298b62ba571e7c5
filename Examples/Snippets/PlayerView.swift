#if canImport(AVKit) && canImport(SwiftUI)
import AVKit
import SpoolAVFoundation
import SwiftUI

struct PlayerView: View {
    let url: URL
    let cache: MediaCache
    @State private var player: CachingPlayer?

    var body: some View {
        VStack {
            if let player {
                VideoPlayer(player: player.avPlayer)
                StoredRangesView(player).frame(height: 28)
                Text(player.error?.localizedDescription ?? player.status.description)
            }
            CacheStatusView(cache)
        }
        .task(id: url) {
            let player = player ?? CachingPlayer(in: cache)
            self.player = player
            player.play(url)
        }
        .onDisappear { player?.pause() }
    }
}

// Examples from docs/guides/playback.md.

@MainActor
private func withoutCache(_ player: AVPlayer, _ asset: CachingURLAsset) -> AVPlayerItem {
    player.allowsExternalPlayback = false  // picture in picture still works
    let item = AVPlayerItem(url: asset.originalURL)  // or this, while player.isExternalPlaybackActive
    return item
}

// An example from docs/guides/preload-media.md.

private func savePower(_ preloader: Preloader) {
    preloader.conditions = PreloadConditions()  // pauses on expensive networks, in Low Data Mode and in Low Power Mode
    preloader.conditions?.allowsExpensiveNetworks = true  // preloads over cellular and personal hotspots
}
#endif
