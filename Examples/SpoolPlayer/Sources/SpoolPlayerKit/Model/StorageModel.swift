import Observation
import SpoolAVFoundation

/// What the cache holds, and what a person may do with it.
@MainActor @Observable final class StorageModel {
    /// What is stored, the largest first. Of an HLS stream each playlist and each segment is one.
    private(set) var resources: [StoredResource] = []
    /// What the last action has failed by, and the last look.
    private var actionError: String?
    private var lookError: String?
    private let cache: MediaCache
    private let preloads: PreloadModel

    /// - Parameter preloads: What is told of what was removed.
    init(cache: MediaCache, preloads: PreloadModel) {
        self.cache = cache
        self.preloads = preloads
    }

    /// What went wrong. A look leaves an action's failure for people to see.
    var message: String? { actionError ?? lookError }

    /// Looks now and every two seconds, until its task is cancelled.
    func follow() async {
        while !Task.isCancelled {
            await refresh()
            do { try await Task.sleep(for: .seconds(2)) } catch { return }
        }
    }

    /// Keeps one from eviction, or no longer.
    func setPinned(_ isPinned: Bool, _ resource: StoredResource) async {
        await perform { isPinned ? try await cache.pin(resource.key) : try await cache.unpin(resource.key) }
    }

    /// Removes one, pinned or not.
    func remove(_ resource: StoredResource) async {
        await perform {
            try await cache.remove(resource.key)
            preloads.forget(resource.key)
        }
    }

    /// Removes everything, pinned or not.
    func removeAll() async {
        await perform {
            try await cache.removeAll()
            preloads.forget(nil)
        }
    }

    /// Lets the cache keep so much from now on; what is too much goes at once.
    func setCapacity(_ capacity: CacheCapacity) async {
        await perform { try await cache.setCapacity(capacity) }
    }

    private func perform(_ action: () async throws -> Void) async {
        do {
            try await action()
            actionError = nil
        } catch {
            actionError = error.localizedDescription
        }
        await refresh()
    }

    private func refresh() async {
        do {
            resources = try await cache.storedResources().sorted { $0.storedByteCount > $1.storedByteCount }
            lookError = nil
        } catch {
            lookError = error.localizedDescription
        }
    }
}
