package import ByteRanges
import Foundation
import Synchronization

/// The interface through which a version sends requests to its store, so that neither depends on the other's parts.
///
/// No method is called under a lock of the version.
protocol GenerationOwner: AnyObject, Sendable {
    /// The monotonic time, since the store's clock was created.
    var elapsed: Duration { get }

    /// Records a change of the version in the catalog soon.
    func recordChange(of generation: Generation)

    /// Records a block that is complete in the catalog soon.
    func recordCompletion(of generation: Generation)

    /// Prepares for the next version, because a transfer has ended, and no reader waits for it.
    func recordStoringEnded(of generation: Generation)

    /// Makes the version the stored one of its key, because its first block is stored.
    func recordProof(of generation: Generation)

    /// Reserves capacity, claims it for a row, and evicts media if necessary. No thread is held while it waits for its
    /// turn.
    ///
    /// - Parameter isUrgent: Whether a player waits for the bytes, at the time of the call.
    /// - Returns: `full` if there is no space after all evictable media has been evicted; `late` if a player waits and
    ///   freeing space takes a long time.
    func reserveSpace(
        _ count: Int64, rowBytes: Int64, isUrgent: @escaping @Sendable () -> Bool
    ) async -> ReservationResult

    /// Evicts bytes in memory, of any version, that no reader is near.
    ///
    /// - Returns: Whether any were evicted.
    func makeMemory(_ count: Int64) -> Bool

    /// Returns the users that have the version open.
    func users(of generation: Generation) -> [any GenerationUser]

    /// Returns one more lease on an open version; `nil` if it is no longer open.
    func extend(_ generation: Generation) -> Lease?

    /// Reports an event.
    func report(_ event: StoreEvent)
}

/// A user that has a version open to read or to store bytes.
///
/// The store holds it weakly. Methods are called on any thread, never under a lock of the store. They must not block.
package protocol GenerationUser: AnyObject, Sendable {
    /// Returns ranges of whole blocks within `place`, together about `count` bytes, that no reader is near. The user
    /// treats them as missing from now on, until the result is reported.
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>]

    /// Reports that the offered ranges were evicted, except `kept`, which a slice holds or a transfer is filling.
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation)

    /// Reports bytes that a read found damaged or unreadable, and that are missing now.
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation)

    /// Whether a transfer fetches bytes of the generation that a reader of this user needs now or later.
    func isFilling(_ generation: Generation) -> Bool

    /// Reports that the version has left the cache, because it was removed or replaced. Its bytes stay readable under
    /// leases. No more of its bytes are stored.
    func retired(_ generation: Generation)
}

/// An event in a store. Events are delivered on any thread, never under a lock.
package enum StoreEvent: Sendable {
    /// `bytes` bytes of the resource were evicted.
    case evicted(CacheKey, url: String, bytes: Int64)
    /// These bytes of the resource were evicted; up to `Int64.max` if all of them were. It precedes `evicted`.
    case evictedRanges(CacheKey, ByteRangeSet)
    /// Stored bytes did not match their checksums, or could not be read, and were discarded.
    case blocksInvalidated(CacheKey, url: String, Range<Int64>)
    /// Bytes of the resource are stored in memory for some time, because of the error. Reported once for each version.
    case notCached(CacheKey, url: String, CacheError)
    /// A warning about work in the background, such as a catalog that could not be written.
    case warning(String)
}

/// The receiver of a store's events. It remembers the warnings that were reported.
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
