import SpoolAVFoundation
import SwiftUI

/// The controls: previous, play or pause, next, speed, and the title's menu.
struct PlayerButtons: View {
    @Bindable var player: CachingPlayer
    let title: Title?

    var body: some View {
        HStack(spacing: 24) {
            Button("Previous", systemImage: "backward.end.fill") { player.queue.previous() }
            if player.playWhenReady {
                Button("Pause", systemImage: "pause.fill") { player.pause() }
            } else {
                Button("Play", systemImage: "play.fill") { player.play() }
            }
            Button("Next", systemImage: "forward.end.fill") { player.queue.next() }
                .disabled(player.queue.nextEntry == nil)
            Picker("Speed", selection: $player.rate) {
                ForEach([Float(0.5), 1, 1.25, 1.5, 2], id: \.self) { rate in
                    Text("\(rate.formatted())×").tag(rate)
                }
            }
            .labelsHidden()
            .fixedSize()
            if let title { TitleMenu(title: title) }
        }
        .labelStyle(.iconOnly)
        .disabled(player.queue.currentEntry == nil)
    }
}
