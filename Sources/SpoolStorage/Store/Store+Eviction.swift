import ByteRanges
import Foundation
import Synchronization

extension Store {
    /// Sets capacity aside, evicting what is needed: what nobody has open, by policy; then what users offer; then what the
    /// policy would rather keep; then of versions that are being replaced.
    ///
    /// One at a time; others wait, holding no thread.
    func makeRoom(_ count: Int64, rowBytes: Int64) async -> ReservationResult {
        let limit = ledger.limit ?? .max
        guard count <= limit, policy.makesRoom else { return ledger.reserve(count, rowBytes: rowBytes) }
        return await evictions.run(0) {
            while true {
                if case .reserved(let reservation) = ledger.reserve(count, rowBytes: rowBytes) {
                    return .reserved(reservation)
                }
                let isFull = ledger.used > limit - count
                let freed = await executor.run(in: .landing) {
                    isFull
                        ? self.free(count, upTo: max(count, Self.margin(of: limit)))
                        : self.freeRows(self.ledger.shortage(ofRowBytes: rowBytes + count))
                }
                guard freed > 0 else { return ledger.reserve(count, rowBytes: rowBytes) }
            }
        }
    }

    /// Evicts as many bytes of media and rows together; blocks.
    ///
    /// - Returns: How many went, or 1 if the others had gone by themselves.
    private func freeRows(_ count: Int64) -> Int64 {
        count > 0 ? free(count, rowBytes: GenerationDescription.leastRowBytes) : 1
    }

    /// Evicts a little more than is needed now, where little room is left, so that bytes that come next need not wait.
    ///
    /// Only what nobody has open, as far as all of it, or of its body, fits; and only when bytes have landed.
    ///
    /// - Parameter hasNewBytes: Whether bytes have landed; if not, only rows have come.
    func makeRoomAhead(hasNewBytes: Bool) {
        guard policy.makesRoom, let limit = ledger.limit else { return }
        let rowMargin = Ledger.allowance(of: limit) / 4
        let isNearlyFull = hasNewBytes && ledger.used > limit - Self.margin(of: limit) / 2
        guard isNearlyFull || ledger.shortage(ofRowBytes: rowMargin / 2) > 0 else { return }
        work.start(in: .background) { [weak self] in
            guard let self else { return }
            await evictions.run(0) {
                let excess = isNearlyFull ? ledger.used - (limit - Self.margin(of: limit)) : 0
                guard excess > 0 || ledger.shortage(ofRowBytes: rowMargin) > 0, !table.withLock({ $0.isClosed })
                else { return }
                do {
                    try readOrder()
                    if excess > 0 { _ = try freeUnused(1, upTo: excess, isAhead: true) }
                    // Of what is left.
                    let rowExcess = ledger.shortage(ofRowBytes: rowMargin)
                    guard rowExcess > 0 else { return }
                    _ = try freeUnused(
                        1, upTo: rowExcess, isAhead: true, rowBytes: GenerationDescription.leastRowBytes)
                } catch {
                    report(.warning("eviction failed: \(error)"))
                }
            }
        }
    }

    static func margin(of limit: Int64) -> Int64 { min(8 << 20, limit / 16) }

    /// Evicts until at most `size` bytes are kept, as far as pins and readers allow.
    ///
    /// - Returns: How many bytes went.
    /// - Throws: ``CacheError``: `invalidArgument` if `size` is negative.
    @discardableResult
    package func evict(to size: Int64) async throws -> Int64 {
        guard size >= 0 else { throw CacheError(.invalidArgument, "\(size) bytes can't be what is left") }
        try checkWritable()
        // What was closed or used a moment ago counts in the policy's order.
        try? await flush()  // If it can't be written, that was reported: the order is that of what is recorded.
        return await evictions.run(0) {
            let before = evictedByteCount.load(ordering: .relaxed)
            // All of it: in any order, also what has no bytes.
            if size == 0 { await executor.run(in: .background) { self.evictAll() } }
            while ledger.used > size {
                guard await executor.run(in: .background, { self.free(self.ledger.used - size) }) > 0 else { break }
            }
            // Nobody else evicts meanwhile; others may have landed.
            return evictedByteCount.load(ordering: .relaxed) - before
        }
    }

    private func evictAll() {
        do {
            try evict(usedBefore: .distantFuture)
        } catch {
            report(.warning("eviction failed: \(error)"))
        }
    }

