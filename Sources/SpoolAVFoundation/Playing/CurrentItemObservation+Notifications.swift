#if canImport(AVFoundation) && !os(watchOS) && !canImport(ObjectiveC)
import AVFoundation
import Foundation

/// Tells when a player's current item has changed, or a queue may have: by notifications, where there is no key-value
/// observing.
@MainActor final class CurrentItemObservation {
    private let tokens: [NotificationToken]

    /// Calls back on the main actor, after each possible change, as long as it lives.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        let names: [Notification.Name] = [
            .AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime, .AVPlayerItemStatusDidChange,
            .AVPlayerItemTimeJumped, AVPlayer.currentItemDidChangeNotification,
        ]
        tokens = names.map { name in
            NotificationToken(name) { _ in
                Task { @MainActor in changed() }
            }
        }
    }
}
#endif
