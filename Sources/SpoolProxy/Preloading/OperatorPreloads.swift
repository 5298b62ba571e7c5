#if Proxy
import Logging
package import Spool
package import SpoolStorage
import SpoolStreams
import Synchronization

/// The preloads that the operator has started. They end when the server stops.
package final class OperatorPreloads: Sendable {
    /// The preloads of the server that runs the current command for another process. The value is `nil` outside of such
    /// a command.
    @TaskLocal package static var ofServer: OperatorPreloads?

    /// A running preload. The result of its task is `true` if the preload was cancelled before it was complete.
    private struct Running {
        let source: MediaSource
        let task: Task<Bool, Never>
    }

    private struct State {
        var tasks: [Int: Running] = [:]
        var last = 0
        var isEnded = false
    }

    private static let limit = 1000
    private let state = Mutex(State())
    private let logger: Logger
    /// A function that is called when a preload has pinned or stored something.
    private let changed: @Sendable () -> Void
    /// A function that is called with the source of a preload that was cancelled because its resource is being removed.
    private let cancelled: @Sendable (MediaSource) -> Void

    init(
        logger: Logger, changed: @escaping @Sendable () -> Void, cancelled: @escaping @Sendable (MediaSource) -> Void
    ) {
        self.logger = logger
        self.changed = changed
        self.cancelled = cancelled
    }

    /// Starts preloading an entire resource or stream. Errors are logged.
    ///
    /// - Parameter check: A function that throws an error if the URL of a file of the stream may not be requested.
    /// - Returns: `false` if too many preloads are running.
    func start(
        _ source: MediaSource, pins: Bool, in cache: MediaCache, check: @escaping @Sendable (OriginURL) throws -> Void
    ) -> Bool {
        state.withLock { state in
            guard !state.isEnded, state.tasks.count < Self.limit else { return false }
            state.last += 1
            let number = state.last
            let task = Task {
                let isCancelled = await self.run(source, pins: pins, in: cache, check)
                self.state.withLock { $0.tasks[number] = nil }
                return isCancelled
            }
            state.tasks[number] = Running(source: source, task: task)
            return true
        }
    }

    /// Cancels all preloads, and waits until they have ended.
    ///
    /// - Returns: The sources of the cancelled preloads.
    package func cancelAll() async -> [MediaSource] { await cancel { _ in true } }

    /// Cancels the preloads that would store a removed resource again, and waits until they have ended.
    ///
    /// - Returns: The sources of the cancelled preloads.
    /// - Throws: `CacheError` if the catalog can't be read.
    package func cancel(beforeRemoving key: CacheKey, from cache: MediaCache) async throws -> [MediaSource] {
        guard state.withLock({ !$0.tasks.isEmpty }) else { return [] }
        let keys = try await cache.preloadKeys(for: key)
        let sources = await cancel { keys.contains(cache.key(for: $0)) }
        // A response that is still being received would store the resource again after its removal.
        for source in sources { cache.discardTransfers(of: cache.key(for: source)) }
        return sources
    }

    /// Removes all resources that a selection includes, and cancels their preloads first.
    ///
    /// - Returns: The removed resources, the errors for resources that could not be removed, and the sources of the
    ///   cancelled preloads.
    /// - Throws: `CacheError` if the catalog can't be read.
    package func purge(
        _ selection: PurgeSelection, from cache: MediaCache
    ) async throws -> (removed: [StoredResource], failures: [CacheError], cancelled: [MediaSource]) {
        // A preload may not have stored any bytes yet.
        var cancelled = await cancel { selection.includes(url: $0.redactedURL) }
        guard state.withLock({ !$0.tasks.isEmpty }) else {
            let (removed, failures) = try await cache.purge(selection)
            return (removed, failures, cancelled)
        }
        let (removed, failures) = try await cache.purge(selection) { keys in
            let sources = await self.cancel { keys.contains(cache.key(for: $0)) }
            cancelled += sources
        }
        return (removed, failures, cancelled)
    }

    private func cancel(where isSelected: (MediaSource) -> Bool) async -> [MediaSource] {
        let selected = state.withLock { Array($0.tasks.values) }.filter { isSelected($0.source) }
        for preload in selected { preload.task.cancel() }
        var sources: [MediaSource] = []
        for preload in selected {
            // The preload may already have been complete.
            guard await preload.task.value else { continue }
            cancelled(preload.source)
            sources.append(preload.source)
        }
        return sources
    }

    /// Returns whether the preload was cancelled before it was complete.
    private func run(
        _ source: MediaSource, pins: Bool, in cache: MediaCache, _ check: @escaping @Sendable (OriginURL) throws -> Void
    ) async -> Bool {
        if pins {
            // Pinning requires a stored byte, and then covers all later bytes. If this fails, the preload fails as
            // well.
            let start = cache.media(for: source).preloadReader(.bytes(0..<1))
            if (try? await start.next()) != nil { try? await cache.pin(cache.key(for: source)) }  // As above.
            changed()
        }
        let preload = Preloader(cache, maximumConcurrentDownloads: 1).add(source, .entire)
        defer { changed() }
        return await withTaskCancellationHandler {
            var outcome = PreloadOutcome(await preload.finished())
            do {
                try await outcome.addStream(of: source, .whole, in: cache, jobs: 4, check: check)
            } catch {
                return true  // Only a cancellation is thrown.
            }
            if let error = outcome.error, !Task.isCancelled {
                logger.warning("\(source.redactedURL) was not preloaded completely: \(error)")
            }
            return Task.isCancelled && !outcome.isComplete
        } onCancel: {
            preload.cancel()
        }
    }

    /// Waits until no preload is running.
    func waitUntilNone() async {
        while let task = state.withLock({ $0.tasks.values.first?.task }) { _ = await task.value }
    }

    /// Cancels all preloads. Stored bytes remain in the cache.
    func end() {
        let tasks = state.withLock { state in
            state.isEnded = true
            return state.tasks.values.map(\.task)
        }
        for task in tasks { task.cancel() }
    }
}
#endif
