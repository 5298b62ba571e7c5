#if Proxy
import Spool
import Synchronization

/// The preloads that the operator has started. They end with the server.
final class OperatorPreloads: Sendable {
    private struct State {
        var tasks: [Int: Task<Void, Never>] = [:]
        var last = 0
        var isEnded = false
    }

    private static let limit = 1000
    private let state = Mutex(State())
    /// Called when a preload has pinned or stored something.
    private let changed: @Sendable () -> Void

    init(changed: @escaping @Sendable () -> Void) { self.changed = changed }

    /// Starts to preload a whole resource, or a whole stream. Errors are in the log of the cache.
    ///
    /// - Returns: `false` if too many are running.
    func start(_ source: MediaSource, pins: Bool, in cache: MediaCache) -> Bool {
        state.withLock { state in
            guard !state.isEnded, state.tasks.count < Self.limit else { return false }
            state.last += 1
            let number = state.last
            state.tasks[number] = Task {
                await self.run(source, pins: pins, in: cache)
                self.state.withLock { $0.tasks[number] = nil }
            }
            return true
        }
    }

    private func run(_ source: MediaSource, pins: Bool, in cache: MediaCache) async {
        if pins {
            // The pin needs a stored byte, and then covers all that follow. If this fails, the preload fails as well.
            let start = cache.media(for: source).preloadReader(.bytes(0..<1))
            if (try? await start.next()) != nil { try? await cache.pin(cache.key(for: source)) }  // As above.
            changed()
        }
        let preload = Preloader(cache, maximumConcurrentDownloads: 1).add(source, .entire)
        await withTaskCancellationHandler {
            var outcome = PreloadOutcome(await preload.finished())
            try? await outcome.addStream(of: source, .whole, in: cache, jobs: 4)  // An event reports it.
        } onCancel: {
            preload.cancel()
        }
        changed()
    }

    /// Cancels all preloads. Stored bytes stay.
    func end() {
        let tasks = state.withLock { state in
            state.isEnded = true
            return Array(state.tasks.values)
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
