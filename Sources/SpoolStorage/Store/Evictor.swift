import ByteRanges
import Foundation
import Synchronization

/// The evictor of a store's media, which decides when media is evicted, and how much of it.
///
/// It frees space for new bytes, and enforces the capacity, the quotas, the maximum age and the minimum free space of
/// the volume. It is a value type, and its state belongs to the store. ``VersionEvictor`` frees the bytes.
struct Evictor: Sendable {
    /// The state of a store's evictor.
    final class State: Sendable {
        /// See ``Store/Configuration/spaceTimeout``.
        let timeout: Duration
        /// The resources that may be evicted, in the order of the policy.
        let queue: EvictionQueue
        /// The maximum number of stored bytes.
        let limit: SpaceLimit
        /// The maximum age of unused media.
        let ages: AgeLimit
        /// The state of the type that frees bytes.
        let freeing = VersionEvictor.State()
        /// The turns of evictions, which run one at a time.
        fileprivate let turns = KeyTurns<Int>(.file)
        /// The number of evictions for new bytes that are running or waiting for their turn.
        fileprivate let running = Atomic(0)
        /// Whether a player has waited too long for one of these evictions.
        fileprivate let isSlow = Atomic(false)
        /// The searches for media to evict that found nothing.
        let searches = FailedSearches()
        fileprivate let aging = RepeatedWork()
        fileprivate let watching = RepeatedWork()

        init(timeout: Duration, queue: EvictionQueue, limit: SpaceLimit, ages: AgeLimit) {
            self.timeout = timeout
            self.queue = queue
            self.limit = limit
            self.ages = ages
        }

        /// Stops the repeated checks.
        func stop() {
            aging.stop()
            watching.stop()
        }
    }

    private let store: Store
    private let state: State

    init(_ store: Store) {
        self.store = store
        state = store.eviction
    }

    private var ledger: Ledger { store.ledger }
    private var queue: EvictionQueue { state.queue }
    private var versions: VersionEvictor { VersionEvictor(store) }

    /// The number of evictions that are waiting for another one to finish.
    var waiterCount: Int { state.turns.waiterCount(0) }

    // MARK: - Checks

    /// Starts the checks, which are repeated until the store is closed.
    func start() {
        startAging()
        readAhead()
        startWatching()
    }

    private func startAging() {
        guard let interval = state.ages.checkInterval else { return }
        state.aging.start(every: interval, store.clock, on: store.executor) { [weak store] in
            guard let store else { return false }
            store.work.start(in: .maintenance) { [weak store] in await store?.evictor.evictAged() }
            return true
        }
    }

    private func startWatching() {
        guard state.limit.isWatchingVolume else { return }
        state.watching.start(every: .seconds(10), store.clock, on: store.executor) { [weak store] in
            guard let store else { return false }
            store.work.start(in: .maintenance) { [weak store] in await store?.evictor.leaveFreeSpace() }
            return true
        }
    }

    /// Reads the queue in advance if it will soon be needed, either for quotas or because the cache is nearly full.
    private func readAhead() {
        let isNearlyFull = queue.makesSpace && ledger.limit.map { ledger.used > $0 - 2 * Self.margin(of: $0) } ?? false
        guard queue.hasQuotas || isNearlyFull else { return }
        store.work.start(in: .background) { [weak store] in
            guard let evictor = store?.evictor else { return }
            guard (try? evictor.queue.read()) != nil else { return }  // If it can't be read, it is read later.
            evictor.enforceQuotas()
        }
    }

    // MARK: - Space for new bytes

