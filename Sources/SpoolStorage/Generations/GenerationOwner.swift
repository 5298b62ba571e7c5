package import ByteRanges
import Foundation
import Synchronization

/// The interface through which a version calls its store, so that neither depends on the implementation of the other.
///
/// No method is called while a lock of the version is held.
protocol GenerationOwner: AnyObject, Sendable {
    /// The monotonic time since the store's clock was created.
    var elapsed: Duration { get }

    /// Schedules the recording of a change to the version in the catalog.
    func recordChange(of generation: Generation)

    /// Schedules the recording of a complete block in the catalog.
    func recordCompletion(of generation: Generation)

    /// Records the end of a transfer, and creates the file of the next version in advance, because no reader is
    /// waiting.
    func recordStoringEnded(of generation: Generation)

    /// Makes the version the stored one for its key, because its first block is stored.
    func recordFirstBlockStored(of generation: Generation)

    /// Reserves capacity for bytes, claims capacity for a row, and evicts media if necessary. The method does not
    /// occupy a thread while it waits for its turn.
    ///
    /// - Parameter isUrgent: A function that returns whether a player is waiting for the bytes at the time of the call.
    /// - Returns: `full` if there is still no space after all evictable media has been evicted. `late` if a player is
    ///   waiting and freeing space takes too long.
    func reserveSpace(
        _ count: Int64, rowBytes: Int64, isUrgent: @escaping @Sendable () -> Bool
    ) async -> ReservationResult

    /// Evicts bytes of all versions from memory if they are not near any reader.
    ///
    /// - Returns: Whether any bytes were evicted.
    func makeMemory(_ count: Int64) -> Bool

    /// Returns the users that have the version open.
    func users(of generation: Generation) -> [any GenerationUser]

    /// Returns another lease on an open version; `nil` if it is no longer open.
    func extend(_ generation: Generation) -> Lease?

    /// Reports an event.
    func report(_ event: StoreEvent)
}

/// An object that has a version open to read or store its bytes.
///
/// The store references it weakly. Methods may be called on any thread, but never while a lock of the store is held.
/// They must not block.
package protocol GenerationUser: AnyObject, Sendable {
    /// Returns ranges of whole blocks within `place`, about `count` bytes in total, that are not near any reader. This
    /// object treats them as missing until the result is reported.
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>]

    /// Reports that the offered ranges were evicted, except `kept`, which a slice holds or a transfer is filling.
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation)

    /// Reports bytes that a read found damaged or unreadable, and that are now missing.
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation)

    /// Returns whether a transfer is fetching bytes of the generation that a reader of this object needs now or later.
    func isFilling(_ generation: Generation) -> Bool

    /// Reports that the version is no longer in the cache, because it was removed or replaced. Its bytes stay readable
    /// through leases, but no more bytes are stored.
    func retired(_ generation: Generation)
}

/// An event in a store. Events may be delivered on any thread, but never while a lock is held.
package enum StoreEvent: Sendable {
    /// The given number of bytes of the resource were evicted.
    case evicted(CacheKey, url: String, bytes: Int64)
    /// The given ranges of the resource were evicted, up to `Int64.max` if all bytes were. This event precedes
    /// `evicted`.
    case evictedRanges(CacheKey, ByteRangeSet)
    /// Stored bytes did not match their checksums, or could not be read, and were discarded.
    case blocksInvalidated(CacheKey, url: String, Range<Int64>)
    /// Because of the error, bytes of the resource are temporarily stored in memory. The event is reported once for
    /// each version.
    case notCached(CacheKey, url: String, CacheError)
    /// A warning about background work, such as a catalog that could not be written.
    case warning(String)
}

/// The reporter of a store's events. It records the warnings that were reported, so that some are reported only once.
final class StoreReporter: Sendable {
    private let onEvent: @Sendable (StoreEvent) -> Void
    /// The causes for which a warning was reported.
    private let warnedCauses = Mutex<Set<String>>([])

    init(_ onEvent: @escaping @Sendable (StoreEvent) -> Void) { self.onEvent = onEvent }

    /// Reports an event.
    func report(_ event: StoreEvent) { onEvent(event) }

    /// Reports a warning.
    func warn(_ text: String) { onEvent(.warning(text)) }

    /// Reports a warning, unless a warning of this kind with the same system error was already reported.
    func warnOnce(_ kind: String, _ cause: CacheError, _ text: @autoclosure () -> String) {
        let name = "\(kind) \(cause.posixCode.map { "\($0.rawValue)" } ?? cause.code.description)"
        guard warnedCauses.withLock({ $0.insert(name).inserted }) else { return }
        warn(text())
    }
}
