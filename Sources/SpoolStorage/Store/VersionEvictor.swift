import ByteRanges
import Foundation
import Synchronization

/// A value type that evicts the bytes chosen by ``Evictor``. These are whole resources, parts of versions, and ranges
/// of open versions that are not near any reader.
///
/// Its state belongs to the store. The caller must have the turn of each key, unless a method's documentation states
/// otherwise.
struct VersionEvictor: Sendable {
    /// The state that all evictors of a store share.
    final class State: Sendable {
        /// The elapsed time until which media is evicted as whole files, because the file system does not support
        /// sparse files. It is `nil` if sparse files may be supported.
        private let wholeUntil = Mutex<Duration?>(nil)
        /// The stamp of the open version that was queried last.
        fileprivate let lastQueried = Atomic<UInt64>(0)
        fileprivate let evictedByteCount = Atomic<Int64>(0)

        /// The number of bytes that have been evicted since the store was opened.
        var byteCount: Int64 { evictedByteCount.load(ordering: .relaxed) }

        /// Returns whether only whole files can currently be evicted.
        fileprivate func evictsWholeFiles(at elapsed: Duration) -> Bool {
            wholeUntil.withLock { end in
                if let time = end, time <= elapsed { end = nil }
                return end != nil
            }
        }

        fileprivate func recordNoHoles(at elapsed: Duration) {
            wholeUntil.withLock { $0 = elapsed + VersionEvictor.wholeFileTime }
        }
    }

    /// The time for which media is evicted as whole files after the file system has failed to free part of a file.
    static let wholeFileTime = Duration.seconds(3600)

    /// The maximum number of open versions that one search for space queries without freeing any. If all readers of
    /// hundreds of versions receive bytes, each search would otherwise query all of them.
    static let queryLimit = 32

    private let store: Store
    private let state: State

    init(_ store: Store) {
        self.store = store
        state = store.eviction.freeing
    }

    private var queue: EvictionQueue { store.eviction.queue }
    private var evictsWholeFiles: Bool { state.evictsWholeFiles(at: store.clock.elapsed()) }

    // MARK: - Unused media

    /// Evicts unused resources completely. Resources that have been opened or pinned in the meantime are skipped. The
    /// method blocks.
    ///
    /// - Returns: The resources that were evicted.
    func evict(_ keys: [CacheKey]) throws -> [RemovedUnused] {
        let removed = try store.resourceRemover.removeUnused(keys, evenPinned: false)
        for gone in removed {
            report(
                CacheKey(hash: gone.resource.key), url: gone.resource.url, bytes: gone.bytes,
                ByteRangeSet(0..<Int64.max))
        }
        return removed
    }

    /// Evicts as much of one resource as needed. The method blocks.
    func evictPart(of member: EvictionOrder.Member, _ count: Int64) throws -> Int64 {
        guard try !store.catalog.isPinned(member.key.hash) else {
            queue.remove([member.key])
            return 0
        }
        guard let lease = try store.versions.openStored(member.key, nil) else {
            // The file is in an unknown format and is evicted completely, or it has already been removed.
            return try evictWhole(member.key)
        }
        let generation = lease.generation
        guard let disk = generation.disk, store.users(of: generation).isEmpty else {
            lease.end()
            return 0
        }
        guard !evictsWholeFiles else {
            lease.end()
            return try evictWhole(member.key)
        }
        let ranges = EvictableParts(stop: member.stop).ranges(count, of: member.part, in: disk.storedRanges)
        let (gone, failure) = free(ranges, of: disk)
        recordEvicted(gone, of: generation)
        queue.update(member.key, disk.storedRanges)
        lease.end()
        guard let failure else { return gone.byteCount }
        // A file that can't be opened, or whose blocks can't be freed, can still be removed.
        warn(thatPartsStay: failure, of: generation)
        return try gone.byteCount + evictWhole(member.key)
    }

    private func evictWhole(_ key: CacheKey) throws -> Int64 {
        queue.remove([key])
        let removed = try evict([key])
        if removed.isEmpty { queue.restore([key]) }
        return removed.reduce(0) { $0 + $1.freedByteCount }
    }

    /// Evicts the ends of versions that newer versions are about to replace. A newer version replaces the stored one
    /// once its first block is stored, which needs space. The caller must not have a turn. The method blocks.
    func freeReplaced(_ count: Int64) throws -> Int64 {
        var freed: Int64 = 0
        // The ends of files can be evicted even if the file system does not support sparse files.
        for life in store.table.withLock({ $0.outdated }) where freed < count {
            guard try !store.catalog.isPinned(life.generation.key.hash), let lease = store.extend(life.generation)
            else { continue }
            freed += evictEnd(of: life.generation, count - freed)
            lease.end()
        }
        return freed
    }

    /// Evicts the end of a version. Its first bytes stay longest, because the next playback needs them first.
    private func evictEnd(of generation: Generation, _ count: Int64) -> Int64 {
        guard let disk = generation.disk, store.users(of: generation).isEmpty else { return 0 }
        var freed = ByteRangeSet()
        for range in disk.storedRanges.reversed() where freed.byteCount < count {
            let start = Block.roundDown(max(range.lowerBound, range.upperBound - (count - freed.byteCount)))
            for gone in evict([start..<range.upperBound], of: generation, disk) { freed.insert(gone) }
        }
        recordEvicted(freed, of: generation)
        return freed.byteCount
    }

    // MARK: - Open media