    /// Reserves capacity, and evicts as much as needed, in this order:
    ///
    /// - unused media, by policy
    /// - ranges of open media that are not near any reader
    /// - unused media that the policy would rather keep
    /// - versions that are being replaced
    ///
    /// Evictions run one at a time. Waiting for a turn does not block a thread.
    ///
    /// - Parameter isUrgent: A function that returns whether a player is waiting for the bytes. If so, the result is
    ///   `late` after ``Store/Configuration/spaceTimeout``, while the eviction continues. Otherwise, the method waits
    ///   until the eviction has finished.
    func reserveSpace(
        _ count: Int64, rowBytes: Int64, isUrgent: @escaping @Sendable () -> Bool
    ) async -> ReservationResult {
        let limit = ledger.limit ?? .max
        guard count <= limit, queue.makesSpace else { return ledger.reserve(count, rowBytes: rowBytes) }
        // A block does not wait for an eviction that is known to be slow. Otherwise, each block would wait for it.
        let isKnownToBeLate =
            state.isSlow.load(ordering: .relaxed) && state.running.load(ordering: .relaxed) > 0 && isUrgent()
        if isKnownToBeLate {
            if case .reserved(let reservation) = ledger.reserve(count, rowBytes: rowBytes) {
                return .reserved(reservation)
            }
            return .late
        }
        let space = AwaitedSpace()
        state.running.add(1, ordering: .relaxed)
        // The eviction runs in a separate task, because it must not block the reader if it is slow.
        store.work.start(in: .storing) { [weak store, state] in
            await store?.evictor.evict(for: space, count, rowBytes: rowBytes)
            state.running.subtract(1, ordering: .relaxed)
            space.end()
        }
        let timer = Task(executorPreference: store.executor.executor(for: .playback)) { [state, clock = store.clock] in
            while (try? await clock.sleep(state.timeout)) != nil {  // Fails when the eviction ends.
                guard space.isCancelled || isUrgent() else { continue }
                state.isSlow.store(true, ordering: .relaxed)
                return space.end(isLate: true)
            }
        }
        await space.wait()
        timer.cancel()
        if case .reserved(let reservation) = space.take() { return .reserved(reservation) }
        if case .reserved(let reservation) = ledger.reserve(count, rowBytes: rowBytes) {
            return .reserved(reservation)
        }
        return space.isLate ? .late : .full
    }

    /// Evicts until the space can be reserved, nothing more can be evicted, or no task is waiting for the space
    /// anymore.
    private func evict(for space: AwaitedSpace, _ count: Int64, rowBytes: Int64) async {
        await state.turns.run(0) {
            defer { state.isSlow.store(false, ordering: .relaxed) }
            while !space.isOver, !space.reserve(count, rowBytes: rowBytes, of: ledger) {
                let limit = ledger.limit ?? .max
                let isFull = ledger.used > limit - count
                let freed = await store.executor.run(in: .storing) {
                    isFull
                        ? free(count, upTo: max(count, Self.margin(of: limit)))
                        : freeRows(ledger.shortage(ofRowBytes: rowBytes + count))
                }
                guard freed > 0 else { return }
            }
        }
    }

    /// If little space is left, evicts slightly more than is currently needed, so that the next bytes do not have to
    /// wait.
    ///
    /// Only unused media is evicted, and only in whole resources, bodies or starts.
    ///
    /// - Parameter hasNewBytes: Whether bytes were stored. If not, only rows were added.
    func freeSpaceAhead(hasNewBytes: Bool) {
        guard queue.makesSpace, let limit = ledger.limit else { return }
        let rowMargin = Ledger.allowance(of: limit) / 4
        let isNearlyFull = hasNewBytes && ledger.used > limit - Self.margin(of: limit) / 2
        guard isNearlyFull || ledger.shortage(ofRowBytes: rowMargin / 2) > 0 else { return }
        store.work.start(in: .background) { [weak store] in
            await store?.evictor.evictAhead(isNearlyFull: isNearlyFull, limit, rowMargin)
        }
    }

    private func evictAhead(isNearlyFull: Bool, _ limit: Int64, _ rowMargin: Int64) async {
        await state.turns.run(0) {
            let excess = isNearlyFull ? ledger.used - (limit - Self.margin(of: limit)) : 0
            guard excess > 0 || ledger.shortage(ofRowBytes: rowMargin) > 0, store.isOpen else { return }
            do {
                try queue.read()
                if excess > 0 { _ = try freeUnused(1, upTo: excess, isAhead: true) }
                // The shortage includes the rows of the remaining media.
                let rowExcess = ledger.shortage(ofRowBytes: rowMargin)
                guard rowExcess > 0 else { return }
                _ = try freeUnused(1, upTo: rowExcess, isAhead: true, rowBytes: GenerationDescription.leastRowBytes)
            } catch {
                warn(error)
            }
        }
    }

