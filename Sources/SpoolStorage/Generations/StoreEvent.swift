import Foundation
import Synchronization

/// An event in a store. Events are delivered on any thread, never under a lock.
package enum StoreEvent: Sendable {
    /// `bytes` bytes of the resource were evicted.
    case evicted(CacheKey, url: String, bytes: Int64)
    /// Stored bytes did not match their checksums, or could not be read, and were discarded.
    case blocksInvalidated(CacheKey, url: String, Range<Int64>)
    /// Bytes of the resource are stored in memory from now on, because of the error. Reported once for each version.
    case notKept(CacheKey, url: String, CacheError)
    /// A warning about work in the background, such as a catalog that could not be written.
    case warning(String)
}

/// The receiver of a store's events, with a memory of the warnings that were reported.
final class StoreReporter: Sendable {
    private let onEvent: @Sendable (StoreEvent) -> Void
    /// Causes that one warning was reported for.
    private let warnedCauses = Mutex<Set<String>>([])

    init(_ onEvent: @escaping @Sendable (StoreEvent) -> Void) { self.onEvent = onEvent }

    /// Reports an event.
    func report(_ event: StoreEvent) { onEvent(event) }

    /// Reports a warning.
    func warn(_ text: String) { onEvent(.warning(text)) }

    /// Reports a warning, unless one of this kind with the same system error was reported before.
    func warnOnce(_ kind: String, _ cause: CacheError, _ text: @autoclosure () -> String) {
        let name = "\(kind) \(cause.posixCode.map { "\($0.rawValue)" } ?? cause.code.description)"
        guard warnedCauses.withLock({ $0.insert(name).inserted }) else { return }
        warn(text())
    }
}