    /// Evicts ranges of open versions from disk if they are not near any reader. The caller must not have a turn. The
    /// method blocks.
    ///
    /// - Parameter queriesAll: Whether to query users again even if none of their readers has moved since the last
    ///   query. Otherwise, at most ``queryLimit`` versions are queried without freeing space. The next search
    ///   continues after them.
    func freeUsed(_ count: Int64, queriesAll: Bool) throws -> Int64 {
        var freed: Int64 = 0
        var lives = store.table.withLock { table in table.used { queriesAll || $0.mayHaveEvictableBytes } }[...]
        if !queriesAll, lives.count > Self.queryLimit {
            let last = state.lastQueried.load(ordering: .relaxed)
            let next = lives.firstIndex { $0.stamp > last } ?? lives.startIndex
            lives = lives[next...] + lives[..<next]
        }
        var queriesLeft = queriesAll ? Int.max : Self.queryLimit
        // An open version can't be evicted as a whole.
        for life in lives where freed < count && queriesLeft > 0 && !evictsWholeFiles {
            queriesLeft -= 1
            state.lastQueried.store(life.stamp, ordering: .relaxed)
            // If readers of the version move after this point, the version is examined again.
            life.generation.recordQueried()
            guard let disk = life.generation.disk, disk.storedByteCount > 0,
                try !store.catalog.isPinned(life.generation.key.hash)
            else { continue }
            let gone = evictOffered(count - freed, of: disk.storedRanges, life) { evict($0, of: life.generation, disk) }
            recordEvicted(gone, of: life.generation)
            freed += gone.byteCount
            if !gone.isEmpty { queriesLeft += 1 }
        }
        return freed
    }

    /// Evicts ranges of open versions from memory if they are not near any reader. The caller must not have a turn.
    ///
    /// - Returns: Whether any memory was freed.
    func makeMemory(_ count: Int64) -> Bool {
        var freed: Int64 = 0
        for life in store.table.withLock({ $0.used() }) where freed < count {
            let stored = life.generation.storedInMemory
            guard !stored.isEmpty else { continue }
            let gone = evictOffered(count - freed, of: stored, life) { ranges in
                life.generation.evictFromMemory(ranges)
                var gone = ByteRangeSet(ranges)
                gone.subtract(life.generation.storedInMemory)
                return gone
            }
            freed += gone.byteCount
        }
        return freed > 0
    }

    /// Evicts the ranges that every user of a version allows to be evicted, and reports the result to the users.
    ///
    /// - Returns: The evicted bytes.
    private func evictOffered(
        _ count: Int64, of stored: ByteRangeSet, _ life: GenerationTable.Life,
        _ evict: ([Range<Int64>]) -> ByteRangeSet
    ) -> ByteRangeSet {
        let users = life.liveUsers
        guard !users.isEmpty else { return ByteRangeSet() }
        var rest = stored
        var offers: [(user: any GenerationUser, ranges: [Range<Int64>])] = []
        for user in users where !rest.isEmpty {
            let ranges = user.offerEvictable(count, within: rest, of: life.generation)
            offers.append((user, ranges))
            // Blocks that a slice holds, or that a transfer is filling, may be evicted later.
            if !ranges.isEmpty { life.generation.recordMove() }
            rest = rest.intersection(ByteRangeSet(ranges.map(StoredBlocks.wholeBlocks)))
        }
        let gone = rest.isEmpty ? ByteRangeSet() : evict(Array(rest))
        for (user, ranges) in offers where !ranges.isEmpty {
            // A block may be in memory and also partly on disk. Bytes that can still be read were not evicted.
            let kept = ByteRangeSet(ranges.map(StoredBlocks.wholeBlocks)).intersection(life.generation.storedRanges)
            user.evicted(ranges, kept: kept, of: life.generation)
        }
        return gone
    }

    // MARK: - Blocks on disk

    private func evict(_ ranges: [Range<Int64>], of generation: Generation, _ disk: MediaFile) -> ByteRangeSet {
        let (gone, failure) = free(ranges, of: disk)
        if let failure {
            warn(thatPartsStay: failure, of: generation)
            // Records that these blocks are no longer stored, even though they still occupy space.
            store.recordChange(of: generation)
        }
        return gone
    }

    private func free(_ ranges: [Range<Int64>], of disk: MediaFile) -> (gone: ByteRangeSet, failure: CacheError?) {
        var gone = ByteRangeSet()
        for range in ranges {
            let evicted = disk.evict(StoredBlocks.wholeBlocks(range))
            for range in evicted.ranges { gone.insert(range) }
            if let failure = evicted.failure { return (gone, failure) }
        }
        return (gone, nil)
    }

    /// Reports once that part of a file can't be evicted, and records whether this applies to all files.
    private func warn(thatPartsStay cause: CacheError, of generation: Generation) {
        if let code = cause.posixCode, [EOPNOTSUPP, ENOTSUP, ENOSYS].contains(code.rawValue) {
            state.recordNoHoles(at: store.clock.elapsed())
        }
        store.reporter.warnOnce(
            "part", cause,
            "a part of \(generation.url) can't be evicted, so media is evicted only as a whole: \(cause)")
    }

    private func recordEvicted(_ gone: ByteRangeSet, of generation: Generation) {
        guard !gone.isEmpty else { return }
        store.recordChange(of: generation)
        report(generation.key, url: generation.url, bytes: gone.byteCount, gone)
    }

    private func report(_ key: CacheKey, url: String, bytes: Int64, _ ranges: ByteRangeSet) {
        state.evictedByteCount.add(bytes, ordering: .relaxed)
        store.report(.evictedRanges(key, ranges))
        store.report(.evicted(key, url: url, bytes: bytes))
    }
}
