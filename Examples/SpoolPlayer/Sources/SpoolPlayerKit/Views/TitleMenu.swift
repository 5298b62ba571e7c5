import SpoolAVFoundation
import SwiftUI

/// The menu of a title, with preloads and the offline download.
struct TitleMenu: View {
    let title: Title
    @Environment(AppModel.self) private var app

    var body: some View {
        Menu("Preload", systemImage: "arrow.down.circle") {
            Button("Preload the start") { bring(.start) }
            Button("Preload a minute") { bring(.minute) }
            Button("Preload everything") { bring(.whole) }
            Button("Download") { Task { await app.offline.add(title) } }
        }
        .labelStyle(.iconOnly)
        .fixedSize()
    }

    private func bring(_ choice: PreloadChoice) {
        Task { await app.preloads.bring(title, choice) }
    }
}
