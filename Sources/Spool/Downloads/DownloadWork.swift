import SpoolStorage
import Synchronization

/// What of a cache's downloads is being brought in this process: each media file once, however many sets have it.
///
/// It keeps its preloader, and by it the cache, only while there is something to bring.
final class DownloadWork: Sendable {
    private struct State {
        var running: [CacheKey: Preload] = [:]
        var failures: [CacheKey: CacheError] = [:]
        var preloader: Preloader?
        var isPaused = false
    }

    /// One after the other: of two for which there is no room together, the first comes whole.
    private static let jobs = 1

    private let state = Mutex(State())
    /// Told of whatever changes the state of a set.
    let changes = ChangeSignal()

    /// Brings a media file, if it is not being brought.
    func begin(_ source: MediaSource, _ key: CacheKey, in cache: MediaCache) -> Download {
        let keeping = PreloadKeeping { [weak self] byteCount, isLengthKnown in
            try await self?.checkRoom(
                for: byteCount, isLengthKnown: isLengthKnown, key, source.displayAddress, in: cache)
        } check: {
            try await Self.checkKept($0, in: cache)
        }
        let fresh = Preload(source, .whole, .normal, keeping: keeping)
        let (preload, preloader) = state.withLock { state -> (Preload, Preloader?) in
            if let running = state.running[key], !running.state.phase.isEnd { return (running, nil) }
            let preloader = state.preloader ?? Preloader(cache, jobs: Self.jobs)
            if state.preloader == nil { preloader.isPaused = state.isPaused }
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
        // Let go of after unlocking: it may be the last to hold the cache.
        let former = state.withLock { state -> Preloader? in
            guard state.running[key] === preload else { return nil }
            state.running[key] = nil
            state.failures[key] = preload.state.error as? CacheError
            return state.running.isEmpty ? state.preloader.take() : nil
        }
        changes.change()
        withExtendedLifetime(former) {}
    }

    /// The one that is being brought under a key.
    func running(_ key: CacheKey) -> Download? {
        guard let preload = state.withLock({ $0.running[key] }), !preload.state.phase.isEnd else { return nil }
        return Download(key: key, preload: preload)
    }

    /// What is known of one: what the catalog says, and what has come since.
    func item(_ record: DownloadRecord) -> DownloadSet.Item {
        let (preload, failure) = state.withLock { state in
            let key = CacheKey(hash: record.key)
            return (state.running[key], state.failures[key])
        }
        return DownloadSet.Item(record, failure, preload?.state)
    }

    /// No set has it any more.
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

    /// The cache closes: nothing is brought any more, and nobody is told anything.
    func close() {
        let preloader = state.withLock { $0.preloader }
        preloader?.cancelAll()
        changes.finish()
    }

    /// Sees to it that what a download will hold fits beside what else is pinned.
    ///
    /// A body whose length is unknown may have no end. If more of it is received than fits, ``Downloads/resume(_:)`` does
    /// not start it again; adding it again does.
    ///
    /// - Parameters:
    ///   - wanted: The length, or the bytes received so far.
    ///   - isLengthKnown: Whether it is the length.
    /// - Throws: `CacheError` with code `.capacityExceeded`, which is told as an event, too.
    func checkRoom(
        for wanted: Int64, isLengthKnown: Bool = true, _ key: CacheKey, _ address: String, in cache: MediaCache
    ) async throws {
        let store = try await cache.store
        guard let capacity = store.capacity else { return }
        let pinned = try await store.downloads.pinnedBytes(except: key)
        guard wanted > capacity - min(pinned, capacity) else { return }
        let cause =
            isLengthKnown
            ? "\(wanted.grouped) bytes are to be kept, \(pinned.grouped) are pinned already, and the cache keeps "
                + capacity.grouped
            : "\(wanted.counted("byte")) received of a body of unknown length, more than fit: the capacity is "
                + "\(capacity.grouped), of which \(pinned.grouped) are pinned"
        if !isLengthKnown { try await store.downloads.forgetSource(of: key) }
        let error = CacheError(.capacityExceeded, "\(address): \(cause)", key: key)
        cache.context.events.send(.notKept(cause: error), key: key, address: address)
        throw error
    }

    /// Sees to it that what has come is on disk.
    private static func checkKept(_ media: MediaResource, in cache: MediaCache) async throws {
        if let cause = cache.readOnlyReason { throw cause }
        // Of nothing there is nothing to keep.
        let length = media.resource?.knownLength
        if length == 0 { return }
        let stored = try await media.storedResource()
        // A length that only the end of the body told may not be recorded yet.
        if let stored, let length, stored.storedByteCount >= length { return }
        guard stored?.isComplete != true else { return }
        throw CacheError(
            .incomplete,
            "\(media.source.displayAddress): all of it came, but only \((stored?.storedByteCount ?? 0).counted("byte")) "
                + "could be kept", key: media.key)
    }
}
