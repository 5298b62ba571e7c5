import ByteRanges
import SpoolScheduling
import Synchronization

/// The bytes of one resource that have become readable since it was opened, and that no reader has read yet.
///
/// A reader reads stored bytes without the lock of the scheduler. If the bytes were added after they became readable, a
/// reader could read them first, and they would count as unserved forever. Therefore, the scheduler adds bytes under
/// its lock, in the step that makes them readable. The lock of this type is held only to change a counter, and no other
/// code is called while it is held.
final class UnservedBytes: Sendable {
    private struct State {
        var ranges = ByteRangeSet()
        var freshCount: Int64 = 0
        var storedCount: Int64 = 0
    }

    private let state = Mutex(State())
    /// Whether there may be unserved bytes. Readers of bytes that were stored long ago do not need the lock.
    private let mayHaveBytes = Atomic(false)

    /// The number of bytes that have become readable since the resource was opened, and the number of those that were
    /// stored in the cache. The other bytes were only in memory, because storing them failed or was not allowed.
    var counts: (fresh: Int64, stored: Int64) { state.withLock { ($0.freshCount, $0.storedCount) } }

    /// Adds bytes that have just become readable, and that were not readable before.
    ///
    /// - Parameter isStored: Whether the bytes were stored in the cache, instead of only in memory.
    func add(_ fresh: ByteRangeSet, isStored: Bool) {
        state.withLock { state in
            state.freshCount += fresh.byteCount
            if isStored { state.storedCount += fresh.byteCount }
            for range in fresh { state.ranges.insert(range) }
            mayHaveBytes.store(!state.ranges.isEmpty, ordering: .releasing)
        }
    }

    /// Removes bytes that a reader has taken.
    ///
    /// - Returns: The number of those bytes that no reader has read before.
    func take(_ range: Range<Int64>) -> Int64 {
        guard mayHaveBytes.load(ordering: .acquiring) else { return 0 }
        return state.withLock { state in
            let count = state.ranges.intersection(range).byteCount
            if count > 0 { state.ranges.remove(range) }
            mayHaveBytes.store(!state.ranges.isEmpty, ordering: .releasing)
            return count
        }
    }

    /// Removes all bytes, because a different version has become current.
    func removeAll() {
        state.withLock { state in
            state.ranges = ByteRangeSet()
            mayHaveBytes.store(false, ordering: .releasing)
        }
    }
}
