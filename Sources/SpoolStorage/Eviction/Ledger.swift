import Synchronization

/// The account of the bytes that the cache stores, either on disk or in memory. It rejects bytes that would exceed the
/// limit.
///
/// `used` is the sum of claimed and reserved bytes. Bytes are reserved before they are written. When they are stored,
/// the reservation becomes a claim, and `used` does not change. Removed bytes and unused reservations are returned
/// once. Only received bytes are counted.
///
/// Rows in the catalog, with their header fields, are counted separately (``rowBytes``). They may exceed the limit by
/// ``allowance(of:)``, which is a small part of the limit. Rows beyond the allowance use the space for media.
/// Therefore, a cache uses at most the limit plus that allowance on disk, even if all resources are small.
///
/// The lock of the account is the innermost one: no other lock is taken while it is held.
final class Ledger: Sendable {
    private struct State {
        var limit: Int64?
        var used: Int64
        /// The part of `used` that is reserved, but not stored yet.
        var reserved: Int64 = 0
        var rowBytes: Int64 = 0
        /// The size of a damaged catalog that was set aside, in bytes.
        var setAsideByteCount: Int64 = 0

        /// The limit for media and rows together, in bytes.
        var sumLimit: Int64 {
            guard let limit else { return .max }
            let (sum, overflow) = limit.addingReportingOverflow(Ledger.allowance(of: limit))
            return (overflow ? .max : sum) - setAsideByteCount
        }
    }

    private let state: Mutex<State>
    private let writeFails = Atomic(false)

    /// Creates an account in which `used` bytes, and `rowBytes` of rows, are claimed.
    init(limit: Int64?, used: Int64, rowBytes: Int64 = 0) {
        state = Mutex(State(limit: limit, used: used, rowBytes: rowBytes))
    }

    /// Returns the number of bytes that rows may use beyond a limit: a sixteenth of it, but at least 128 KiB.
    static func allowance(of limit: Int64) -> Int64 { max(limit / 16, 128 << 10) }

    /// Whether the last write of received bytes failed, for example because the disk is full.
    var isWriteFailing: Bool { writeFails.load(ordering: .relaxed) }

    /// Records the result of a write of received bytes.
    func recordWrite(hasFailed: Bool) {
        if isWriteFailing != hasFailed { writeFails.store(hasFailed, ordering: .relaxed) }
    }

    /// The limit in bytes, or `nil` for no limit.
    var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// The size of a damaged catalog that was set aside, in bytes. It counts against the space for rows, or for media.
    var setAsideByteCount: Int64 {
        get { state.withLock { $0.setAsideByteCount } }
        set { state.withLock { $0.setAsideByteCount = newValue } }
    }

    /// The number of claimed or reserved bytes.
    var used: Int64 { state.withLock { $0.used } }

    /// The number of reserved bytes.
    var reserved: Int64 { state.withLock { $0.reserved } }

    /// The number of bytes that rows claim.
    var rowBytes: Int64 { state.withLock { $0.rowBytes } }

    /// Reserves `count` bytes, and claims `rowBytes` for a row, if both fit.
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

    /// Reserves `count` bytes even if they do not fit, because a reader would otherwise wait forever.
    func reserveRegardless(_ count: Int64) -> Reservation {
        state.withLock { state in
            state.used += count
            state.reserved += count
        }
        return Reservation(count, of: self)
    }

    /// Returns the number of bytes of media or rows to evict before a row of `count` bytes fits. The result is 0 or
    /// less if the row already fits.
    func shortage(ofRowBytes count: Int64) -> Int64 {
        state.withLock { $0.used.saturatingSum($0.rowBytes).saturatingSum(count) - $0.sumLimit }
    }

    /// Changes the claims of rows by `difference` bytes.
    func correctRows(by difference: Int64) {
        state.withLock { $0.rowBytes = max(0, $0.rowBytes.saturatingSum(difference)) }
    }

    /// Records that claimed bytes were removed.
    func releaseClaim(_ count: Int64) {
        // Bytes that were just stored may be removed before their reservation ends. In a damaged catalog, the sum may
        // be less than its parts.
        state.withLock { $0.used = max(0, $0.used - max(0, count)) }
    }

    /// Corrects the claims of a stored generation whose record was too low by `difference` bytes.
    func correct(by difference: Int64) {
        state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(difference)
            state.used = overflow ? (difference > 0 ? .max : 0) : max(0, sum)
        }
    }

    fileprivate func endReservation(stored: Int64, unused: Int64) {
        state.withLock { state in
            state.reserved -= stored + unused
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

/// The result of a reservation.
///
/// This type is not an optional, because standard libraries before Swift 6 do not support optionals of noncopyable
/// types.
enum ReservationResult: ~Copyable, Sendable {
    /// The bytes are reserved.
    case reserved(Reservation)
    /// There is no space for the bytes.
    case full
    /// There is still no space, and the maximum waiting time of a reader has passed.
    case late

    var isReserved: Bool {
        switch self {
        case .reserved: true
        case .full: false
        case .late: false
        }
    }
}

/// A reservation of bytes in an account. Bytes that were not stored are returned when the reservation ends.
struct Reservation: ~Copyable, Sendable {
    private let ledger: Ledger?
    /// The number of bytes that may still be stored.
    private(set) var remaining: Int64

    fileprivate init(_ count: Int64, of ledger: Ledger) {
        self.ledger = ledger
        self.remaining = count
    }

    /// Creates an empty reservation.
    init() {
        self.ledger = nil
        self.remaining = 0
    }

    /// Turns `count` reserved bytes, which have been stored, into a claim.
    mutating func claim(_ count: Int64) {
        precondition(count >= 0 && count <= remaining, "more bytes were stored than reserved")
        remaining -= count
        ledger?.endReservation(stored: count, unused: 0)
    }

    deinit { ledger?.endReservation(stored: 0, unused: remaining) }
}
