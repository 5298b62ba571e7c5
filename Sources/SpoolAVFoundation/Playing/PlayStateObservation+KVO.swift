#if canImport(AVFoundation) && !os(watchOS) && canImport(ObjectiveC)
import AVFoundation
import Foundation

/// Tells when a player begins or ceases to play or to wait: by key-value observing, on Apple platforms.
@MainActor final class PlayStateObservation {
    private var observation: NSKeyValueObservation?

    /// Calls back on the main actor, a little after each change, as long as it lives.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        // The change may be told on any thread.
        observation = player.observe(\.timeControlStatus) { _, _ in
            Task { @MainActor in changed() }
        }
    }
}
#endif
