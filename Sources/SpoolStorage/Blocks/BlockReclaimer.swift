import ByteRanges
import Synchronization

/// A type that frees the disk space of blocks. The caller must hold the lock of the media file's writer. Otherwise, a
/// missing range could be freed while bytes are being written to it.
struct BlockReclaimer: Sendable {
    private let blocks: StoredBlocks
    /// The reason why the space of evicted blocks could not be freed. No more blocks are evicted until the space is
    /// freed.
    private var failure: CacheError?
    /// Whether the disk has refused bytes since the last attempt to free space.
    private var hasNewRefusal = false

    init(_ blocks: StoredBlocks) { self.blocks = blocks }

    /// The result of an eviction.
    struct Evicted: Sendable {
        /// The evicted bytes, as one range for each run of adjacent blocks.
        var ranges: [Range<Int64>] = []
        /// The reason why the disk did not free all of the space. The blocks that it failed to free are still removed
        /// from the map, and their space stays claimed until it is freed. The remaining blocks are not evicted.
        var failure: CacheError?

        /// The number of evicted bytes.
        var byteCount: Int64 { ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound } }
    }

    /// Evicts the blocks whose stored bytes are within `range`; see ``MediaFile/evict(_:)``.
    ///
    /// - Parameter filling: The blocks that transfers are filling. These blocks are skipped.
    mutating func evict(_ range: Range<Int64>, keeping filling: some Collection<Int64>) -> Evicted {
        var evicted = Evicted()
        if blocks.holdsUnfreedBytes, !retryFreeing(), let failure {
            evicted.failure = failure
            return evicted
        }
        let open: OpenFile
        do throws(CacheError) {
            guard let opened = try blocks.file.opened() else {
                let (ranges, claim) = blocks.evict(range, keeping: filling)
                evicted.ranges = ranges
                blocks.recordFreed(claim, of: claim)
                return evicted
            }
            guard try opened.file.lock(.exclusive) else { return evicted }
            open = opened
        } catch {
            evicted.failure = error
            return evicted
        }
        defer { releaseLock(of: open) }
        var freed = ByteRangeSet()
        // The last blocks are freed first, so that the file can be shortened if possible.
        for run in blocks.withMap({ $0.evictable(range, keeping: Array(filling)) }).reversed() {
            for part in parts(of: run) where evicted.failure == nil {
                let (gone, failure) = free(part, keeping: filling, open)
                freed.formUnion(gone)
                (evicted.failure, self.failure) = (failure, failure)
            }
        }
        evicted.ranges = Array(freed)
        return evicted
    }

    /// Splits a run into one block and the remaining blocks. If the disk can't free that block, the other blocks stay
    /// stored.
    private func parts(of run: Range<Int64>) -> [Range<Int64>] {
        let isEnd = run.upperBound == blocks.withMap { $0.storedRanges.bounds?.upperBound }
        let border =
            isEnd ? Block.roundDown(run.upperBound - 1) : min(run.lowerBound + Block.size, run.upperBound)
        let (lower, upper) = (run.lowerBound..<border, border..<run.upperBound)
        return (isEnd ? [upper, lower] : [lower, upper]).filter { !$0.isEmpty }
    }

    /// Removes blocks from the map, and then frees their space.
    ///
    /// - Returns: The bytes that were freed, and the reason why the rest was not freed.
    private func free(
        _ part: Range<Int64>, keeping filling: some Collection<Int64>, _ open: OpenFile
    ) -> (freed: ByteRangeSet, failure: CacheError?) {
        var freed = ByteRangeSet()
        var failure: CacheError?
        let (runs, claim) = blocks.evict(part, keeping: filling)
        do throws(CacheError) {
            let end = blocks.withMap { $0.storedRanges.bounds?.upperBound ?? 0 }
            for run in runs {
                let upper = Block.roundUp(run.upperBound)
                // If no stored bytes follow, the file is shortened, which every file system supports.
                let limit = upper >= end ? max(upper, try open.file.size()) : upper
                try open.file.punchHole(run.lowerBound..<limit)
                freed.insert(run)
            }
        } catch {
            failure = error
        }
        // The claim is returned only after the disk has freed the blocks. Other bytes may be written to that space once
        // the claim is returned.
        blocks.recordFreed(min(claim, freed.byteCount), of: claim)
        return (freed, failure)
    }

    /// Retries freeing the space of evicted blocks and of refused bytes.
    ///
    /// - Returns: Whether the space was freed and its claims were returned.
    private mutating func retryFreeing() -> Bool {
        hasNewRefusal = false
        do {
            guard try freeUnclaimed() else { return false }
        } catch {
            return false  // The caller reports the first failure.
        }
        blocks.recordAllFreed()
        failure = nil
        return true
    }

    /// Retries freeing the space of newly refused bytes. The method is called after the disk has accepted other bytes.
    mutating func freeRefusedAgain() {
        if hasNewRefusal { _ = retryFreeing() }
    }

    /// Frees the space of bytes that were not stored, but that the disk may have partially written.
    ///
    /// - Returns: The number of bytes that are claimed from now on, because their space could not be freed.
    mutating func freeRefused(_ range: Range<Int64>, _ open: OpenFile) -> Int64 {
        do throws(CacheError) {
            if try open.file.lock(.exclusive) {
                defer { releaseLock(of: open) }
                try open.file.punchHole(range)
                return 0
            }
        } catch {
            // The bytes are counted below.
        }
        hasNewRefusal = true
        return blocks.recordUnfreed(range.upperBound - range.lowerBound)
    }

    /// Discards recorded blocks that do not use disk space; see ``MediaFile/invalidateHoles()``.
    ///
    /// - Parameter filling: The blocks that transfers are filling. These blocks are skipped.
    /// - Returns: The discarded blocks; `nil` if the file no longer exists.
    func invalidateHoles(keeping filling: some Collection<Int64>) throws -> [Range<Int64>]? {
        guard let open = try blocks.file.opened() else { return nil }
        var solid = ByteRangeSet()
        var offset: Int64 = 0
        while offset < Block.offsetLimit, let data = try open.file.nextData(from: offset) {
            solid.insert(StoredBlocks.wholeBlocks(data))
            offset = data.upperBound
        }
        for index in filling { solid.insert(Block.range(of: index)) }
        return blocks.withMap { map in
            let holes = map.storedRanges.flatMap { solid.missingRanges(in: $0) }
            for hole in holes { map.invalidate(hole) }
            return holes.map(StoredBlocks.wholeBlocks)
        }
    }

    /// Frees the disk space that whole blocks without stored bytes still occupy, for example after an unclean shutdown.
    ///
    /// - Returns: `false` if the file no longer exists, or if readers of a closed cache use it.
    /// - Throws: ``CacheError`` if the disk can't free the space.
    func freeUnclaimed() throws -> Bool {
        guard let open = try blocks.file.opened(), try open.file.lock(.exclusive) else { return false }
        defer { releaseLock(of: open) }
        let size = try open.file.size()
        for run in blocks.withMap({ $0.emptyBlocks(below: size) }) { try open.file.punchHole(run) }
        return true
    }

    private func releaseLock(of open: OpenFile) {
        _ = try? open.file.lock(.none)  // A failure does not matter: closing the descriptor removes the mark.
    }
}
