public import Foundation
import HTTPTypes
public import Logging
import Synchronization

/// A cache of media files on disk: play once, keep every byte.
///
/// One process at a time has a directory; within it, share one `MediaCache`. Opening a media file through it
/// (``media(for:)``) costs nothing, and reading one that is complete asks the origin nothing. All methods may be called
/// from any task.
public final class MediaCache: Sendable {
    /// How a cache works.
    public struct Configuration: Sendable {
        /// The most bytes of media to keep; nil keeps what was set for the directory before, at first no limit.
        public var capacity: Int64?
        /// When what is stored may be used without asking the origin.
        public var freshness = FreshnessPolicy.immutable
        /// Which addresses mean the same media file.
        public var keyPolicy = CacheKeyPolicy.url
        /// How much is asked for at once, and how far ahead of the player.
        public var readAhead = ReadAheadPolicy()
        /// When a failed request is tried again.
        public var retry = RetryPolicy()
        /// Bytes that one resource may hold in memory where the disk can't take them.
        public var memoryLimit: Int64 = 16 << 20
        /// What goes first when room is needed.
        public var eviction: any EvictionPolicy = LeastRecentlyUsed()
        /// Where messages go.
        public var logger = Logger(label: "spool")

        /// The default configuration.
        public init() {}
    }

    let services: CacheServices
    let resources: OpenResources
    private let total = Mutex(Statistics())
    /// What was found wrong with the directory at opening, and mended: a catalog set aside, files swept away.
    public let notices: [String]

    /// Opens, or begins, the cache in `directory`.
    ///
    /// - Throws: `CacheError`: `.directoryInUse` when another process has it (the message names that process),
    ///   `.catalogTooNew` when a newer version wrote it, `.storage` when the directory can't be made or written.
    public convenience init(
        directory: URL, upstream: any Upstream, configuration: Configuration = Configuration()
    ) async throws {
        try await self.init(
            directory: directory, upstream: upstream, configuration: configuration, fileSystem: SystemFileSystem(),
            clock: CacheClock(clock: ContinuousClock()), executor: BlockingExecutor())
    }

    /// As the public one, on files, time and threads of the caller's choice.
    ///
    /// - Parameter executor: Where every task of the cache runs, timers too: one that runs on a test's executor makes
    ///   a run repeatable.
    package init(
        directory: URL, upstream: any Upstream, configuration: Configuration, fileSystem: any FileSystem,
        clock: CacheClock, executor: BlockingExecutor = BlockingExecutor()
    ) async throws {
        let resources = OpenResources(executor: executor)
        self.resources = resources
        (self.services, self.notices) = try await executor.run {
            try CacheServices.open(
                directory: directory, upstream: upstream, configuration: configuration, fileSystem: fileSystem,
                time: clock, executor: executor, resources: resources)
        }
    }

    /// Opens a media file through the cache.
    public func media(for source: MediaSource) -> Media {
        let key = key(for: source)
        let scheduler = resources.acquire(key) { Scheduler(key: key, source: source, services: services) }
        return Media(key: key, source: source, scheduler: scheduler, registry: resources)
    }

    /// Opens the media file at `url` through the cache.
    public func media(for url: URL) -> Media { media(for: MediaSource(url: url)) }

    /// The key under which the media file of `source` is kept.
    ///
    /// Under ``FreshnessPolicy/http``, a source that sends credentials (`Authorization`, `Cookie`) shares its bytes only
    /// with sources that send the same ones (RFC 9111 §3.5).
    public func key(for source: MediaSource) -> CacheKey {
        let key = key(for: source.url)
        let credentials = [HTTPField.Name.authorization, .cookie].flatMap { name in
            source.fields[values: name].map { "\(name.canonicalName): \($0)" }
        }
        guard services.configuration.freshness == .http, !credentials.isEmpty else { return key }
        return CacheKey(name: ([key.hash] + credentials).joined(separator: "\n"))
    }

    /// The key under which the media file at `url` is kept.
    public func key(for url: URL) -> CacheKey { services.configuration.keyPolicy.key(for: url) }

    /// What happens from now on, to all resources; each call gives a stream of its own.
    public var events: AsyncStream<CacheEvent> { services.events.events() }

    /// Bytes of media that are kept now.
    public var storedBytes: Int64 { services.capacity.used }

    /// The most bytes of media to keep; nil: no limit.
    public var capacity: Int64? { services.capacity.limit }

    /// Writes down what has landed, ends all transfers and closes the directory. Readers end with an error.
    ///
    /// What is nearly done is let in first. Call it before the process ends; what a kill leaves out is at most what
    /// arrived in the last tenth of a second.
    public func close() async {
        await resources.closeAll()
        services.flusher.close()
        try? await services.executor.run {
            self.services.flusher.write()
            try self.services.directory.close()
        }
        services.events.finish()
    }
}
