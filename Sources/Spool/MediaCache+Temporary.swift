public import Foundation
import SpoolStorage

extension MediaCache {
    /// A cache for a test of one's own code: in a directory of its own among the system's temporary ones, which goes when
    /// the cache is closed.
    ///
    /// It works as any other, on real files; with an upstream that is made up, it needs no network.
    ///
    /// ```swift
    /// let cache = MediaCache.temporary(upstream: FakeOrigin(), clock: clock)
    /// let data = try await cache.media(for: url).data(in: 0..<1000)
    /// await cache.close()
    /// ```
    ///
    /// - Parameters:
    ///   - upstream: Where bytes come from.
    ///   - configuration: How the cache works.
    ///   - clock: What delays, back-off and the writing down of what has landed wait on.
    ///   - now: The calendar, by which responses become stale and requests expire; from any thread.
    public static func temporary(
        upstream: any Upstream, configuration: Configuration = Configuration(),
        clock: some Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }
    ) -> MediaCache {
        let name = "spool-" + UUID().uuidString
        return MediaCache(
            directory: FileManager.default.temporaryDirectory.appending(path: name), upstream: upstream,
            configuration: configuration, fileSystem: SystemFileSystem(), clock: CacheClock(clock: clock, now: now),
            isTemporary: true)
    }
}
