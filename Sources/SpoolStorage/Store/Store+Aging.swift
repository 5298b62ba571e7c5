import Foundation
import Synchronization

/// What nobody has used for longer than is allowed goes, whether there is room or not.
extension Store {
    /// Reads the time from which ages count, before this opening records a use. This blocks.
    func readAgeStart() throws {
        guard let maximumAge, directory.access.isWritable else { return }
        let start = AgeStart(
            try catalog.ageRecord(), newestUse: try catalog.newestUse(), age: maximumAge, now: clock.now(),
            elapsed: clock.elapsed())
        ageStart.withLock { $0 = start }
        noteCalendar(isLook: true)
    }

    /// Checks whether the wall clock has jumped, and records a jump before a use is recorded with the new time. This
    /// blocks.
    ///
    /// - Parameter isLook: Whether the time is recorded even without a jump.
    func noteCalendar(isLook: Bool = false) {
        guard maximumAge != nil else { return }
        let (now, elapsed) = (clock.now(), clock.elapsed())
        let record = ageStart.withLock { start -> AgeStart.Record? in
            guard let restarts = start?.pass(now: now, elapsed: elapsed), restarts || isLook else { return nil }
            return start?.record
        }
        guard let record else { return }
        try? catalog.setAgeRecord(record)  // If it fails, this process has the record, and the next check writes it.
    }

    /// Looks for it now, and every so often until the store is closed.
    func beginAging() {
        guard let age = maximumAge else { return }
        // Often enough that little is kept for a tenth longer; seldom enough that looking costs nothing.
        let pause = min(max(age / 10, .seconds(1)), .seconds(3600))
        let timer = Task(executorPreference: executor.executor(for: .maintenance)) { [weak self, clock] in
            repeat {
                guard let self else { return }
                work.start(in: .maintenance) { [weak self] in await self?.evictAged() }
                // Cancelled: the store is being closed.
            } while (try? await clock.sleep(pause)) != nil
        }
        aging.withLock { $0 = timer }
    }

    /// Evicts media that is too old, unless the wall clock has jumped within the maximum age.
    package func evictAged() async {
        await evictions.run(0) {
            do {
                try await executor.run(in: .maintenance) {
                    self.noteCalendar(isLook: true)
                    if let oldest = self.ageStart.withLock({ $0?.oldest }) { try self.evict(usedBefore: oldest) }
                }
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
