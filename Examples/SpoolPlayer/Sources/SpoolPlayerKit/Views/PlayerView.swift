import AVKit
import SpoolAVFoundation
import SwiftUI

/// The current playback: the video, its position, and the status of the player and the cache.
struct PlayerView: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        VStack(spacing: 12) {
            VideoPlayer(player: app.player.avPlayer).frame(minHeight: 180)
            Text(app.currentTitle?.name ?? "Choose a title in the library").font(.headline)
            StoredRangesView(app.player).frame(height: 28)
            PlayerTimes(player: app.player)
            PlayerButtons(player: app.player, title: app.currentTitle)
            PlayerState(player: app.player, notice: app.notices.last)
            OfflineSwitch()
        }
        .padding()
    }
}

/// The position, the stored percentage, and the duration.
struct PlayerTimes: View {
    let player: CachingPlayer

    var body: some View {
        HStack {
            Text(clock(player.currentTime))
            Spacer()
            // The percentage is not available for streams, whose files are listed on the storage screen.
            if stored > 0 { Text("\(stored.formatted(.percent.precision(.fractionLength(0)))) stored") }
            Spacer()
            Text(player.duration.map(clock) ?? "–")
        }
        .font(.footnote.monospacedDigit())
        .foregroundStyle(.secondary)
    }

    private var stored: Double { player.storedRanges.reduce(0) { $0 + $1.upperBound - $1.lowerBound } }

    private func clock(_ seconds: Double) -> String {
        Duration.seconds(seconds).formatted(.time(pattern: .minuteSecond))
    }
}

/// The status, the playback error, and the cache's latest notice.
struct PlayerState: View {
    let player: CachingPlayer
    let notice: String?

    var body: some View {
        VStack(spacing: 4) {
            HStack {
                if player.status.isWaiting { ProgressView().controlSize(.small) }
                Text(player.status.description)
            }
            if let error = player.error { Text(error.localizedDescription).foregroundStyle(.red) }
            if let notice { Text(notice).foregroundStyle(.secondary) }
        }
        .font(.footnote)
    }
}
