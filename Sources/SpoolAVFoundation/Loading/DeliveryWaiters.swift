#if canImport(AVFoundation) && !os(watchOS)
import Synchronization

/// One wait for bytes to be handed to the player.
final class DeliveryWait: Sendable {
    /// Whether nobody waits any more.
    let isCancelled = Atomic(false)
}

/// Who waits for how many more bytes to be handed to the player.
///
/// Decides only who is to be woken; whoever holds it wakes them. Every continuation that is added comes out once.
struct DeliveryWaiters {
    private struct Waiter {
        let wait: DeliveryWait
        var remaining: Int64
        let continuation: CheckedContinuation<Bool, Never>
    }

    private var waiters: [Waiter] = []

    mutating func add(_ wait: DeliveryWait, _ continuation: CheckedContinuation<Bool, Never>, count: Int64) {
        waiters.append(Waiter(wait: wait, remaining: count, continuation: continuation))
    }

    /// Bytes were handed over; gives those who have waited enough.
    mutating func delivered(_ count: Int64) -> [CheckedContinuation<Bool, Never>] {
        guard !waiters.isEmpty else { return [] }
        for index in waiters.indices { waiters[index].remaining -= count }
        return remove { $0.remaining <= 0 }
    }

    /// A wait was called off; gives whoever waited, unless that has come out before.
    mutating func cancelled(_ wait: DeliveryWait) -> [CheckedContinuation<Bool, Never>] { remove { $0.wait === wait } }

    /// There is nothing to wait for any more; gives everyone.
    mutating func removeAll() -> [CheckedContinuation<Bool, Never>] { remove { _ in true } }

    private mutating func remove(where isOver: (Waiter) -> Bool) -> [CheckedContinuation<Bool, Never>] {
        let over = waiters.filter(isOver).map(\.continuation)
        waiters.removeAll(where: isOver)
        return over
    }
}
#endif
