#if Proxy
import Logging
import Spool
import SpoolStorage
import SpoolStreams
import Synchronization

/// The preloads that the operator has started. They end with the server.
final class OperatorPreloads: Sendable {
    private struct State {
        var tasks: [Int: (source: MediaSource, task: Task<Void, Never>)] = [:]
        var last = 0
        var isEnded = false
    }

    private static let limit = 1000
    private let state = Mutex(State())
    private let logger: Logger
    /// A function that is called when a preload has pinned or stored something.
    private let changed: @Sendable () -> Void

    init(logger: Logger, changed: @escaping @Sendable () -> Void) {
        self.logger = logger
        self.changed = changed
    }

    /// Starts to preload an entire resource or stream. Errors are logged.
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
                await self.run(source, pins: pins, in: cache, check)
                self.state.withLock { $0.tasks[number] = nil }
            }
            state.tasks[number] = (source, task)
            return true
        }
    }

    /// Cancels the preloads of the sources that match, and waits until they have ended.
    func cancel(where isSelected: (MediaSource) -> Bool) async {
        let tasks = state.withLock { $0.tasks.values.filter { isSelected($0.source) }.map(\.task) }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private func run(
        _ source: MediaSource, pins: Bool, in cache: MediaCache, _ check: @escaping @Sendable (OriginURL) throws -> Void
    ) async {
        if pins {
            // Pinning requires a stored byte, and then covers all later bytes. If this fails, the preload fails as
            // well.
            let start = cache.media(for: source).preloadReader(.bytes(0..<1))
            if (try? await start.next()) != nil { try? await cache.pin(cache.key(for: source)) }  // As above.
            changed()
        }
        let preload = Preloader(cache, maximumConcurrentDownloads: 1).add(source, .entire)
        await withTaskCancellationHandler {
            var outcome = PreloadOutcome(await preload.finished())
            // It fails only if it is cancelled.
            try? await outcome.addStream(of: source, .whole, in: cache, jobs: 4, check: check)
            if let error = outcome.error, !Task.isCancelled {
                logger.warning("\(source.redactedURL) was not preloaded completely: \(error)")
            }
        } onCancel: {
            preload.cancel()
        }
        changed()
    }

    /// Waits until no preload is running.
    func waitUntilNone() async {
        while let task = state.withLock({ $0.tasks.values.first?.task }) { await task.value }
    }

    /// Cancels all preloads. Stored bytes stay.
    func end() {
        let tasks = state.withLock { state in
            state.isEnded = true
            return state.tasks.values.map(\.task)
        }
        for task in tasks { task.cancel() }
    }
}

/// The parts of the live page that run with the server.
struct LivePage: Sendable {
    let feed: DashboardFeed
    let preloads: OperatorPreloads

    /// Ends all streams of events and all preloads.
    func end() {
        feed.end()
        preloads.end()
    }
}
#endif
