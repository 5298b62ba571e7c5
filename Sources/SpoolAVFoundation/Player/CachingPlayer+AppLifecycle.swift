#if canImport(AVFoundation) && !os(watchOS)
import Foundation

/// An app in the background that does not play is suspended soon, and its connections die: it had better not have any. What
/// the system took from a suspended app is made anew when that comes back.
extension CachingPlayer {
    /// `UIApplication.didEnterBackgroundNotification` and `willEnterForegroundNotification`, by their values: a library
    /// need not have UIKit, and macOS has none.
    nonisolated static let backgroundNotification = Notification.Name("UIApplicationDidEnterBackgroundNotification")
    nonisolated static let foregroundNotification = Notification.Name("UIApplicationWillEnterForegroundNotification")

    /// Listens as long as what it returns is kept.
    func listenToAppLifecycle() -> [NotificationToken] {
        [
            NotificationToken(Self.backgroundNotification) { [weak self] _ in
                Task { @MainActor in self?.enteredBackground() }
            },
            NotificationToken(Self.foregroundNotification) { [weak self] _ in
                Task { @MainActor in self?.willEnterForeground() }
            },
        ]
    }

    func enteredBackground() {
        isInBackground = true
        if !isMeantToPlay { sleep() }
    }

    /// Loads nothing any more.
    func sleep() {
        guard !isDormant else { return }
        isDormant = true
        queue.holdLoading(true)
    }

    func willEnterForeground() {
        isInBackground = false
        wake()
        // A live stream goes on where it is by then.
        if queue.hasLostServer { renewItem() }
        look()
    }

    /// Loads again what it has stopped loading.
    func wake() {
        guard isDormant else { return }
        isDormant = false
        queue.holdLoading(false)
    }
}
#endif
