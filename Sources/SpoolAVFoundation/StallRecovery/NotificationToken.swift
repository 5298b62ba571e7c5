#if canImport(AVFoundation) && !os(watchOS)
import Foundation

/// An observation of a notification, which ends when this object is released.
///
/// `@unchecked Sendable`: it contains only a constant that is passed back to the notification center, from any thread.
final class NotificationToken: @unchecked Sendable {
    private let observer: any NSObjectProtocol

    /// Creates an observation that calls `body` on the thread that posts the notification.
    init(_ name: Notification.Name, _ body: @escaping @Sendable (Notification) -> Void) {
        observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil, using: body)
    }

    deinit { NotificationCenter.default.removeObserver(observer) }
}

/// The identity of an object, for a later comparison. The object is retained, so that no other object can get the same
/// address.
///
/// `@unchecked Sendable`: the object is only retained and compared.
struct ObjectIdentity: @unchecked Sendable {
    private let object: AnyObject

    init(_ object: AnyObject) { self.object = object }

    func isOf(_ other: AnyObject?) -> Bool { object === other }
}
#endif