    /// Sets the most to keep from now on, and evicts what is too much.
    ///
    /// - Parameter isRemembered: Whether it is noted in the directory, for those who open it as ``CacheCapacity/remembered``.
    /// - Throws: ``CacheError``: `invalidArgument` if it can't be; `storage` when the catalog can't be written, or the volume
    ///   not be asked for its size.
    package func setCapacity(_ capacity: CacheCapacity, isRemembered: Bool = false) async throws {
        try capacity.validate()
        try checkWritable()
        let limit = try await executor.run(in: .background) {
            let limit = try capacity.limit(in: self.directory)
            if isRemembered { try self.catalog.setCapacity(limit) }
            return limit
        }
        configuredLimit.withLock { $0 = limit }
        applyLimit()
        guard let limit else { return }
        try await evict(to: limit)
        await evictions.run(0) {
            while ledger.shortage(ofRowBytes: 0) > 0 {
                let freed = await executor.run(in: .background) {
                    self.freeRows(self.ledger.shortage(ofRowBytes: 0))
                }
                guard freed > 0 else { return }
            }
        }
    }

    /// Evicts about `count` bytes; blocks.
    ///
    /// - Parameters:
    ///   - most: Small resources go up to so many bytes: by the hundred, each costs a quarter.
    ///   - rowBytes: What the row of each resource that goes whole counts, if rows have to go.
    /// - Returns: How many went, or how many resources of no bytes.
    private func free(_ count: Int64, upTo most: Int64? = nil, rowBytes: Int64 = 0) -> Int64 {
        guard directory.access.isWritable, !table.withLock({ $0.isClosed }) else { return 0 }
        let most = most ?? count
        var freed = retryRemovals()
        guard freed < count, !unremoved.withLock({ $0.isRemovingHopeless }) else { return freed }
        do {
            try readOrder()
            freed += try freeUnused(count - freed, upTo: most - freed, rowBytes: rowBytes)
            if freed == 0, flusher.isPending {
                // What has been closed a moment ago is not in the catalog yet. If it can't be written, that was reported,
                // and there may be other things to evict.
                if (try? writeChanges()) != nil {
                    freed = try freeUnused(count, upTo: most, rowBytes: rowBytes)
                }
            }
            if freed < count { freed += try freeUsed(count - freed) }
            if freed < count {
                freed += try freeUnused(count - freed, upTo: most - freed, isLastResort: true, rowBytes: rowBytes)
            }
            if freed < count { freed += try freeOutdated(count - freed) }
            return freed
        } catch {
            report(.warning("eviction failed: \(error)"))
            return freed
        }
    }

    // MARK: - What nobody has open

    /// What goes whole, by one transaction.
    private struct Whole {
        var keys: [CacheKey] = []
        var byteCount: Int64 = 0
        /// What each of them counts beside its bytes.
        let rowBytes: Int64
    }

    /// Evicts what the order names: what goes whole by the hundred, of the last one as much as is needed. What has to stay,
    /// since somebody reads it, is passed over.
    ///
    /// - Parameters:
    ///   - isAhead: Nothing is needed now: a body or a start goes only if all of it is to go.
    ///   - quota: Only what counts to one.
    ///   - rowBytes: What the row of each resource that goes whole counts.
    func freeUnused(
        _ count: Int64, upTo most: Int64, isLastResort: Bool = false, isAhead: Bool = false, ofQuota quota: Int? = nil,
        rowBytes: Int64 = 0
    ) throws -> Int64 {
        var freed: Int64 = 0
        var whole = Whole(rowBytes: rowBytes)
        var held: [EvictionOrder.Victim] = []
        defer { order.withLock { $0?.release(held) } }
        while freed + whole.byteCount < most, !unremoved.withLock({ $0.isRemovingHopeless }) {
            let now = clock.now()
            let victim = order.withLock { $0?.nextVictim(isLastResort: isLastResort, ofQuota: quota, at: now) }
            guard let victim else { break }
            let isPlaying = !isLastResort && order.withLock { $0?.isPlaying(victim, at: now) ?? false }
            let taken = isPlaying ? 0 : take(victim, &whole, upTo: most - freed)
            if taken == 0, !isPlaying, let member = victim.members.first(where: isFree) {
                // A start or a body goes at once as far as it may, of a whole as much as must.
                let goal = (member.part == .whole ? count : most) - freed - whole.byteCount
                guard goal > 0, !isAhead || member.bytes.count(of: member.part) <= goal else { break }
                freed += try evictWhole(&whole)
                let gone = try evictPart(of: member, goal)
                freed += gone
                if gone > 0 { continue }
            } else if taken > 0 {
                if whole.keys.count >= 128 { freed += try evictWhole(&whole) }
                continue
            } else if freed + whole.byteCount >= count {
                break
            }
            order.withLock { $0?.hold(victim) }
            held.append(victim)
        }
        return freed + (try evictWhole(&whole))
    }

    private func isFree(_ member: EvictionOrder.Member) -> Bool { table.withLock { $0.isUnused(member.key) } }

