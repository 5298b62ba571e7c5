import SpoolStorage
import Synchronization

/// The running downloads of a cache in this process. Each resource is downloaded once, even if it is in several sets.
///
/// This object retains its preloader, and thereby the cache, only while downloads are running.
final class DownloadWork: CacheWork {
    private struct State {
        var running: [CacheKey: Preload] = [:]
        var failures: [CacheKey: CacheError] = [:]
        var preloader: Preloader?
        var isPaused = false
        /// Whether a background session is fetching the missing ranges.
        var isHandedOver = false
        /// The last exchange with a background session.
        var exchange: Task<Void, Never>?
        var conditions: PreloadConditions?
    }

    /// The maximum number of concurrent downloads. With a limit of one, the first resource is stored completely even if
    /// there is not enough space for two resources.
    private static let maximumConcurrentDownloads = 1

    private let state = Mutex(State())
    /// The signal for changes to the state of any set.
    let changes = ChangeSignal()

    /// Starts the download of a resource, unless it is already running.
    func begin(_ source: MediaSource, _ key: CacheKey, in cache: MediaCache) -> Download {
        let keeping = PreloadKeeping { [weak self] byteCount, isLengthKnown in
            try await self?.checkReservedSpace(
                for: byteCount, isLengthKnown: isLengthKnown, key, source.redactedURL, in: cache)
        } check: {
            try await Self.checkKept($0, in: cache)
        }
        var source = source
        source.isDownload = true
        let fresh = Preload(source, .entire, .normal, keeping: keeping)
        let (preload, preloader) = state.withLock { state -> (Preload, Preloader?) in
            if let running = state.running[key], !running.state.phase.isFinal { return (running, nil) }
            let preloader =
                state.preloader ?? Preloader(cache, maximumConcurrentDownloads: Self.maximumConcurrentDownloads)
            if state.preloader == nil {
                preloader.isPaused = state.isPaused
                preloader.work.pause(state.isHandedOver, because: .handedOver)
                preloader.conditions = state.conditions
            }
            state.preloader = preloader
            state.running[key] = fresh
            state.failures[key] = nil
            return (fresh, preloader)
        }
        if let preloader {
            preloader.work.add(preload)
            Task(executorPreference: cache.context.executor.executor(for: .background)) { [self] in
                for await _ in preload.states { changes.change() }
                ended(preload, key)
            }
        }
        return Download(key: key, preload: preload)
    }

    private func ended(_ preload: Preload, _ key: CacheKey) {
        // The preloader is released after unlocking, because it may hold the last reference to the cache.
        let previous = state.withLock { state -> Preloader? in
            guard state.running[key] === preload else { return nil }
            state.running[key] = nil
            state.failures[key] = preload.state.error as? CacheError
            return state.running.isEmpty ? state.preloader.take() : nil
        }
        changes.change()
        withExtendedLifetime(previous) {}
    }

    /// Returns the running download for a key; `nil` if there is none.
    func running(_ key: CacheKey) -> Download? {
        guard let preload = state.withLock({ $0.running[key] }), !preload.state.phase.isFinal else { return nil }
        return Download(key: key, preload: preload)
    }

    /// Returns the state of an item, according to its record in the catalog and the progress of its download.
    func item(_ record: DownloadRecord) -> DownloadSet.Item {
        let (preload, failure) = state.withLock { state in
            let key = CacheKey(hash: record.key)
            return (state.running[key], state.failures[key])
        }
        return DownloadSet.Item(record, failure, preload?.state)
    }

    /// Cancels the download for a key that is no longer in any set.
    func cancel(_ key: CacheKey) {
        let preload = state.withLock { state in
            state.failures[key] = nil
            return state.running.removeValue(forKey: key)
        }
        preload?.cancel()
    }

    var isPaused: Bool {
        get { state.withLock { $0.isPaused } }
        set {
            let preloader = state.withLock { state in
                state.isPaused = newValue
                return state.preloader
            }
            preloader?.isPaused = newValue
        }
    }

