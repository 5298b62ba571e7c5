import SpoolAVFoundation
import SwiftUI

/// The menu for a title, with buttons that preload it or download it for offline playback.
struct TitleMenu: View {
    let title: Title
    @Environment(AppModel.self) private var app

    var body: some View {
        Menu("Preload", systemImage: "arrow.down.circle") {
            Button("Preload the start") { preload(.start) }
            Button("Preload a minute") { preload(.minute) }
            Button("Preload everything") { preload(.whole) }
            Button("Download") { Task { await app.offline.add(title) } }
        }
        .labelStyle(.iconOnly)
        .fixedSize()
    }

    private func preload(_ choice: PreloadChoice) {
        Task { await app.preloads.preload(title, choice) }
    }
}