    /// Takes of a victim's members those that go whole, as far as they fit, and their turns.
    ///
    /// - Returns: How many.
    private func take(_ victim: EvictionOrder.Victim, _ whole: inout Whole, upTo most: Int64) -> Int {
        var taken: [CacheKey] = []
        for member in victim.members {
            let (sum, overflow) = whole.byteCount.addingReportingOverflow(member.bytes.total + whole.rowBytes)
            guard member.bytes.count(of: member.part) == member.bytes.total, !overflow else { break }
            // Rows go in whole, also if the last one frees more than is needed.
            guard sum <= most || whole.rowBytes > 0 && whole.byteCount < most && member.bytes.total <= most else {
                break
            }
            // Somebody reads it, or decides about it: passed over.
            guard isFree(member), turns.tryTake(member.key) else { continue }
            taken.append(member.key)
            whole.byteCount = sum
        }
        // Named no more. What stays after all is told anew.
        order.withLock { order in for key in taken { order?.remove(key) } }
        whole.keys += taken
        return taken.count
    }

    /// Evicts what has been taken.
    private func evictWhole(_ whole: inout Whole) throws -> Int64 {
        let keys = whole.keys
        let rowBytes = whole.rowBytes
        whole = Whole(rowBytes: rowBytes)
        guard !keys.isEmpty else { return 0 }
        var left = Set(keys)
        defer {
            for key in keys { turns.end(key) }
            // What somebody has opened meanwhile stays; what is pinned is none of the order's.
            let stayed = keys.filter { left.contains($0) }
            noteAgain(stayed)
        }
        var freed: Int64 = 0
        for removed in try evictWhole(keys) {
            left.remove(CacheKey(hash: removed.resource.key))
            // One of no bytes is progress, too.
            if removed.isFreed { freed += max(1, removed.bytes) + rowBytes }
        }
        return freed
    }

    /// - Returns: Each that went.
    @discardableResult
    func evictWhole(_ keys: [CacheKey]) throws -> [RemovedUnused] {
        let removed = try removeUnused(keys, evenPinned: false)
        for gone in removed {
            reportEvicted(CacheKey(hash: gone.resource.key), url: gone.resource.url, bytes: gone.bytes)
        }
        return removed
    }

    /// Takes of one resource as much as is needed.
    private func evictPart(of member: EvictionOrder.Member, _ count: Int64) throws -> Int64 {
        // Somebody decides about it: passed over.
        guard turns.tryTake(member.key) else { return 0 }
        defer { turns.end(member.key) }
        guard try !catalog.isPinned(member.key.hash) else {
            order.withLock { $0?.remove(member.key) }
            return 0
        }
        guard let lease = try openStored(member.key, nil) else {
            // In a format that is not known here, it goes as a whole; or it has gone.
            return try evictNow(member.key)
        }
        let generation = lease.generation
        guard let disk = generation.disk, users(of: generation).isEmpty else {
            lease.end()
            return 0
        }
        guard !hasNoHoles.load(ordering: .relaxed) else {
            lease.end()
            return try evictNow(member.key)
        }
        let ranges = EvictableParts(stop: member.stop).ranges(count, of: member.part, in: disk.landed)
        var failure: CacheError?
        let freed = evict(ranges, of: generation, disk, &failure).byteCount
        noteEvicted(freed, of: generation)
        let (landed, now) = (disk.landed, clock.now())
        order.withLock { _ = $0?.update(member.key, landed, at: now) }
        lease.end()
        guard let failure else { return freed }
        // A file that can't be opened, or whose blocks can't be freed, can be removed all the same.
        warn(thatPartsStay: failure, of: generation)
        return try freed + evictNow(member.key)
    }

    /// Evicts a resource whole; the caller has its turn.
    private func evictNow(_ key: CacheKey) throws -> Int64 {
        order.withLock { $0?.remove(key) }
        let removed = try evictWhole([key])
        if removed.isEmpty { noteAgain([key]) }
        return removed.reduce(0) { $0 + ($1.isFreed ? max(1, $1.bytes) : 0) }
    }

    /// Takes the tail of a version; its head stays longest, being what a next play needs first.
    private func evictTail(of generation: Generation, _ count: Int64) -> Int64 {
        guard let disk = generation.disk, users(of: generation).isEmpty else { return 0 }
        var freed: Int64 = 0
        for range in disk.landed.reversed() where freed < count {
            let start = Block.roundDown(max(range.lowerBound, range.upperBound - (count - freed)))
            freed += evict([start..<range.upperBound], of: generation, disk).byteCount
        }
        noteEvicted(freed, of: generation)
        return freed
    }

