/// Space that a task waits for while another task evicts media.
///
/// The wait ends when the space is reserved, when nothing more can be evicted, or when it has lasted too long. Nothing
/// is reserved after the end of the wait.
final class AwaitedSpace: Sendable {
    private struct State: ~Copyable {
        var isOver = false
        var isLate = false
        var isCancelled = false
        var result = ReservationResult.full
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = ClassedMutex(State(), .neverWaits)

    var isOver: Bool { state.withLock { $0.isOver } }
    var isLate: Bool { state.withLock { $0.isLate } }
    /// Whether the waiting task was cancelled. The task still waits briefly, because its bytes have been received.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Reserves the space if there is enough.
    ///
    /// - Returns: Whether no more media has to be evicted, because the space is reserved or the wait is over.
    func reserve(_ count: Int64, rowBytes: Int64, of ledger: Ledger) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return true }
            state.result = ledger.reserve(count, rowBytes: rowBytes)
            return state.result.isReserved
        }
    }

    /// Returns the reservation to the task that has waited for it.
    func take() -> ReservationResult {
        state.withLock { Self.exchange(&$0.result, with: .full) }
    }

    // In older standard libraries, only copyable values can be swapped.
    private static func exchange(
        _ result: inout ReservationResult, with new: consuming ReservationResult
    ) -> ReservationResult {
        let previous = result
        result = new
        return previous
    }

    /// Ends the wait.
    func end(isLate: Bool = false) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.isOver else { return nil }
            state.isOver = true
            state.isLate = isLate
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Suspends the task until the wait has ended.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isOver = state.withLock { state in
                    if !state.isOver { state.waiter = continuation }
                    return state.isOver
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.isCancelled = true }
        }
    }
}
