import ByteRanges
import Foundation
import Synchronization

extension Store {
    /// Sets capacity aside, evicting what is needed: what nobody has open, by policy; then what users offer; then of
    /// versions that are being replaced.
    ///
    /// One at a time; others wait, holding no thread.
    func makeRoom(_ count: Int64) async -> ReservationResult {
        let limit = ledger.limit ?? .max
        guard count <= limit, policy.makesRoom else { return ledger.reserve(count) }
        return await evictions.run(0) {
            while true {
                if case .reserved(let reservation) = ledger.reserve(count) { return .reserved(reservation) }
                let freed = await executor.run(in: .landing) {
                    self.free(count, upTo: max(count, Self.margin(of: limit)))
                }
                guard freed > 0 else { return ledger.reserve(count) }
            }
        }
    }

    /// Evicts a little more than is needed now, where little room is left, so that bytes that come next need not wait.
    ///
    /// Only what nobody has open, whole and small, and only when bytes have landed.
    func makeRoomAhead() {
        guard policy.makesRoom, let limit = ledger.limit, ledger.used > limit - Self.margin(of: limit) / 2 else {
            return
        }
        work.start(in: .background) { [weak self] in
            guard let self else { return }
            await evictions.run(0) {
                let excess = ledger.used - (limit - Self.margin(of: limit))
                guard excess > 0, !table.withLock({ $0.isClosed }) else { return }
                do {
                    _ = try freeUnused(1, upTo: excess, wholeOnly: true)
                } catch {
                    report(.warning("eviction failed: \(error)"))
                }
            }
        }
    }

    private static func margin(of limit: Int64) -> Int64 { min(8 << 20, limit / 16) }

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
            while ledger.used > size {
                guard await executor.run(in: .background, { self.free(self.ledger.used - size) }) > 0 else { break }
            }
            // Resources of no bytes take no room, but asked for nothing, nothing is to be left.
            while size == 0, await executor.run(in: .background, { self.free(1) }) > 0 {}
            // Nobody else evicts meanwhile; others may have landed.
            return evictedByteCount.load(ordering: .relaxed) - before
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
        ledger.limit = limit
        if let limit { try await evict(to: limit) }
    }

    /// Evicts about `count` bytes; blocks.
    ///
    /// - Parameter most: Small resources go up to so many bytes: by the hundred, each costs a quarter.
    /// - Returns: How many went, or how many resources of no bytes.
    private func free(_ count: Int64, upTo most: Int64? = nil) -> Int64 {
        guard directory.access.isWritable, !table.withLock({ $0.isClosed }) else { return 0 }
        do {
            var freed = try freeUnused(count, upTo: most ?? count)
            if freed == 0, flusher.isPending {
                // What has been closed a moment ago is not in the catalog yet. If it can't be written, that was reported,
                // and there may be other things to evict.
                if (try? writeChanges()) != nil { freed = try freeUnused(count, upTo: most ?? count) }
            }
            if freed < count { freed += try freeUsed(count - freed) }
            if freed < count { freed += try freeOutdated(count - freed) }
            return freed
        } catch {
            report(.warning("eviction failed: \(error)"))
            return 0
        }
    }

    // MARK: - What nobody has open

    private func freeUnused(_ count: Int64, upTo most: Int64, wholeOnly: Bool = false) throws -> Int64 {
        var freed: Int64 = 0
        var position: EvictionPosition?
        while freed < count {
            let page = try catalog.leastRecentlyUsed(limit: 128, after: position)
            guard !page.isEmpty else { break }
            position = page.last?.position
            let unused = table.withLock { table in
                page.compactMap { candidate -> EvictableResource? in
                    let key = CacheKey(hash: candidate.key)
                    guard table.isUnused(key) else { return nil }
                    // What has been closed a moment ago may hold more than is recorded yet.
                    let held = table.currentGeneration(of: key)?.disk?.landedByteCount
                    return EvictableResource(
                        key: key, storedByteCount: held ?? candidate.storedBytes, lastUsed: candidate.lastUsedAt)
                }
            }
            // Only the order is the policy's: what it says of sizes and keys may be anything.
            let known = Dictionary(unused.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
            let ordered = policy.order(unused).compactMap { known[$0.key] }
            freed += try evict(ordered, count - freed, upTo: most - freed, wholeOnly: wholeOnly)
            if wholeOnly { break }
        }
        return freed
    }

    /// Evicts resources in this order, whole as far as they fit, then the tail of the next one; a tail that has to stay,
    /// since somebody reads it, is passed over.
    private func evict(
        _ resources: [EvictableResource], _ count: Int64, upTo most: Int64, wholeOnly: Bool
    ) throws -> Int64 {
        var freed: Int64 = 0
        var rest = resources[...]
        while freed < count, !rest.isEmpty {
            freed += try evictFirst(of: &rest, count - freed, upTo: most - freed, wholeOnly: wholeOnly)
        }
        return freed
    }

    /// Takes from `resources` what goes whole by one transaction, and the one whose tail goes.
    private func evictFirst(
        of resources: inout ArraySlice<EvictableResource>, _ count: Int64, upTo most: Int64, wholeOnly: Bool
    ) throws -> Int64 {
        var whole: [CacheKey] = []
        var part: CacheKey?
        var planned: Int64 = 0
        while part == nil, planned < most, let resource = resources.first {
            let (sum, overflow) = planned.addingReportingOverflow(resource.storedByteCount)
            let isWhole = !overflow && sum <= most
            guard isWhole || (!wholeOnly && planned < count) else {
                if wholeOnly { resources = [] }
                break
            }
            resources.removeFirst()
            // Somebody decides about it: passed over.
            guard turns.tryTake(resource.key) else { continue }
            if isWhole {
                whole.append(resource.key)
                planned = sum
            } else {
                part = resource.key
            }
        }
        defer { for key in whole + [part].compactMap({ $0 }) { turns.end(key) } }
        var freed: Int64 = 0
        // One of no bytes is progress, too.
        for bytes in try evictWhole(whole) { freed += max(1, bytes) }
        if let part { freed += try evictTail(of: part, count - freed) }
        return freed
    }

    /// - Returns: The bytes of each that went.
    func evictWhole(_ keys: [CacheKey]) throws -> [Int64] {
        try removeUnused(keys, evenPinned: false).map { resource, bytes in
            reportEvicted(CacheKey(hash: resource.key), url: resource.url, bytes: bytes)
            return bytes
        }
    }

    /// Takes the tail of a resource; its head stays longest, being what a next play needs first.
    private func evictTail(of key: CacheKey, _ count: Int64) throws -> Int64 {
        guard try !catalog.isPinned(key.hash) else { return 0 }
        guard let lease = try openStored(key, nil) else {
            // In a format that is not known here, it goes as a whole.
            return try evictWhole([key]).reduce(0, +)
        }
        defer { lease.end() }
        return evictTail(of: lease.generation, count)
    }

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
        var gone = ByteRangeSet()
        for range in ranges {
            let evicted = disk.evict(MediaFile.wholeBlocks(range))
            for range in evicted.ranges { gone.insert(range) }
            if let failure = evicted.failure { report(.warning("\(generation.url) was evicted in part: \(failure)")) }
        }
        return gone
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
        for life in table.withLock({ $0.used }) where freed < count {
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