    private static func margin(of limit: Int64) -> Int64 { min(8 << 20, limit / 16) }

    // MARK: - Limits

    /// Evicts until at most `size` bytes are stored, as far as pins and readers allow.
    func evict(to size: Int64) async throws -> Int64 {
        guard size >= 0 else {
            throw CacheError(.invalidArgument, "invalid size of \(size) bytes: must not be negative")
        }
        try store.checkWritable()
        // The user requested this eviction, so all media is searched.
        state.searches.recordChange()
        // Media that was just closed or used must count in the policy's order.
        try? await store.flush()  // A failure has already been reported, and the recorded order applies.
        return await state.turns.run(0) {
            let before = state.freeing.byteCount
            // All media that is neither pinned nor open is evicted, including media without bytes. The policy's order
            // does not matter.
            if size == 0 { await store.executor.run(in: .background) { evictAll() } }
            while ledger.used > size {
                guard await store.executor.run(in: .background, { free(ledger.used - size) }) > 0 else { break }
            }
            // During this turn, no other eviction frees bytes, but new bytes may be stored.
            return state.freeing.byteCount - before
        }
    }

    private func evictAll() {
        do {
            try evict(usedBefore: .distantFuture)
        } catch {
            warn(error)
        }
    }

    /// Changes the capacity, and evicts media that exceeds it.
    func setCapacity(_ capacity: CacheCapacity, isRemembered: Bool) async throws {
        try capacity.validate()
        try store.checkWritable()
        let limit = try await store.writer.inTurn {
            let limit = try capacity.limit(in: store.directory)
            if isRemembered { try store.catalog.settings.setCapacity(limit) }
            try store.catalog.limitLog(toPartOf: limit)
            return limit
        }
        state.limit.setCapacity(limit)
        if let limit { try await evictExcess(of: limit) }
    }

    /// Evicts media above the capacity in the background, because a corrected count may have shown an excess.
    func enforceCapacity() {
        guard store.directory.access.isWritable, let limit = ledger.limit else { return }
        store.work.start(in: .background) { [weak store] in
            do {
                try await store?.evictor.evictExcess(of: limit)
            } catch let error as CacheError where error.code == .closed {
                // The store was closed. Space is freed when bytes are next stored.
            } catch {
                store?.evictor.warn(error)
            }
        }
    }

    /// Evicts until media and rows fit the capacity, as far as pins and readers allow.
    private func evictExcess(of limit: Int64) async throws {
        _ = try await evict(to: limit)
        await state.turns.run(0) {
            while ledger.shortage(ofRowBytes: 0) > 0 {
                let freed = await store.executor.run(in: .background) { freeRows(ledger.shortage(ofRowBytes: 0)) }
                guard freed > 0 else { return }
            }
        }
    }

    /// Adapts the limit to the current free space of the volume, and evicts media that exceeds it.
    func leaveFreeSpace() async {
        guard state.limit.isWatchingVolume, store.isOpen else { return }
        do {
            let free = try await store.executor.run(in: .maintenance) { try store.directory.spaceForMedia() }
            if let size = state.limit.adapt(toFreeSpace: free) { _ = try await evict(to: size) }
        } catch let error as CacheError where error.code == .closed {
            // The check is repeated the next time the cache is opened.
        } catch {
            store.reporter.warn("the volume's free space could not be checked, so the check will be retried: \(error)")
        }
    }

    /// Evicts media that exceeds quotas, in the background.
    func enforceQuotas() {
        for number in queue.exceededQuotas {
            store.work.start(in: .background) { [weak store] in
                guard let evictor = store?.evictor else { return }
                await evictor.state.turns.run(0) {
                    await evictor.store.executor.run(in: .background) { evictor.evictExcess(ofQuota: number) }
                }
            }
        }
    }

    private func evictExcess(ofQuota number: Int) {
        do {
            try queue.read()
            let excess = queue.excess(ofQuota: number)
            guard excess > 0, store.isOpen else { return }
            _ = try freeUnused(excess, upTo: excess, isLastResort: true, ofQuota: number)
        } catch {
            warn(error)
        }
    }

