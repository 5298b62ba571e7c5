public import Foundation
import SpoolStorage

extension MediaCache {
    /// A cache in memory, catalog and all, which is gone when it is released: for a test of one's own code, or where nothing
    /// may be left on the disk.
    ///
    /// It works as any other, by the same code; with an upstream that is made up, it needs no network.
    ///
    /// ```swift
    /// let cache = MediaCache.inMemory(upstream: FakeOrigin(), clock: clock)
    /// let data = try await cache.media(for: url).data(in: 0..<1000)
    /// await cache.close()
    /// ```
    ///
    /// - Parameters:
    ///   - upstream: Where bytes come from.
    ///   - configuration: How the cache works. Its capacity is as much memory as it takes; unless it is set, 256 MiB. It is not
    ///     enciphered.
    ///   - clock: What delays, back-off and the writing down of what has landed wait on.
    ///   - now: The calendar, by which responses become stale and requests expire; from any thread.
    public static func inMemory(
        upstream: any Upstream, configuration: Configuration = Configuration(),
        clock: some Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }
    ) -> MediaCache {
        var configuration = configuration
        if configuration.capacity == .standard { configuration.capacity = .bytes(256 << 20) }
        return MediaCache(
            directory: nil, upstream: upstream, configuration: configuration, fileSystem: SystemFileSystem(),
            clock: CacheClock(clock: clock, now: now))
    }
}
