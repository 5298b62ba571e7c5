import ByteRanges
import Synchronization

extension Generation {
    /// The result of storing bytes.
    package enum StoringResult: Sendable, Hashable {
        /// The bytes were stored and are now readable. The range may be shorter than the passed bytes, or empty.
        /// Reserve space again for the rest.
        case stored(Range<Int64>)
        /// Neither disk nor memory has space for the bytes now, and no reader is waiting for them.
        case noSpace
        /// The version is no longer in the cache.
        case retired
        /// The stored part of the first byte's block is damaged, unreadable or missing. Fetch these bytes again first.
        case prefixInvalidated(Range<Int64>)
    }

    /// Reserves space for bytes in `range`, and evicts other media if necessary.
    ///
    /// The method suspends only if media has to be evicted, and does not occupy a thread while other tasks evict.
    ///
    /// - Parameters:
    ///   - isAwaited: Whether a reader is waiting for the bytes. If the disk has no space, the first block is stored in
    ///     memory. To make space for it, bytes in memory that other readers have passed are evicted. If necessary, the
    ///     memory limit is exceeded by that block, so that the reader does not wait forever.
    ///   - isUrgent: A function that returns whether a player is waiting for the bytes at the time of the call. If so,
    ///     and freeing space takes a long time, the first block is stored in memory. A preload waits, because all of
    ///     its bytes must be stored on disk.
    package func reserveSpace(
        for range: Range<Int64>, isAwaited: Bool, isUrgent: @escaping @Sendable () -> Bool
    ) async -> ReservedSpace {
        guard !isRetired.load(ordering: .acquiring), let owner else { return ReservedSpace(range, .retired) }
        guard let disk, !mustStoreInMemory(at: range.lowerBound) else { return makeMemory(for: range, isAwaited) }
        let missing = disk.missingByteCount(in: range)
        let rowBytes = missingRowBytes
        if case .reserved(let reservation) = ledger.reserve(missing, rowBytes: rowBytes) {
            recordRowClaim(rowBytes)
            return ReservedSpace(range, .disk, reservation)
        }
        switch await owner.reserveSpace(missing, rowBytes: rowBytes, isUrgent: isUrgent) {
        case .reserved(let reservation):
            recordRowClaim(rowBytes)
            return ReservedSpace(range, .disk, reservation)
        case .late:
            // Only this block is not stored on disk. The next one is, if there is space by then.
            let isAwaited = isAwaited || isUrgent()
            return isAwaited ? makeMemory(for: range, isAwaited) : ReservedSpace(range, .none)
        case .full: break
        }
        guard isAwaited else { return ReservedSpace(range, .none) }
        let limit = ledger.limit ?? 0
        reportLoss(
            CacheError(
                .capacityExceeded,
                "\(url) is played without being cached: the capacity of \(limit.counted("byte")) is in use",
                range: range)
        )
        return makeMemory(for: range, isAwaited)
    }

    /// Returns whether bytes at `offset` have to be stored in memory. This applies to all bytes if the disk can't be
    /// used. Otherwise, it applies if the preceding bytes of the block are in memory.
    private func mustStoreInMemory(at offset: Int64) -> Bool {
        guard storesOnDisk else { return true }
        let start = Block.roundDown(offset)
        return offset > start && memory.isInUse && memory.file.contains(start..<offset)
    }

    private func makeMemory(for range: Range<Int64>, _ isAwaited: Bool) -> ReservedSpace {
        // The range is stored block by block, so that bytes go to the disk again as soon as it accepts them.
        let part = range.lowerBound..<min(range.upperBound, Block.roundDown(range.lowerBound) + Block.size)
        let needed = memory.missingByteCount(in: part)
        if case .reserved(let reservation) = memory.reserve(needed) { return ReservedSpace(part, .memory, reservation) }
        // More memory than needed is freed, so that not every block requires an eviction.
        while isAwaited, owner?.makeMemory(max(needed, 4 * Block.size)) ?? false {
            if case .reserved(let reservation) = memory.reserve(needed) {
                return ReservedSpace(part, .memory, reservation)
            }
        }
        return isAwaited ? ReservedSpace(part, .memory, memory.reserveRegardless(needed)) : ReservedSpace(range, .none)
    }

