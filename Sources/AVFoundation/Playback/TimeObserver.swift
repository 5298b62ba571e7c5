import Dispatch

/// A periodic time observer, and whether it is due.
struct TimeObserver {
    let token: TimeObserverToken
    let interval: Double
    let queue: DispatchQueue
    let block: @Sendable (CMTime) -> Void
    /// The last multiple of the interval that was told, in intervals.
    var lastTold: Int64?

    /// Whether a new multiple of the interval has been reached, or time has jumped back.
    mutating func isDue(at seconds: Double) -> Bool {
        let step = Int64(exactly: (seconds / interval).rounded(.down)) ?? 0
        guard step != lastTold else { return false }
        lastTold = step
        return true
    }
}

/// Identifies an observer, for its removal.
final class TimeObserverToken: Sendable {}
