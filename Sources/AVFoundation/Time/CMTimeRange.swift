/// A stretch of time in the media, half-open: from ``start`` up to ``end``.
///
/// Stand-in for CoreMedia's `CMTimeRange`, without its set arithmetic.
public struct CMTimeRange: Sendable, Hashable {
    /// Where the stretch begins.
    public var start: CMTime
    /// How long it is.
    public var duration: CMTime

    /// A stretch from its beginning and its length.
    public init(start: CMTime, duration: CMTime) {
        self.start = start
        self.duration = duration
    }

    /// A stretch from its beginning and its end.
    public init(start: CMTime, end: CMTime) {
        self.init(start: start, duration: end - start)
    }

    /// The first time that no longer belongs to the stretch.
    public var end: CMTime { start + duration }

    /// Whether the time lies in the stretch.
    public func containsTime(_ time: CMTime) -> Bool { time >= start && time < end }
}