    /// Stores bytes in the space that was reserved for them. They are readable when this method returns.
    ///
    /// - Parameters:
    ///   - bytes: The bytes. Bytes outside the reservation are ignored.
    ///   - offset: The offset of the first byte.
    ///   - space: The result of ``reserveSpace(for:isAwaited:isUrgent:)`` for a range that starts at `offset`.
    /// - Throws: ``CacheError`` with code `invalidArgument` if the bytes exceed the length.
    package func store(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, in space: inout ReservedSpace
    ) throws -> StoringResult {
        guard !isRetired.load(ordering: .acquiring) else { return .retired }
        let end = min(offset + Int64(bytes.count), space.range.upperBound)
        guard space.range.contains(offset), offset < end else { return .stored(offset..<offset) }
        let part = UnsafeRawBufferPointer(rebasing: bytes[..<Int(end - offset)])
        recordMove()
        do {
            switch space.place {
            case .none: return .noSpace
            case .retired: return .retired
            case .disk: return try storeOnDisk(part, at: offset, &space)
            case .memory: return try storeInMemory(part, at: offset, &space)
            }
        } catch let missing as MissingBytes {
            recordInvalidated(missing.invalidated)
            let start = Block.roundDown(offset)
            return start < offset ? .prefixInvalidated(start..<offset) : .stored(offset..<offset)
        }
    }

    private func storeOnDisk(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ space: inout ReservedSpace
    ) throws -> StoringResult {
        guard let disk else { return .stored(offset..<offset) }
        let reserved = space.reservation.remaining
        var left = reserved
        defer {
            space.reservation.claim(reserved - left)
            if left < reserved { owner?.recordChange(of: self) }
        }
        do {
            guard try disk.store(bytes, at: offset, space: &left) else { return .stored(offset..<offset) }
        } catch let error as CacheError where error.code == .invalidArgument {
            throw error
        } catch let error as CacheError where error.code == .closed {
            return .retired
        } catch let error as CacheError {
            ledger.recordWrite(hasFailed: true)
            pauseDiskStorage(error)
            return .stored(offset..<offset)
        }
        ledger.recordWrite(hasFailed: false)
        let stored = offset..<offset + Int64(bytes.count)
        if disk.completesBlock(in: stored) {
            owner?.recordCompletion(of: self)
            if !isProven.load(ordering: .acquiring) { prove() }
        }
        return .stored(stored)
    }

    private func storeInMemory(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ space: inout ReservedSpace
    ) throws -> StoringResult {
        let start = Block.roundDown(offset)
        var prefix: [UInt8] = []
        let isBegun = start == offset || memory.file.contains(start..<offset)
        if !isBegun, isDiskSkipped {
            return .prefixInvalidated(start..<offset)
        }
        if !isBegun, let disk, disk.contains(start..<offset) {
            // The part of the block on disk is copied, because a block is stored either on disk or in memory.
            prefix = [UInt8](repeating: 0, count: Int(offset - start))
            do {
                try prefix.withUnsafeMutableBytes { try disk.read(start..<offset, into: $0) }
            } catch let error as CacheError {
                guard error.code != .closed else { return .retired }
                // The disk neither accepts new bytes nor returns these bytes. The block is discarded, because playback
                // would otherwise stall.
                throw MissingBytes(invalidated: disk.blocks.invalidate(start..<offset), range: start..<offset)
            }
        }
        let stored = offset..<offset + Int64(bytes.count)
        let isStored = try memory.store(bytes, at: offset, after: prefix, &space.reservation)
        return .stored(isStored ? stored : offset..<offset)
    }

    /// Ends the transfer that has stored bytes up to `position`. The stored part of its last block gets a checksum.
    package func endWriting(at position: Int64) {
        if let missing = disk?.endWriting(at: position) {
            // Bytes that are now in memory are not missing.
            let lost = missing.invalidated.filter { !memory.file.contains($0.clamped(to: missing.range)) }
            recordInvalidated(lost, cause: missing.cause)
        }
        memory.file.endWriting(at: position)
        recordMove()
        owner?.recordStoringEnded(of: self)
    }
}