    /// Evicts media that is too old, unless the wall clock has changed suddenly within the maximum age.
    func evictAged() async {
        await state.turns.run(0) {
            do {
                try await store.executor.run(in: .maintenance) {
                    state.ages.recordCalendar(isLook: true)
                    if let oldest = state.ages.oldest { try evict(usedBefore: oldest) }
                }
            } catch let error as CacheError where error.code == .closed {
                // The check is repeated the next time the cache is opened.
            } catch {
                store.reporter.warn("media that is too old could not be evicted, so eviction will be retried: \(error)")
            }
        }
    }

    /// Evicts media that was last used before a date, except for pinned and open media. The method blocks.
    private func evict(usedBefore oldest: Date) throws {
        // A recent use may not be in the catalog yet.
        try store.writer.writeChanges()
        var position: EvictionPosition?
        while true {
            try store.checkOpen()
            let page = try store.catalog.uses.leastRecentlyUsed(limit: 128, after: position)
            let old = page.filter { $0.lastUsedAt < oldest }.map { CacheKey(hash: $0.key) }
            let taken = old.filter { store.isUnused($0) && store.turns.tryTake($0) }
            defer { for key in taken { store.turns.end(key) } }
            _ = try versions.evict(taken)
            guard !page.isEmpty, old.count == page.count else { return }
            position = page.last?.position
        }
    }

    // MARK: - Choosing media

    /// Evicts `count` bytes of media and rows together. The method blocks.
    ///
    /// - Returns: The number of bytes that were freed, or 1 if another task freed bytes in the meantime.
    private func freeRows(_ count: Int64) -> Int64 {
        count > 0 ? free(count, rowBytes: GenerationDescription.leastRowBytes) : 1
    }

    /// Evicts about `count` bytes. The method blocks.
    ///
    /// - Parameters:
    ///   - most: The number of bytes up to which small resources are evicted. Evicting a hundred of them together takes
    ///     a quarter of the time of evicting them separately.
    ///   - rowBytes: The number of bytes counted for the row of each evicted resource, if rows have to be removed.
    /// - Returns: The number of bytes that were freed, or the number of resources without bytes.
    private func free(_ count: Int64, upTo most: Int64? = nil, rowBytes: Int64 = 0) -> Int64 {
        guard store.directory.access.isWritable, store.isOpen else { return 0 }
        let most = most ?? count
        var freed = store.remover.retryRemovals()
        guard freed < count, !store.remover.isRemovalFailing else { return freed }
        let now = store.clock.elapsed()
        // If the last search found nothing, and nothing else has changed since, only the positions of readers may have
        // changed.
        let search = state.searches.begin(at: now)
        do {
            try queue.read()
            if search != nil {
                freed += try freeUnused(count - freed, upTo: most - freed, rowBytes: rowBytes)
                if freed == 0, store.writer.isPending {
                    // Media that was just closed is not in the catalog yet. If it can't be written, the failure has
                    // already been reported, and there may be other media to evict.
                    if (try? store.writer.writeChanges()) != nil {
                        freed = try freeUnused(count, upTo: most, rowBytes: rowBytes)
                    }
                }
            }
            if freed < count {
                freed += try versions.freeUsed(count - freed, queriesAll: state.searches.mustQueryAll(at: now))
            }
            if freed < count, search != nil {
                freed += try freeUnused(count - freed, upTo: most - freed, isLastResort: true, rowBytes: rowBytes)
            }
            if freed < count, search != nil { freed += try versions.freeReplaced(count - freed) }
            if freed == 0, let search { state.searches.recordFailure(of: search, at: now) }
            return freed
        } catch {
            warn(error)
            return freed
        }
    }

    private func warn(_ error: any Error) { store.reporter.warn("eviction failed: \(error)") }

    /// Resources that are evicted as a whole, in one transaction.
    private struct Batch {
        var keys: [CacheKey] = []
        var byteCount: Int64 = 0
        /// The number of bytes that are counted for the row of each resource.
        let rowBytes: Int64
    }

