#if canImport(AVFoundation) && !os(watchOS) && !canImport(ObjectiveC)
import AVFoundation
import Foundation

/// Tells when a player begins or ceases to play or to wait: by notifications, where there is no key-value observing.
@MainActor final class PlayStateObservation {
    private let token: NotificationToken

    /// Calls back on the main actor, a little after each change, as long as it lives.
    init(of player: AVPlayer, _ changed: @escaping @MainActor @Sendable () -> Void) {
        let id = ObjectIdentifier(player)
        token = NotificationToken(AVPlayer.timeControlStatusDidChangeNotification) { notification in
            guard let sender = notification.object as? AVPlayer, ObjectIdentifier(sender) == id else { return }
            Task { @MainActor in changed() }
        }
    }
}
#endif
