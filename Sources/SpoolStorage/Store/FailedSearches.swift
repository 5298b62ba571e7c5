/// The record of searches for media to evict that found nothing, so that they are not repeated. In a full cache, each
/// received chunk needs space, and a search examines all media.
///
/// After a search has found nothing, it is not repeated until a version is released, recorded or unpinned. It is also
/// repeated after a second, because the removal of other obstacles is not reported. For example, another task may have
/// had the turn of a key. This type does not perform the searches.
final class FailedSearches: Sendable {
    /// The time after which a search is repeated.
    static let interval: Duration = .seconds(1)

    private struct State {
        var changes: UInt64 = 0
        var failure: (changes: UInt64, time: Duration)?
        /// The time of the last search that queried all users of open versions.
        var queriedAllAt: Duration?
        var count = 0
    }

    private let state = ClassedMutex(State(), .neverWaits)

    /// The number of searches that were started.
    var count: Int { state.withLock { $0.count } }

    /// Records a change after which a search may find media.
    func recordChange() { state.withLock { $0.changes += 1 } }

    /// Starts a search.
    ///
    /// - Returns: The number of changes so far; `nil` if the search would probably find nothing.
    func begin(at now: Duration) -> UInt64? {
        state.withLock { state in
            if let failure = state.failure, failure.changes == state.changes, now - failure.time < Self.interval {
                return nil
            }
            state.count += 1
            return state.changes
        }
    }

    /// Records that a search found nothing.
    func recordFailure(of changes: UInt64, at now: Duration) { state.withLock { $0.failure = (changes, now) } }

    /// Returns whether a search must query the users of all open versions, not only of those whose readers have moved.
    func mustQueryAll(at now: Duration) -> Bool {
        state.withLock { state in
            if let last = state.queriedAllAt, now - last < Self.interval { return false }
            state.queriedAllAt = now
            return true
        }
    }
}
