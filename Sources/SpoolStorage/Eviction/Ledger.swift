import Synchronization

/// Counts bytes of one kind that the cache holds, on disk or in memory, and says no before they would be too many.
///
/// `used` is the sum of what is claimed and what is reserved. Bytes are reserved before they are written; as they land,
/// the reservation turns into a claim, which changes nothing here; what goes, and what was reserved in vain, is given
/// back once. Counted are landed bytes; the file system's own rounding and the catalog come on top.
///
/// Its lock is the innermost: nothing is called under it.
package final class Ledger: Sendable {
    private struct State {
        var limit: Int64?
        var used: Int64
        /// Part of `used` that has not landed.
        var reserved: Int64 = 0
    }

    private let state: Mutex<State>

    /// Begins with `used` bytes claimed.
    package init(limit: Int64?, used: Int64) { state = Mutex(State(limit: limit, used: used)) }

    /// The limit in bytes; nil: none.
    package var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// Bytes claimed or reserved.
    package var used: Int64 { state.withLock { $0.used } }

    /// Bytes reserved.
    package var reserved: Int64 { state.withLock { $0.reserved } }

    /// Sets `count` bytes aside if they fit.
    package func reserve(_ count: Int64) -> ReservationResult {
        let fits = state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(count)
            guard !overflow, sum <= state.limit ?? .max else { return false }
            state.used = sum
            state.reserved += count
            return true
        }
        return fits ? .reserved(Reservation(count, of: self)) : .full
    }

    /// Sets `count` bytes aside whether they fit or not, since somebody would wait for ever.
    package func reserveRegardless(_ count: Int64) -> Reservation {
        state.withLock { state in
            state.used += count
            state.reserved += count
        }
        return Reservation(count, of: self)
    }

    /// Bytes that were claimed are gone.
    package func giveBack(_ count: Int64) {
        // What has just landed may go before its reservation has ended. A damaged catalog's sum may be less than its parts.
        state.withLock { $0.used = max(0, $0.used - max(0, count)) }
    }

    /// Claims of a stored generation turned out to be so much more than recorded, or less.
    package func correct(by difference: Int64) {
        state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(difference)
            state.used = overflow ? (difference > 0 ? .max : 0) : max(0, sum)
        }
    }

    fileprivate func endReservation(landed: Int64, unused: Int64) {
        state.withLock { state in
            state.reserved -= landed + unused
            state.used -= unused
        }
    }
}

/// Whether bytes could be set aside.
///
/// Not an optional: standard libraries before Swift 6's have none of what can't be copied.
package enum ReservationResult: ~Copyable, Sendable {
    /// They were.
    case reserved(Reservation)
    /// There is no room for them.
    case full
}

/// Bytes of a ledger, set aside for what is about to land; what has not landed goes back at its end.
package struct Reservation: ~Copyable, Sendable {
    private let ledger: Ledger?
    /// Bytes that may still land.
    package private(set) var remaining: Int64

    fileprivate init(_ count: Int64, of ledger: Ledger) {
        self.ledger = ledger
        self.remaining = count
    }

    /// Nothing.
    package init() {
        self.ledger = nil
        self.remaining = 0
    }

    /// So many bytes have landed, and are a claim from now on.
    package mutating func land(_ count: Int64) {
        precondition(count >= 0 && count <= remaining, "more has landed than was reserved")
        remaining -= count
        ledger?.endReservation(landed: count, unused: 0)
    }

    deinit { ledger?.endReservation(landed: 0, unused: remaining) }
}
