#if canImport(AVFoundation) && !os(watchOS) && canImport(ObjectiveC)
import AVFoundation
import Foundation

/// Tells when a player begins or ceases to play its picture on another device, as by AirPlay: by key-value observing.
@MainActor final class ExternalPlaybackObservation {
    private var observation: NSKeyValueObservation?

    /// Calls back on the main actor with what is so now, a little after each change, as long as it lives.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable (Bool) -> Void) {
        observation = player.observe(\.isExternalPlaybackActive) { player, _ in
            // Told on any thread, and read where it is the player's.
            Task { @MainActor [weak player] in
                if let player { changed(player.isExternalPlaybackActive) }
            }
        }
    }
}
#endif
#if canImport(AVFoundation) && !os(watchOS) && !canImport(ObjectiveC)
import AVFoundation

/// There are no other devices to play on.
@MainActor final class ExternalPlaybackObservation {
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable (Bool) -> Void) {}
}
#endif
