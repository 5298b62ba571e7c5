extension MediaCache {
    /// Brings media into the cache before anyone plays it, some files at a time in the order given.
    ///
    /// ```swift
    /// cache.preload(playlist.map { MediaSource(url: $0) })
    /// ```
    ///
    /// They need not be held. For priorities, or to put all of them off, make a ``Preloader``.
    @discardableResult
    public func preload(_ sources: [MediaSource], _ amount: PreloadAmount = .start, jobs: Int = 4) -> [Preload] {
        let preloader = Preloader(self, jobs: jobs)
        return sources.map { preloader.add($0, amount) }
    }
}