/// Space that is reserved for bytes, either on disk, as part of the capacity, or in memory.
///
/// The unused part is returned when the reservation ends.
package struct ReservedSpace: ~Copyable, Sendable {
    enum Place: Sendable {
        case disk, memory
        /// There is no space now, and no reader is waiting for the bytes.
        case none
        /// The version is no longer in the cache.
        case retired
    }

    /// The reserved range. It may be shorter than the requested range.
    package let range: Range<Int64>
    let place: Place
    var reservation: Reservation

    /// Whether the space is part of the cache's capacity, instead of only in memory.
    package var isInCache: Bool { if case .disk = place { true } else { false } }

    init(_ range: Range<Int64>, _ place: Place, _ reservation: consuming Reservation = Reservation()) {
        self.range = range
        self.place = place
        self.reservation = reservation
    }
}

/// The bytes of a version that are only in memory, because the disk does not accept them.
///
/// They have no checksums and no record, and are evicted as soon as no reader is near them.
final class GenerationMemory: Sendable {
    /// The bytes.
    let file: MediaFile
    private let pages = MemoryFile()
    /// The account of this kind of memory for the whole cache.
    private let ledger: Ledger
    /// A lock that makes storing and evicting mutually exclusive, so that each page is counted once.
    private let turn = Mutex(())
    private let isUsed = Atomic(false)

    init(length: Int64?, ledger: Ledger) {
        file = MediaFile(file: PooledFile(pages), sealer: nil, length: length)
        self.ledger = ledger
    }

    /// Whether there may be bytes in memory.
    var isInUse: Bool { isUsed.load(ordering: .acquiring) }

    /// The ranges that are in memory.
    var storedRanges: ByteRangeSet { isInUse ? file.storedRanges : ByteRangeSet() }

    /// The memory in use, in bytes.
    var byteCount: Int64 { pages.byteCount }

    /// Returns the additional memory that `range` needs, in bytes.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        Int64(pages.missingPageCount(in: range)) * MemoryFile.pageSize
    }

    /// Reserves memory, if the limit allows it.
    func reserve(_ count: Int64) -> ReservationResult { ledger.reserve(count) }

    /// Reserves memory, even beyond the limit.
    func reserveRegardless(_ count: Int64) -> Reservation { ledger.reserveRegardless(count) }

    /// Stores bytes in memory.
    ///
    /// - Parameters:
    ///   - prefix: The bytes that precede `bytes` in their block, and that are on disk. A block is either on disk or in
    ///     memory.
    ///   - reservation: The memory that is reserved for the bytes.
    /// - Returns: `false`, without storing anything, if more memory would be needed. A page that existed when the
    ///   memory was reserved may have been released since.
    func store(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, after prefix: [UInt8], _ reservation: inout Reservation
    ) throws -> Bool {
        try turn.withLock { _ in
            let before = pages.byteCount
            let needed = missingByteCount(in: offset..<offset + Int64(bytes.count))
            guard needed <= reservation.remaining else { return false }
            isUsed.store(true, ordering: .releasing)
            defer { reservation.claim(pages.byteCount - before) }
            if !prefix.isEmpty { try prefix.withUnsafeBytes { try file.store($0, at: offset - Int64(prefix.count)) } }
            try file.store(bytes, at: offset)
            return true
        }
    }

    /// Evicts ranges from memory.
    func evict(_ ranges: [Range<Int64>]) {
        turn.withLock { _ in
            let before = pages.byteCount
            // In memory, freeing a range never fails.
            for range in ranges { _ = file.evict(range) }
            ledger.releaseClaim(before - pages.byteCount)
            if pages.byteCount == 0 { isUsed.store(false, ordering: .releasing) }
        }
    }

    /// Evicts everything, even bytes in a block whose transfer has not ended.
    func evictAll() {
        file.endAllWriting()
        if let bounds = file.storedRanges.bounds { evict([bounds]) }
    }
}
