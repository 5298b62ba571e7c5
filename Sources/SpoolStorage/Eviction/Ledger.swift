import Synchronization

/// Counts bytes of one kind that the cache holds, on disk or in memory, and says no before they would be too many.
///
/// `used` is the sum of what is claimed and what is reserved. Bytes are reserved before they are written; as they land,
/// the reservation turns into a claim, which changes nothing here; what goes, and what was reserved in vain, is given
/// back once. Counted are landed bytes.
///
/// Rows of the catalog, with the header fields that they hold, are counted apart (``rowBytes``). They may take a small
/// part of the limit beyond it, ``allowance(of:)``; what is more takes the place of media. So however small resources
/// are, a disk holds at most the limit and that allowance.
///
/// Its lock is the innermost: nothing is called under it.
final class Ledger: Sendable {
    private struct State {
        var limit: Int64?
        var used: Int64
        /// Part of `used` that has not landed.
        var reserved: Int64 = 0
        var rowBytes: Int64 = 0
        /// The size of a damaged catalog that was set aside.
        var setAsideByteCount: Int64 = 0

        /// The limit of media and rows together.
        var sumLimit: Int64 {
            guard let limit else { return .max }
            let (sum, overflow) = limit.addingReportingOverflow(Ledger.allowance(of: limit))
            return (overflow ? .max : sum) - setAsideByteCount
        }
    }

    private let state: Mutex<State>

    /// Begins with `used` bytes, and `rowBytes` of rows, claimed.
    init(limit: Int64?, used: Int64, rowBytes: Int64 = 0) {
        state = Mutex(State(limit: limit, used: used, rowBytes: rowBytes))
    }

    /// The bytes that rows may take beyond a limit: a sixteenth of it, and at least 128 KiB.
    static func allowance(of limit: Int64) -> Int64 { max(limit / 16, 128 << 10) }

    /// The limit in bytes; nil: none.
    var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// The size of a damaged catalog that was set aside, in bytes. It takes the place of rows, or of media.
    var setAsideByteCount: Int64 {
        get { state.withLock { $0.setAsideByteCount } }
        set { state.withLock { $0.setAsideByteCount = newValue } }
    }

    /// Bytes claimed or reserved.
    var used: Int64 { state.withLock { $0.used } }

    /// Bytes reserved.
    var reserved: Int64 { state.withLock { $0.reserved } }

    /// Bytes that rows claim.
    var rowBytes: Int64 { state.withLock { $0.rowBytes } }

    /// Sets `count` bytes aside, and claims `rowBytes` for a row, if both fit.
    func reserve(_ count: Int64, rowBytes: Int64 = 0) -> ReservationResult {
        let fits = state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(count)
            guard !overflow, sum <= state.limit ?? .max else { return false }
            let (rows, rowOverflow) = state.rowBytes.addingReportingOverflow(rowBytes)
            guard !rowOverflow, rows <= state.sumLimit - sum else { return false }
            state.used = sum
            state.reserved += count
            state.rowBytes = rows
            return true
        }
        return fits ? .reserved(Reservation(count, of: self)) : .full
    }

    /// Sets `count` bytes aside whether they fit or not, since somebody would wait for ever.
    func reserveRegardless(_ count: Int64) -> Reservation {
        state.withLock { state in
            state.used += count
            state.reserved += count
        }
        return Reservation(count, of: self)
    }

    /// How many bytes of media or rows have to go until a row of so many fits; 0 or less if it fits now.
    func shortage(ofRowBytes count: Int64) -> Int64 {
        state.withLock { $0.used.saturatingSum($0.rowBytes).saturatingSum(count) - $0.sumLimit }
    }

    /// Rows claim so many bytes more, or less.
    func correctRows(by difference: Int64) {
        state.withLock { $0.rowBytes = max(0, $0.rowBytes.saturatingSum(difference)) }
    }

    /// Bytes that were claimed are gone.
    func giveBack(_ count: Int64) {
        // What has just landed may go before its reservation has ended. A damaged catalog's sum may be less than its
        // parts.
        state.withLock { $0.used = max(0, $0.used - max(0, count)) }
    }

    /// Claims of a stored generation turned out to be so much more than recorded, or less.
    func correct(by difference: Int64) {
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

extension Int64 {
    fileprivate func saturatingSum(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}

/// Whether bytes could be set aside.
///
/// Not an optional: standard libraries before Swift 6's have none of what can't be copied.
enum ReservationResult: ~Copyable, Sendable {
    /// They were.
    case reserved(Reservation)
    /// There is no room for them.
    case full
    /// There is no space yet, and a reader has waited for long enough.
    case late

    var isReserved: Bool {
        switch self {
        case .reserved: true
        case .full: false
        case .late: false
        }
    }
}

/// Bytes of a ledger, set aside for what is about to land; what has not landed goes back at its end.
struct Reservation: ~Copyable, Sendable {
    private let ledger: Ledger?
    /// Bytes that may still land.
    private(set) var remaining: Int64

    fileprivate init(_ count: Int64, of ledger: Ledger) {
        self.ledger = ledger
        self.remaining = count
    }

    /// Nothing.
    init() {
        self.ledger = nil
        self.remaining = 0
    }

    /// So many bytes have landed, and are a claim from now on.
    mutating func land(_ count: Int64) {
        precondition(count >= 0 && count <= remaining, "more bytes were stored than reserved")
        remaining -= count
        ledger?.endReservation(landed: count, unused: 0)
    }

    deinit { ledger?.endReservation(landed: 0, unused: remaining) }
}
