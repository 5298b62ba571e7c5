#if canImport(AVFoundation) && !os(watchOS) && canImport(ObjectiveC)
import AVFoundation
import Foundation

/// An observation, by key-value observing, of a player's current item on Apple platforms.
@MainActor final class CurrentItemObservation {
    private var observation: NSKeyValueObservation?

    /// Creates an observation that calls `changed` on the main actor shortly after each change, until it is released.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        // The closure may be called on any thread.
        observation = player.observe(\.currentItem) { @Sendable _, _ in
            Task { @MainActor in changed() }
        }
    }
}

/// An observation, by key-value observing, of whether a player plays or waits on Apple platforms.
@MainActor final class PlayStateObservation {
    private var observation: NSKeyValueObservation?

    /// Creates an observation that calls `changed` on the main actor shortly after each change, until it is released.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        // The closure may be called on any thread.
        observation = player.observe(\.timeControlStatus) { @Sendable _, _ in
            Task { @MainActor in changed() }
        }
    }
}

/// An observation of whether a player plays its video on another device, for example by AirPlay.
@MainActor final class ExternalPlaybackObservation {
    private var observation: NSKeyValueObservation?

    /// Creates an observation that calls `changed` on the main actor with the state shortly after each change,
    /// until it is released.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable (Bool) -> Void) {
        observation = player.observe(\.isExternalPlaybackActive) { @Sendable player, _ in
            // The closure may be called on any thread, but the player is read on the main actor.
            Task { @MainActor [weak player] in
                if let player { changed(player.isExternalPlaybackActive) }
            }
        }
    }
}
#endif
