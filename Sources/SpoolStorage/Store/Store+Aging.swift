import Foundation
import Synchronization

/// What nobody has used for longer than is allowed goes, whether there is room or not.
extension Store {
    /// Looks for it now, and every so often until the store is closed.
    func beginAging() {
        guard let age = maximumAge else { return }
        // Often enough that little is kept for a tenth longer; seldom enough that looking costs nothing.
        let pause = min(max(age / 10, .seconds(1)), .seconds(3600))
        let timer = Task(executorPreference: executor.executor(for: .maintenance)) { [weak self, clock] in
            repeat {
                guard let self else { return }
                work.start(in: .maintenance) { [weak self] in await self?.evictAged(age) }
                // Cancelled: the store is being closed.
            } while (try? await clock.sleep(pause)) != nil
        }
        aging.withLock { $0 = timer }
    }

    private func evictAged(_ age: Duration) async {
        let oldest = clock.now().addingTimeInterval(-(age / .seconds(1)))
        await evictions.run(0) {
            do {
                try await executor.run(in: .maintenance) { try self.evict(usedBefore: oldest) }
            } catch let error as CacheError where error.code == .closed {
                // The next opening looks again.
            } catch {
                report(.warning("what is too old could not be evicted, and is tried again: \(error)"))
            }
        }
    }

    /// Evicts what was last used before a date, but for what is pinned or open; blocks.
    func evict(usedBefore oldest: Date) throws {
        // What was used a moment ago may not be in the catalog yet.
        try writeChanges()
        var position: EvictionPosition?
        while true {
            try checkOpen()
            let page = try catalog.leastRecentlyUsed(limit: 128, after: position)
            let old = page.filter { $0.lastUsedAt < oldest }.map { CacheKey(hash: $0.key) }
            let taken = old.filter { key in table.withLock { $0.isUnused(key) } && turns.tryTake(key) }
            defer { for key in taken { turns.end(key) } }
            _ = try evictWhole(taken)
            guard !page.isEmpty, old.count == page.count else { return }
            position = page.last?.position
        }
    }
}