    private func evict(_ ranges: [Range<Int64>], of generation: Generation, _ disk: MediaFile) -> ByteRangeSet {
        var failure: CacheError?
        let gone = evict(ranges, of: generation, disk, &failure)
        if let failure {
            warn(thatPartsStay: failure, of: generation)
            // Blocks that are forgotten although they take space.
            noteChange(of: generation)
        }
        return gone
    }

    private func evict(
        _ ranges: [Range<Int64>], of generation: Generation, _ disk: MediaFile, _ failure: inout CacheError?
    ) -> ByteRangeSet {
        var gone = ByteRangeSet()
        for range in ranges {
            let evicted = disk.evict(MediaFile.wholeBlocks(range))
            for range in evicted.ranges { gone.insert(range) }
            failure = evicted.failure
            guard failure == nil else { break }
        }
        return gone
    }

    /// Warns once that a part of a file can't be evicted, and notes whether no file's can.
    private func warn(thatPartsStay cause: CacheError, of generation: Generation) {
        if let code = cause.posixCode, [EOPNOTSUPP, ENOTSUP, ENOSYS].contains(code.rawValue) {
            hasNoHoles.store(true, ordering: .relaxed)
        }
        warnOnce(
            "part", cause,
            "a part of \(generation.url) can't be evicted, so such media is evicted as a whole: \(cause)")
    }

    private func noteEvicted(_ bytes: Int64, of generation: Generation) {
        guard bytes > 0 else { return }
        noteChange(of: generation)
        reportEvicted(generation.key, url: generation.url, bytes: bytes)
    }

    private func reportEvicted(_ key: CacheKey, url: String, bytes: Int64) {
        evictedByteCount.add(bytes, ordering: .relaxed)
        report(.evicted(key, url: url, bytes: bytes))
    }

    /// Takes from the tails of versions beside which others have begun: those come into their place with their first
    /// block, which has to have room.
    private func freeOutdated(_ count: Int64) throws -> Int64 {
        var freed: Int64 = 0
        guard !hasNoHoles.load(ordering: .relaxed) else { return 0 }
        for life in table.withLock({ $0.outdated }) where freed < count {
            guard try !catalog.isPinned(life.generation.key.hash), let lease = extend(life.generation) else { continue }
            freed += evictTail(of: life.generation, count - freed)
            lease.end()
        }
        return freed
    }

    // MARK: - What users have left behind

    private func freeUsed(_ count: Int64) throws -> Int64 {
        var freed: Int64 = 0
        // What is being read can't go as a whole.
        for life in table.withLock({ $0.used }) where freed < count && !hasNoHoles.load(ordering: .relaxed) {
            guard let disk = life.generation.disk, disk.landedByteCount > 0,
                try !catalog.isPinned(life.generation.key.hash)
            else { continue }
            let gone = give(count - freed, of: disk.landed, life) { evict($0, of: life.generation, disk) }
            noteEvicted(gone, of: life.generation)
            freed += gone
        }
        return freed
    }

    func makeMemory(_ count: Int64) -> Bool {
        var freed: Int64 = 0
        for life in table.withLock({ $0.used }) where freed < count {
            let place = life.generation.landedInMemory
            guard !place.isEmpty else { continue }
            freed += give(count - freed, of: place, life) { ranges in
                life.generation.evictFromMemory(ranges)
                var gone = ByteRangeSet(ranges)
                gone.subtract(life.generation.landedInMemory)
                return gone
            }
        }
        return freed > 0
    }

    /// Evicts what all users of a generation can do without, and tells them.
    ///
    /// - Returns: How many bytes went.
    private func give(
        _ count: Int64, of place: ByteRangeSet, _ life: GenerationTable.Life,
        _ evict: ([Range<Int64>]) -> ByteRangeSet
    ) -> Int64 {
        let users = life.liveUsers
        guard !users.isEmpty else { return 0 }
        var rest = place
        var offers: [(user: any GenerationUser, ranges: [Range<Int64>])] = []
        for user in users where !rest.isEmpty {
            let ranges = user.offerEvictable(count, within: rest, of: life.generation)
            offers.append((user, ranges))
            rest = rest.intersection(ByteRangeSet(ranges.map(MediaFile.wholeBlocks)))
        }
        let gone = rest.isEmpty ? ByteRangeSet() : evict(Array(rest))
        for (user, ranges) in offers where !ranges.isEmpty {
            // A block may be in memory as well as, in part, on disk: what can still be read is still there.
            let kept = ByteRangeSet(ranges.map(MediaFile.wholeBlocks)).intersection(life.generation.landed)
            user.evicted(ranges, kept: kept, of: life.generation)
        }
        return gone.byteCount
    }
}
