public import Foundation

// Not in the class: see `AVPlayer.seeks`.
extension AVPlayerItem {
    /// The stretches of time whose media is at hand, each a `CMTimeRange`.
    ///
    /// Here one at most: from where the item plays up to where libmpv has read, which is a few seconds further. Empty
    /// while no player has the item, until it is ready, and from a seek until it has arrived.
    /// `.AVPlayerItemLoadedTimeRangesDidChange` tells when to look again.
    public var loadedTimeRanges: [NSValue] {
        guard status == .readyToPlay, let loadedUntil = state.loadedUntil else { return [] }
        let (start, end) = (state.time, min(loadedUntil, state.duration ?? loadedUntil))
        return end > start ? [Self.range(from: start, to: end)] : []
    }

    /// The stretches of time that the item can seek to, each a `CMTimeRange`.
    ///
    /// Here one at most: the whole of it, if its bytes can be had out of order. Empty until it is ready.
    public var seekableTimeRanges: [NSValue] {
        guard status == .readyToPlay, state.isSeekable, let duration = state.duration, duration > 0 else { return [] }
        return [Self.range(from: 0, to: duration)]
    }

    private static func range(from start: Double, to end: Double) -> NSValue {
        NSValue(
            timeRange: CMTimeRange(
                start: CMTime(seconds: start, preferredTimescale: 1_000_000),
                end: CMTime(seconds: end, preferredTimescale: 1_000_000)))
    }
}
