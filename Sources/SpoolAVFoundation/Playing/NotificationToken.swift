#if canImport(AVFoundation) && !os(watchOS)
import Foundation

/// Listens to a notification as long as it lives.
///
/// `@unchecked Sendable`: what it holds is a constant that only goes back to the notification centre, from any thread.
final class NotificationToken: @unchecked Sendable {
    private let observer: any NSObjectProtocol

    /// Calls `body` on whatever thread the notification is posted on.
    init(_ name: Notification.Name, _ body: @escaping @Sendable (Notification) -> Void) {
        observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil, using: body)
    }

    deinit { NotificationCenter.default.removeObserver(observer) }
}
#endif
