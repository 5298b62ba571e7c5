import ByteRanges
import Foundation
import Synchronization

/// The resources that may be evicted, in the order of the policy. The queue is consistent with the catalog.
///
/// The order is read from the catalog when space is first needed. From then on, each change to the catalog is reported
/// to the queue. The queue does not decide when to evict or how much.
final class EvictionQueue: Sendable {
    /// The order; `nil` until it has been read, and after a failure to read the catalog.
    private let order = ClassedMutex<EvictionOrder?>(nil, .neverWaits)
    private let policy: EvictionPolicy
    private let quotas: [EvictionQuota]
    private let quotaIndex: QuotaIndex
    private let catalog: Catalog
    private let rounds: CatalogRounds
    private let clock: CacheClock

    init(
        policy: EvictionPolicy, quotas: [EvictionQuota], catalog: Catalog, rounds: CatalogRounds, clock: CacheClock
    ) {
        self.policy = policy
        self.quotas = quotas
        quotaIndex = QuotaIndex(quotas)
        self.catalog = catalog
        self.rounds = rounds
        self.clock = clock
    }

    /// Whether the policy evicts media to free space for new media.
    var makesSpace: Bool { policy.makesSpace }

    /// Whether the order has been read.
    var isRead: Bool { order.withLock { $0 != nil } }

    /// Whether there are quotas.
    var hasQuotas: Bool { !quotas.isEmpty }

    /// Reads the order from the catalog, unless it has been read. The method blocks.
    func read() throws {
        guard !isRead else { return }
        // No round is written in the meantime. Later changes are reported to the order.
        try rounds.pausing {
            var new = EvictionOrder(policy.makeStrategy, quotaCount: quotas.count)
            try catalog.uses.forEachEvictable { note($0, quota: quota(of: $0), in: &new) }
            order.withLock { if $0 == nil { $0 = new } }
        }
    }

    // MARK: - Victims

    /// Returns the resource to evict next; `nil` if there is none.
    func nextVictim(isLastResort: Bool, ofQuota quota: Int?, at date: Date) -> EvictionOrder.Victim? {
        order.withLock { $0?.nextVictim(isLastResort: isLastResort, ofQuota: quota, at: date) }
    }

    /// Returns whether the victim belongs to a presentation that is being played.
    func isPlaying(_ victim: EvictionOrder.Victim, at date: Date) -> Bool {
        order.withLock { $0?.isPlaying(victim, at: date) ?? false }
    }

    /// Skips a victim until it is released.
    func hold(_ victim: EvictionOrder.Victim) { order.withLock { $0?.hold(victim) } }

    /// Stops skipping victims.
    func release(_ victims: [EvictionOrder.Victim]) { order.withLock { $0?.release(victims) } }

    /// Returns the number of bytes by which media exceeds a quota. The result is negative if less media is stored.
    func excess(ofQuota number: Int) -> Int64 {
        order.withLock { ($0?.byteCount(ofQuota: number) ?? 0) - quotas[number].byteCount }
    }

    /// The numbers of the quotas that are exceeded.
    var exceededQuotas: [Int] { quotas.indices.filter { excess(ofQuota: $0) > 0 } }

    // MARK: - Changes

    /// Removes resources that are no longer stored, or that are about to be evicted.
    func remove(_ keys: [CacheKey]) {
        order.withLock { order in for key in keys { order?.remove(key) } }
    }

    /// Records a use of a resource.
    func use(_ key: CacheKey, partOf presentation: CacheKey?, at date: Date) {
        order.withLock { $0?.use(key, partOf: presentation, at: date) }
    }

    /// Sets the stored bytes of a resource.
    func update(_ key: CacheKey, _ stored: ByteRangeSet) {
        let now = clock.now()
        order.withLock { _ = $0?.update(key, stored, at: now) }
    }

    /// Adds resources again that were about to be evicted, but were not. The method blocks.
    func restore(_ keys: [CacheKey]) {
        // Most evictions remove all of their victims, so there is nothing to add and no need to wait for a round.
        guard !keys.isEmpty else { return }
        rounds.pausing { recordFromCatalog(keys) }
    }

    /// Adds resources as the catalog describes them. If the catalog can't be read, the whole order is read again when
    /// it is next needed.
    private func recordFromCatalog(_ keys: [CacheKey]) {
        do {
            try recordEvictable(keys)
        } catch {
            order.withLock { $0 = nil }
        }
    }

    /// Adds resources that may now be evicted, as the catalog describes them. The method blocks. No round may be
    /// written in the meantime.
    ///
    /// - Parameter andParts: Whether to add the parts of the resources as well.
    func recordEvictable(_ keys: [CacheKey], andParts: Bool = false) throws {
        guard !keys.isEmpty, isRead else { return }
        let found = try keys.flatMap { try catalog.uses.evictables(of: $0.hash, andParts: andParts) }
            .map { ($0, quota(of: $0)) }
        order.withLock { order in
            guard var changed = order.take() else { return }
            for (evictable, quota) in found { note(evictable, quota: quota, in: &changed) }
            order = changed
        }
    }

    /// Removes newly pinned resources and their parts from the queue. The method blocks. No round may be written in the
    /// meantime.
    func recordPinned(_ keys: [CacheKey]) throws {
        guard isRead else { return }
        let parts = try keys.flatMap { try catalog.parts(of: $0.hash) }.map { CacheKey(hash: $0) }
        remove(keys + parts)
    }

    /// Records the changes that a round has written. The method blocks. No other round may be written in the meantime.
    func recordRound(_ generations: [Generation], _ pending: Flusher.Pending) {
        let stored = generations.compactMap { generation in
            generation.isRetired.load(ordering: .relaxed)
                ? nil : generation.disk.map { (generation.key, $0.storedRanges) }
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
            for (key, storedRanges) in stored {
                if order?.update(key, storedRanges, at: now) != true { unknown.append(key) }
            }
            for (key, stop) in pending.stops where stop.isConsumed { order?.markConsumed(key) }
            return unknown
        }
        // The catalog contains the presentation that each resource belongs to.
        recordFromCatalog(unknown)
    }

    private func quota(of evictable: CatalogUses.Evictable) -> Int? {
        quotaIndex.quota(of: evictable.url, tag: evictable.history.tag)
    }

    private func note(_ evictable: CatalogUses.Evictable, quota: Int?, in order: inout EvictionOrder) {
        let key = CacheKey(hash: evictable.key)
        let whole = evictable.presentation.map { CacheKey(hash: $0) }
        let isNew = !order.contains(key)
        order.update(key, partOf: whole, evictable.storedRanges, at: evictable.lastUsedAt, quota: .to(quota))
        // If the order already contained the resource, it also contains the history.
        guard isNew else { return }
        if let stop = evictable.history.stop {
            order.setStop(stop, of: key)
            _ = order.update(key, evictable.storedRanges, at: evictable.lastUsedAt)
        }
        order.restore(evictable.history, of: key)
    }
}
