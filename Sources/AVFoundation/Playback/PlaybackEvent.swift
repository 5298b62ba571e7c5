/// One message from a playback to its player; they come in order.
enum PlaybackEvent: Sendable, Equatable {
    case ready
    case time(Double)
    case ended
    case failed
    /// More has been read ahead, or what was is of no use any more.
    case loaded
    /// Playback runs, or waits for media or for a seek.
    case running(Bool)
    /// Media has not come in time.
    case stalled
    case seekFinished(id: UInt64, completed: Bool)
    /// The picture that was asked for.
    case picture(Snapshot)
    /// Someone paused, or played on, at the window.
    case pausedInWindow(Bool)
    /// Someone closed the window.
    case closed
}