    /// Evicts the first resources in the queue. Whole resources are evicted a hundred at a time, and the last one only
    /// as far as needed. Resources with readers are skipped.
    ///
    /// - Parameters:
    ///   - isAhead: Whether no space is needed yet, in which case a body or a start is evicted entirely or not at all.
    ///   - quota: The quota to evict from; `nil` for all media.
    ///   - rowBytes: The number of bytes that are counted for the row of each evicted resource.
    private func freeUnused(
        _ count: Int64, upTo most: Int64, isLastResort: Bool = false, isAhead: Bool = false, ofQuota quota: Int? = nil,
        rowBytes: Int64 = 0
    ) throws -> Int64 {
        var freed: Int64 = 0
        var batch = Batch(rowBytes: rowBytes)
        var held: [EvictionOrder.Victim] = []
        defer { queue.release(held) }
        while freed + batch.byteCount < most, !store.remover.isRemovalFailing {
            let now = store.clock.now()
            guard let victim = queue.nextVictim(isLastResort: isLastResort, ofQuota: quota, at: now) else { break }
            let isPlaying = !isLastResort && queue.isPlaying(victim, at: now)
            let taken = isPlaying ? 0 : take(victim, &batch, upTo: most - freed)
            if taken == 0, !isPlaying, let member = victim.members.first(where: { store.isUnused($0.key) }) {
                // For a start or a body, this evicts as much as allowed; for a whole resource, as much as needed.
                let goal = (member.part == .whole ? count : most) - freed - batch.byteCount
                guard goal > 0, !isAhead || member.bytes.count(of: member.part) <= goal else { break }
                freed += try evict(&batch)
                let gone = try evictPart(of: member, goal)
                freed += gone
                if gone > 0 { continue }
            } else if taken > 0 {
                if batch.keys.count >= 128 { freed += try evict(&batch) }
                continue
            } else if freed + batch.byteCount >= count {
                break
            }
            queue.hold(victim)
            held.append(victim)
        }
        return freed + (try evict(&batch))
    }

    /// Adds the members of a victim that are evicted as a whole to the batch, up to its limit, and takes their turns.
    ///
    /// - Returns: The number of members.
    private func take(_ victim: EvictionOrder.Victim, _ batch: inout Batch, upTo most: Int64) -> Int {
        var taken: [CacheKey] = []
        for member in victim.members {
            let (sum, overflow) = batch.byteCount.addingReportingOverflow(member.bytes.total + batch.rowBytes)
            guard member.bytes.count(of: member.part) == member.bytes.total, !overflow else { break }
            // Whole rows are removed, even if the last one frees more than needed.
            guard sum <= most || batch.rowBytes > 0 && batch.byteCount < most && member.bytes.total <= most else {
                break
            }
            // The member is skipped if it has a reader, or if another task has its turn.
            guard store.isUnused(member.key), store.turns.tryTake(member.key) else { continue }
            taken.append(member.key)
            batch.byteCount = sum
        }
        // The members are removed from the queue. A member that is not evicted after all is added again.
        queue.remove(taken)
        batch.keys += taken
        return taken.count
    }

    /// Evicts the resources in the batch.
    private func evict(_ batch: inout Batch) throws -> Int64 {
        let keys = batch.keys
        let rowBytes = batch.rowBytes
        batch = Batch(rowBytes: rowBytes)
        guard !keys.isEmpty else { return 0 }
        var left = Set(keys)
        defer {
            for key in keys { store.turns.end(key) }
            // Resources that were opened in the meantime are not evicted, and are added again unless they are pinned.
            queue.restore(keys.filter { left.contains($0) })
        }
        var freed: Int64 = 0
        for removed in try versions.evict(keys) {
            left.remove(CacheKey(hash: removed.resource.key))
            // Removing a resource without bytes also counts as progress.
            if removed.isFreed { freed += removed.freedByteCount + rowBytes }
        }
        return freed
    }

    /// Evicts as much of one resource as needed.
    private func evictPart(of member: EvictionOrder.Member, _ count: Int64) throws -> Int64 {
        // The resource is skipped if another task has its turn.
        guard store.turns.tryTake(member.key) else { return 0 }
        defer { store.turns.end(member.key) }
        return try versions.evictPart(of: member, count)
    }
}
