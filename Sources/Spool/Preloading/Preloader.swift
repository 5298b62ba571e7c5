import SpoolScheduling

/// An object that fetches media into a cache before playback: several files at a time, the highest priority first.
///
/// ```swift
/// let preloader = Preloader(cache)
/// let next = preloader.add(MediaSource(url: url), .startup, priority: .high)
/// for await state in next.states { bar.progress = state.fractionCompleted ?? 0 }
/// ```
///
/// Stored bytes are not fetched again. A preload that was cancelled, or whose process has ended, continues with the
/// missing ranges when it is added again. While a player waits for bytes of any media, preloads pause, for at most ten
/// seconds at a time. Preloads do not pin media, so the media may be evicted again. Playlists are preloaded as files,
/// without their segments.
///
/// Preloads continue without the preloader until they end or are cancelled, or the cache is closed.
public final class Preloader: Sendable {
    let work: PreloadWork

    /// Creates a preloader for a cache.
    ///
    /// - Parameters:
    ///   - cache: The cache.
    ///   - maximumConcurrentDownloads: The maximum number of concurrent preloads; at least 1. The configuration of the
    ///     cache limits the requests to an origin.
    public init(_ cache: MediaCache, maximumConcurrentDownloads: Int = 4) {
        work = PreloadWork(cache, maximumConcurrentDownloads: max(1, maximumConcurrentDownloads))
    }

    /// Whether preloads are paused. Setting this property to `true` stops running preloads, which continue later with
    /// the missing ranges.
    ///
    /// Use this property if the app needs the bandwidth. On Apple platforms, ``conditions`` also pauses preloads
    /// depending on the system's state, by default in Low Data Mode.
    public var isPaused: Bool {
        get { work.isPaused(because: .asked) }
        set { work.pause(newValue, because: .asked) }
    }

    /// Adds a preload of a source to the queue, and returns it.
    @discardableResult
    public func add(
        _ source: MediaSource, _ amount: PreloadAmount = .startup, priority: PreloadPriority = .normal
    ) -> Preload {
        let preload = Preload(source, amount, priority)
        work.add(preload)
        return preload
    }

    /// Cancels all preloads that have not ended. Stored bytes stay in the cache.
    public func cancelAll() { work.cancelAll() }
}

extension MediaCache {
    /// Fetches media into the cache before playback, several files at a time in the given order.
    ///
    /// ```swift
    /// cache.preload(playlist.map { MediaSource(url: $0) })
    /// ```
    ///
    /// You need not retain the results. For priorities and pausing, create a ``Preloader``.
    @discardableResult
    public func preload(
        _ sources: [MediaSource], _ amount: PreloadAmount = .startup, maximumConcurrentDownloads: Int = 4
    ) -> [Preload] {
        let preloader = Preloader(self, maximumConcurrentDownloads: maximumConcurrentDownloads)
        return sources.map { preloader.add($0, amount) }
    }
}
