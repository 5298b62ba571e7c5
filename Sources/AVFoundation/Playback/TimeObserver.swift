import Dispatch

/// Who wants to hear as time passes, and when it is time again.
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

/// What stands for an observer, to take it away by.
final class TimeObserverToken: Sendable {}
