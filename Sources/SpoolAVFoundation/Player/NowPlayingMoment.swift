#if canImport(AVFoundation) && !os(watchOS)
/// What a system's now-playing display was told, which goes on by itself from there.
struct NowPlayingMoment: Hashable, Sendable {
    var entry: CachingQueue.Entry.ID
    /// Seconds; nil for a live stream, or while it is not known.
    var duration: Double?
    /// 0 while nothing moves.
    var rate: Double
    /// Where it plays, in seconds, at ``at``.
    var time: Double
    /// When, by a clock that only goes forwards.
    var at: Duration

    /// How far a display may be from the truth, in seconds.
    private static let tolerance = 1.0

    /// Whether a display that was told `former` shows this now.
    func follows(_ former: NowPlayingMoment) -> Bool {
        guard entry == former.entry, duration == former.duration, rate == former.rate else { return false }
        let shown = former.time + (at - former.at) / .seconds(1) * rate
        return abs(shown - time) < Self.tolerance
    }
}

/// Shows what a player plays where the system shows it.
@MainActor protocol NowPlayingDisplay: AnyObject {
    /// Called whenever the player has been looked at.
    func update(_ player: CachingPlayer)
}
#endif
