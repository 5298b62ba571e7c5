import Foundation
import Synchronization

/// Keeps the order of eviction beside the catalog: read once room is first needed, then told what changes.
extension Store {
    /// Reads what may be evicted, if that has not been done; blocks.
    func readOrder() throws {
        guard order.withLock({ $0 == nil }) else { return }
        // Under the rounds' lock nothing is written meanwhile: what comes later is told.
        try rounds.withLock { _ in
            var new = EvictionOrder(policy.makeStrategy, quotaCount: quotas.count)
            try catalog.forEachEvictable { note($0, in: &new) }
            order.withLock { if $0 == nil { $0 = new } }
        }
    }

    /// Tells the order of resources that were to go, and stay; blocks.
    func noteAgain(_ keys: [CacheKey]) { rounds.withLock { _ in noteFromCatalog(keys) } }

    /// As ``noteEvictable(_:andParts:)``; where the catalog can't be read, all of it is read when it is needed next.
    private func noteFromCatalog(_ keys: [CacheKey]) {
        do {
            try noteEvictable(keys)
        } catch {
            order.withLock { $0 = nil }
        }
    }

    /// Tells the order of resources that may be evicted from now on, as the catalog has them, and with `andParts` of their
    /// parts; blocks. The rounds' lock is the caller's: nothing is written meanwhile.
    func noteEvictable(_ keys: [CacheKey], andParts: Bool = false) throws {
        guard !keys.isEmpty, order.withLock({ $0 != nil }) else { return }
        let found = try keys.flatMap { try catalog.evictables(of: $0.hash, andParts: andParts) }
        order.withLock { order in
            guard var changed = order.take() else { return }
            for evictable in found { note(evictable, in: &changed) }
            order = changed
        }
    }

    /// Tells the order of resources that are not to go any more, with what is a part of them; blocks. The rounds' lock is
    /// the caller's.
    func notePinned(_ keys: [CacheKey]) throws {
        guard order.withLock({ $0 != nil }) else { return }
        let parts = try keys.flatMap { try catalog.parts(of: $0.hash) }.map { CacheKey(hash: $0) }
        order.withLock { order in for key in keys + parts { order?.remove(key) } }
    }

    private func note(_ evictable: Catalog.Evictable, in order: inout EvictionOrder) {
        let key = CacheKey(hash: evictable.key)
        let whole = evictable.presentation.map { CacheKey(hash: $0) }
        let quota = quotas.firstIndex { $0.counts(evictable.url, tag: evictable.history.tag) }
        let isNew = !order.contains(key)
        order.update(key, partOf: whole, evictable.landed, at: evictable.lastUsedAt, quota: .to(quota))
        // Of what is known, the order knows it.
        guard isNew else { return }
        if let stop = evictable.history.stop {
            order.setStop(stop, of: key)
            _ = order.update(key, evictable.landed, at: evictable.lastUsedAt)
        }
        order.restore(evictable.history, of: key)
    }

    /// Tells the order what a round has written; blocks.
    func noteEvictable(_ generations: [Generation], _ pending: Flusher.Pending) {
        guard order.withLock({ $0 != nil }) else { return }
        let stopped = table.withLock { table in pending.stops.keys.compactMap { table.currentGeneration(of: $0) } }
        let landed = (generations + stopped).compactMap { generation in
            generation.isRetired.load(ordering: .relaxed) ? nil : generation.disk.map { (generation.key, $0.landed) }
        }
        let now = clock.now()
        let unknown = order.withLock { order -> [CacheKey] in
            guard order != nil else { return [] }
            for (key, stop) in pending.stops {
                order?.setStop(stop.offset, of: key)
                order?.use(key, at: stop.date, isEnd: true)
            }
            var unknown = pending.presentations.filter { order?.isPart($0, of: $1) == false }.map(\.key)
            unknown += pending.tags.keys
            for (key, landed) in landed {
                if order?.update(key, landed, at: now) != true { unknown.append(key) }
            }
            for (key, stop) in pending.stops where stop.isSpent { order?.spend(key) }
            return unknown
        }
        // What it is a part of, the catalog knows.
        noteFromCatalog(unknown)
        holdQuotas()
    }
}
