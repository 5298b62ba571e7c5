/// Brings media into a cache before anyone plays it: some files at a time, the most urgent first.
///
/// ```swift
/// let preloader = Preloader(cache)
/// let next = preloader.add(MediaSource(url: url), .start, priority: .high)
/// for await state in next.states { bar.progress = state.fractionCompleted ?? 0 }
/// ```
///
/// What is stored is not asked for again, so a preload that was given up, or whose process ended, goes on where it left
/// off. While a player waits for bytes, on whatever media, preloads hold still at once. They do not pin what they bring: it
/// may be evicted again. Playlists are brought as files; the segments that they name are not.
///
/// What has been added goes on without the preloader being held, until it is done, cancelled, or the cache is closed.
public final class Preloader: Sendable {
    let work: PreloadWork

    /// A preloader for a cache.
    ///
    /// - Parameters:
    ///   - cache: Where what it brings is kept.
    ///   - jobs: How many files are brought at a time; at least 1. An origin is sent no more requests at once than the
    ///     cache's configuration allows.
    public init(_ cache: MediaCache, jobs: Int = 4) { work = PreloadWork(cache, jobs: max(1, jobs)) }

    /// Whether preloads are put off: what runs ends at once and waits, to go on where it left off.
    ///
    /// For an app that has something better to do with the line. On Apple's platforms `conditions` say when the system's
    /// state puts them off, too.
    public var isPaused: Bool {
        get { work.isPaused(because: .asked) }
        set { work.pause(newValue, because: .asked) }
    }

    /// Adds a media file.
    @discardableResult
    public func add(
        _ source: MediaSource, _ amount: PreloadAmount = .start, priority: PreloadPriority = .normal
    ) -> Preload {
        let preload = Preload(source, amount, priority)
        work.add(preload)
        return preload
    }

    /// Gives up all that has not ended; what has landed stays.
    public func cancelAll() { work.cancelAll() }
}
