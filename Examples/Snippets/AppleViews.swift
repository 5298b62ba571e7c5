#if canImport(AVKit) && canImport(SwiftUI)
import AVKit
import SpoolAVFoundation
import SwiftUI

// Examples from docs/apple.md.

struct FilmView: View {
    @State var player: CachingPlayer
    let url: URL

    var body: some View {
        VideoPlayer(player: player.avPlayer)
            .task { player.play(url) }
        Text(player.status.description)  // or player.error?.localizedDescription
    }
}

@MainActor
private func withoutCache(_ player: AVPlayer, _ asset: CachingURLAsset) -> AVPlayerItem {
    player.allowsExternalPlayback = false  // picture in picture still works
    let item = AVPlayerItem(url: asset.originalURL)  // or this, while player.isExternalPlaybackActive
    return item
}
#endif
