#if canImport(AVFoundation) && !os(watchOS) && !canImport(ObjectiveC)
import AVFoundation
import Foundation

/// An observation, by notifications, of a player's current item.
@MainActor final class CurrentItemObservation {
    private let tokens: [NotificationToken]

    /// Creates an observation that calls `changed` on the main actor after each possible change, until it is released.
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

/// An observation, by notifications, of whether a player plays or waits.
@MainActor final class PlayStateObservation {
    private let token: NotificationToken

    /// Creates an observation that calls `changed` on the main actor shortly after each change, until it is released.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        let id = ObjectIdentifier(player)
        token = NotificationToken(AVPlayer.timeControlStatusDidChangeNotification) { notification in
            guard let sender = notification.object as? AVPlayer, ObjectIdentifier(sender) == id else { return }
            Task { @MainActor in changed() }
        }
    }
}

/// A placeholder for systems that cannot play on other devices.
@MainActor final class ExternalPlaybackObservation {
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable (Bool) -> Void) {}
}
#endif
