import Synchronization

/// Counts the bytes that the cache keeps on disk, and says no before they would be too many.
///
/// Bytes are reserved before they are written and released after they are gone, so that the sum never passes the
/// limit at any moment. Counted are landed bytes; the file system's own rounding and the catalog come on top.
package final class Capacity: Sendable {
    private struct State {
        var limit: Int64?
        var used: Int64
    }

    private let state: Mutex<State>

    package init(limit: Int64?, used: Int64) { state = Mutex(State(limit: limit, used: used)) }

    /// The limit in bytes; nil: none.
    package var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// Bytes reserved or kept.
    package var used: Int64 { state.withLock { $0.used } }

    /// How many bytes must go before the limit holds again; 0 if it holds.
    package var excess: Int64 { state.withLock { max(0, $0.used - ($0.limit ?? .max)) } }

    /// Takes `count` bytes if they fit.
    package func reserve(_ count: Int64) -> Bool {
        state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(count)
            guard !overflow, sum <= state.limit ?? .max else { return false }
            state.used = sum
            return true
        }
    }

    /// Gives `count` bytes back.
    package func release(_ count: Int64) {
        state.withLock { $0.used = max(0, $0.used - count) }
    }
}
