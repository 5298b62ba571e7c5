import Observation
import SpoolAVFoundation

/// The contents of the cache, and the user's actions on them.
@MainActor @Observable final class StorageModel {
    /// The stored resources, largest first. Each playlist and each segment of an HLS stream is a resource.
    private(set) var resources: [StoredResource] = []
    /// The errors from the last action and the last update.
    private var actionError: String?
    private var refreshError: String?
    private let cache: MediaCache
    private let preloads: PreloadModel

    /// - Parameter preloads: The model to notify when media is removed.
    init(cache: MediaCache, preloads: PreloadModel) {
        self.cache = cache
        self.preloads = preloads
    }

    /// The error to show, if any. An update does not hide the error of an action.
    var message: String? { actionError ?? refreshError }

    /// Updates the contents now and every two seconds, until the calling task is cancelled.
    func follow() async {
        while !Task.isCancelled {
            await refresh()
            do { try await Task.sleep(for: .seconds(2)) } catch { return }
        }
    }

    /// Pins or unpins a resource.
    func setPinned(_ isPinned: Bool, _ resource: StoredResource) async {
        await perform { isPinned ? try await cache.pin(resource.key) : try await cache.unpin(resource.key) }
    }

    /// Removes a resource, pinned or not.
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

    /// Sets the capacity of the cache. If the cache is larger, media is evicted immediately.
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
            refreshError = nil
        } catch {
            refreshError = error.localizedDescription
        }
    }
}
