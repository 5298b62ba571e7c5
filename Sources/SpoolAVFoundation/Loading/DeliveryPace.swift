#if canImport(AVFoundation) && !os(watchOS)
import ByteRanges
import Synchronization

/// The rate at which stored bytes are delivered to one loading request. This type only makes decisions.
///
/// A player that has enough bytes cancels its request late, or never. In the meantime, all of the media could be read
/// from disk, and the player would hold it in memory. Therefore, each request first receives a burst, and then bytes at
/// a few times the playback rate. The burst covers small requests, and the first bytes after a seek.
struct DeliveryPace: Hashable, Sendable {
    /// The number of bytes to deliver without a delay.
    private(set) var burst = Self.smallestBurst
    /// The number of bytes per second after the burst.
    private(set) var bytesPerSecond = Self.unknownRate
    /// The number of bytes that may be delivered now. It is negative if the last chunk was larger.
    private var credit: Double
    private var lastTime: Duration?

    /// The rate for media with an unknown bit rate, in bytes per second. 64 Mbit/s is more than common players can use.
    private static let unknownRate: Double = 8 * 1_048_576
    private static let smallestBurst: Int64 = 4 << 20
    private static let largestBurst: Int64 = 32 << 20
    /// The minimum rate. It is needed because the stated duration may be wrong.
    private static let slowest: Double = 512 * 1024
    private static let secondsOfBurst: Double = 20
    /// The rate as a multiple of the playback rate.
    private static let margin: Double = 4

    init() { credit = Double(Self.smallestBurst) }

    /// Sets the length, duration and playback rate of the media, which determine the delivery rate.
    ///
    /// - Parameters:
    ///   - length: The length in bytes, or `nil` if it is unknown.
    ///   - duration: The duration in seconds, or `nil` if it is unknown.
    mutating func learn(length: Int64?, duration: Double?, rate: Float) {
        guard let length, let duration, duration.isFinite, duration > 0, length > 0, rate.isFinite else { return }
        let used = Double(length) / duration * Double(max(1, abs(rate)))
        bytesPerSecond = min(max(used * Self.margin, Self.slowest), Double(Int32.max))
        let previous = burst
        let wanted = Int64(saturating: min(used, 1e12) * Self.secondsOfBurst)
        burst = min(max(wanted, Self.smallestBurst), Self.largestBurst)
        credit += Double(burst - previous)
    }

    /// Records delivered bytes, and returns the time to wait before the next delivery.
    ///
    /// - Parameter now: The time since a fixed reference time.
    mutating func handedOver(_ count: Int, at now: Duration) -> Duration {
        if let lastTime {
            let seconds =
                Double((now - lastTime).components.seconds) + Double((now - lastTime).components.attoseconds) / 1e18
            credit = min(credit + max(0, seconds) * bytesPerSecond, Double(burst))
        }
        lastTime = now
        credit -= Double(count)
        return credit >= 0 ? .zero : .seconds(-credit / bytesPerSecond)
    }
}

/// A clock for pacing and retries.
struct LoadingClock: Sendable {
    /// The time since the clock was created.
    let now: @Sendable () -> Duration
    /// Waits for a duration, or throws `CancellationError` if the task is cancelled.
    let sleep: @Sendable (Duration) async throws -> Void

    init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
    }
}

/// A task's wait for bytes to be delivered to the player.
final class DeliveryWait: Sendable {
    /// Whether the waiting task was cancelled.
    let isCancelled = Atomic(false)
}

/// The tasks that wait for a number of bytes to be delivered to the player.
///
/// This type only makes decisions, and its owner resumes the tasks. Each added continuation is returned once.
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

    /// Records delivered bytes, and returns the continuations of the tasks for which enough bytes have been delivered.
    mutating func delivered(_ count: Int64) -> [CheckedContinuation<Bool, Never>] {
        guard !waiters.isEmpty else { return [] }
        for index in waiters.indices { waiters[index].remaining -= count }
        return remove { $0.remaining <= 0 }
    }

    /// Handles a cancellation, and returns the waiting task's continuation unless it was already returned.
    mutating func cancelled(_ wait: DeliveryWait) -> [CheckedContinuation<Bool, Never>] { remove { $0.wait === wait } }

    /// Removes and returns the continuations of all tasks, because no further bytes will be delivered.
    mutating func removeAll() -> [CheckedContinuation<Bool, Never>] { remove { _ in true } }

    private mutating func remove(where isOver: (Waiter) -> Bool) -> [CheckedContinuation<Bool, Never>] {
        let over = waiters.filter(isOver).map(\.continuation)
        waiters.removeAll(where: isOver)
        return over
    }
}
#endif
