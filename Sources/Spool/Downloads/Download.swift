public import SpoolStorage

/// One media file that is being brought to be kept offline: its progress.
///
/// It need not be held: what has been begun goes on. To give it up, take it out of its set:
/// ``Downloads/remove(_:from:)``.
public struct Download: Sendable {
    /// The media file's name in the cache.
    public let key: CacheKey
    let preload: Preload

    /// Where the bytes come from.
    public var source: MediaSource { preload.source }

    /// How far it has come.
    public var state: PreloadState { preload.state }

    /// How far it has come: its present state at once, then the newest one whenever it has changed; the last one tells the
    /// end. As ``Preload/states``.
    ///
    /// It has failed with `.capacityExceeded` where pins leave no room for it, and with `.incomplete` where it came and
    /// could not be kept.
    public var states: AsyncStream<PreloadState> { preload.states }

    /// Waits for the end, which it returns. A task that is cancelled waits no longer, and the download goes on.
    @discardableResult
    public func finished() async -> PreloadState { await preload.finished() }
}