    /// Whether the downloads of this process are paused because a background session is fetching the missing ranges.
    var isHandedOver: Bool {
        get { state.withLock { $0.isHandedOver } }
        set {
            let preloader = state.withLock { state in
                state.isHandedOver = newValue
                return state.preloader
            }
            preloader?.work.pause(newValue, because: .handedOver)
        }
    }

    /// Waits until the requests of paused downloads have ended.
    func waitUntilPaused() async {
        for preload in state.withLock({ Array($0.running.values) }) {
            for await state in preload.states where state.phase != .running { break }
        }
    }

    /// Runs an exchange with a background session after the previous one has ended.
    func exchange<R: Sendable>(
        on executor: any TaskExecutor, _ body: @escaping @Sendable () async throws -> R
    ) async throws -> R {
        let task = state.withLock { state in
            let previous = state.exchange
            let task = Task(executorPreference: executor) {
                await previous?.value
                try Task.checkCancellation()
                return try await body()
            }
            state.exchange = Task(executorPreference: executor) { _ = await task.result }
            return task
        }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// The conditions under which downloads pause.
    var conditions: PreloadConditions? {
        get { state.withLock { $0.conditions } }
        set {
            let preloader = state.withLock { state in
                state.conditions = newValue
                return state.preloader
            }
            preloader?.conditions = newValue
        }
    }

    /// Stops all downloads and ends the change signal, because the cache is closing.
    func close() {
        let preloader = state.withLock { $0.preloader }
        preloader?.cancelAll()
        changes.finish()
    }

    /// Checks that the bytes of a download fit in the cache along with the other pinned resources.
    ///
    /// A body of unknown length may be endless. If it exceeds the available space, ``Downloads/resume(_:)`` does not
    /// restart the download. Adding the resource again does.
    ///
    /// - Parameters:
    ///   - wanted: The length, or the number of bytes received so far.
    ///   - isLengthKnown: Whether `wanted` is the length.
    /// - Throws: `CacheError` with code `.capacityExceeded`, which is also sent as an event.
    func checkReservedSpace(
        for wanted: Int64, isLengthKnown: Bool = true, _ key: CacheKey, _ redactedURL: String, in cache: MediaCache
    ) async throws {
        let store = try await cache.store
        guard let capacity = store.capacity else { return }
        let pinned = try await store.downloads.pinnedBytes(except: key)
        guard wanted > capacity - min(pinned, capacity) else { return }
        let cause =
            isLengthKnown
            ? "the download needs \(wanted.grouped) bytes, \(pinned.grouped) are already pinned, and the capacity is "
                + capacity.counted("byte")
            : "received \(wanted.counted("byte")) of a body of unknown length, which is too large for the cache: the "
                + "capacity is \(capacity.counted("byte")), of which \(pinned.grouped) are pinned"
        if !isLengthKnown { try await store.downloads.forgetSource(of: key) }
        let error = CacheError(.capacityExceeded, "\(redactedURL): \(cause)", key: key)
        cache.context.events.send(.notCached(cause: error), key: key, redactedURL: redactedURL)
        throw error
    }

    /// Checks that all received bytes are on disk.
    private static func checkKept(_ media: MediaResource, in cache: MediaCache) async throws {
        if let cause = cache.readOnlyReason { throw cause }
        // An empty resource has no bytes to store.
        let length = media.resource?.knownLength
        if length == 0 { return }
        let stored = try await media.storedResource()
        // A length that is known only from the end of the body may not be recorded yet.
        if let stored, let length, stored.storedByteCount >= length { return }
        guard stored?.isComplete != true else { return }
        let count = stored?.storedByteCount ?? 0
        let total = max(count, length ?? media.knownStoredRanges.byteCount)
        throw media.lossError(stored: count, of: total, because: try await media.loss(ofByteCount: total - count))
    }
}
