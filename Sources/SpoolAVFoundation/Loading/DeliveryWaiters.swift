#if canImport(AVFoundation) && !os(watchOS)
/// Who waits for how many more bytes to be handed to the player.
///
/// Decides only who is to be woken; whoever holds it wakes them. Every continuation that is added comes out once.
struct DeliveryWaiters {
    private var waiters: [(remaining: Int64, continuation: CheckedContinuation<Bool, Never>)] = []

    mutating func add(_ continuation: CheckedContinuation<Bool, Never>, count: Int64) {
        waiters.append((count, continuation))
    }

    /// Bytes were handed over; gives those who have waited enough.
    mutating func delivered(_ count: Int64) -> [CheckedContinuation<Bool, Never>] {
        guard !waiters.isEmpty else { return [] }
        for index in waiters.indices { waiters[index].remaining -= count }
        let ready = waiters.filter { $0.remaining <= 0 }.map(\.continuation)
        waiters.removeAll { $0.remaining <= 0 }
        return ready
    }

    /// There is nothing to wait for any more; gives everyone.
    mutating func removeAll() -> [CheckedContinuation<Bool, Never>] {
        defer { waiters = [] }
        return waiters.map(\.continuation)
    }
}
#endif
