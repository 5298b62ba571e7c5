import ByteRanges
import Synchronization

extension Generation {
    /// The result of storing bytes.
    package enum LandingResult: Sendable, Hashable {
        /// The bytes that are readable now. They may be fewer than were passed, or none. Reserve space again for the
        /// rest.
        case landed(Range<Int64>)
        /// Neither disk nor memory has space for the bytes now, and no reader waits for them.
        case noRoom
        /// The version has left the cache.
        case retired
        /// The stored part of the first byte's block is damaged, unreadable or missing. Fetch these bytes again first.
        case prefixInvalidated(Range<Int64>)
    }

    /// Reserves space for bytes of `range`, and evicts other media if necessary.
    ///
    /// It suspends only if media has to be evicted, and holds no thread while other tasks evict.
    ///
    /// - Parameters:
    ///   - isAwaited: Whether a reader waits for the bytes. If the disk has no space, the first block is stored in
    ///     memory. It evicts bytes that other readers have passed, and if necessary exceeds its limit by that block, so
    ///     that nothing hangs.
    ///   - isUrgent: Whether a player waits for the bytes, at the time of the call. If freeing space then takes long,
    ///     the first block goes through memory. A preload waits, because all of its bytes are to be stored.
    package func makeRoom(
        for range: Range<Int64>, isAwaited: Bool, isUrgent: @escaping @Sendable () -> Bool
    ) async -> Room {
        guard !isRetired.load(ordering: .acquiring), let owner else { return Room(range, .retired) }
        guard let disk, !mustLandInMemory(at: range.lowerBound) else { return makeMemory(for: range, isAwaited) }
        let missing = disk.missingByteCount(in: range)
        let rowBytes = missingRowBytes
        if case .reserved(let reservation) = ledger.reserve(missing, rowBytes: rowBytes) {
            noteRowClaim(rowBytes)
            return Room(range, .disk, reservation)
        }
        switch await owner.makeRoom(missing, rowBytes: rowBytes, isUrgent: isUrgent) {
        case .reserved(let reservation):
            noteRowClaim(rowBytes)
            return Room(range, .disk, reservation)
        case .late:
            // Only this block is not stored. The next one is, if there is space by then.
            let isAwaited = isAwaited || isUrgent()
            return isAwaited ? makeMemory(for: range, isAwaited) : Room(range, .none)
        case .full: break
        }
        guard isAwaited else { return Room(range, .none) }
        let limit = ledger.limit ?? 0
        reportLoss(
            CacheError(
                .capacityExceeded,
                "\(url) is played without being cached: the capacity of \(limit.counted("byte")) is in use",
                range: range)
        )
        return makeMemory(for: range, isAwaited)
    }

    /// Whether bytes at `offset` have to be stored in memory, because all bytes do, or because the preceding bytes of
    /// their block are in memory.
    private func mustLandInMemory(at offset: Int64) -> Bool {
        guard storesOnDisk else { return true }
        let start = Block.roundDown(offset)
        return offset > start && memory.isInUse && memory.file.contains(start..<offset)
    }

    private func makeMemory(for range: Range<Int64>, _ isAwaited: Bool) -> Room {
        // Block by block, so that bytes are stored on disk again as soon as it accepts them.
        let part = range.lowerBound..<min(range.upperBound, Block.roundDown(range.lowerBound) + Block.size)
        let needed = memory.missingByteCount(in: part)
        if case .reserved(let reservation) = memory.reserve(needed) { return Room(part, .memory, reservation) }
        // A little more than needed, so that this does not happen for each block.
        while isAwaited, owner?.makeMemory(max(needed, 4 * Block.size)) ?? false {
            if case .reserved(let reservation) = memory.reserve(needed) { return Room(part, .memory, reservation) }
        }
        return isAwaited ? Room(part, .memory, memory.reserveRegardless(needed)) : Room(range, .none)
    }

    /// Stores bytes in the space that was reserved for them. They are readable when this method returns.
    ///
    /// - Parameters:
    ///   - bytes: The bytes. Those outside of the reservation are ignored.
    ///   - offset: The offset of the first one.
    ///   - room: The result of ``makeRoom(for:isAwaited:)`` for a range that starts at `offset`.
    /// - Throws: ``CacheError`` with code `invalidArgument` if the bytes exceed the length.
    package func land(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, in room: inout Room
    ) throws -> LandingResult {
        guard !isRetired.load(ordering: .acquiring) else { return .retired }
        let end = min(offset + Int64(bytes.count), room.range.upperBound)
        guard room.range.contains(offset), offset < end else { return .landed(offset..<offset) }
        let part = UnsafeRawBufferPointer(rebasing: bytes[..<Int(end - offset)])
        noteMove()
        do {
            switch room.place {
            case .none: return .noRoom
            case .retired: return .retired
            case .disk: return try landOnDisk(part, at: offset, &room)
            case .memory: return try landInMemory(part, at: offset, &room)
            }
        } catch let missing as MissingBytes {
            noteInvalidated(missing.invalidated)
            let start = Block.roundDown(offset)
            return start < offset ? .prefixInvalidated(start..<offset) : .landed(offset..<offset)
        }
    }

    private func landOnDisk(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ room: inout Room
    ) throws -> LandingResult {
        guard let disk else { return .landed(offset..<offset) }
        let reserved = room.reservation.remaining
        var left = reserved
        defer {
            room.reservation.land(reserved - left)
            if left < reserved { owner?.noteChange(of: self) }
        }
        do {
            guard try disk.land(bytes, at: offset, room: &left) else { return .landed(offset..<offset) }
        } catch let error as CacheError where error.code == .invalidArgument {
            throw error
        } catch let error as CacheError where error.code == .closed {
            return .retired
        } catch let error as CacheError {
            stopKeeping(error)
            return .landed(offset..<offset)
        }
        let landed = offset..<offset + Int64(bytes.count)
        if disk.completesBlock(in: landed) {
            owner?.noteCompletion(of: self)
            if !isProven.load(ordering: .acquiring) { prove() }
        }
        return .landed(landed)
    }

    private func landInMemory(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ room: inout Room
    ) throws -> LandingResult {
        let start = Block.roundDown(offset)
        var prefix: [UInt8] = []
        let isBegun = start == offset || memory.file.contains(start..<offset)
        if !isBegun, isDiskPassedOver {
            return .prefixInvalidated(start..<offset)
        }
        if !isBegun, let disk, disk.contains(start..<offset) {
            // The part of the block on disk is copied, because a block is in one place.
            prefix = [UInt8](repeating: 0, count: Int(offset - start))
            do {
                try prefix.withUnsafeMutableBytes { try disk.read(start..<offset, into: $0) }
            } catch let error as CacheError {
                guard error.code != .closed else { return .retired }
                // The disk neither accepts bytes nor returns these. This block is discarded, because playback would
                // stall.
                throw MissingBytes(invalidated: disk.blocks.invalidate(start..<offset), range: start..<offset)
            }
        }
        let landed = offset..<offset + Int64(bytes.count)
        let isLanded = try memory.land(bytes, at: offset, after: prefix, &room.reservation)
        return .landed(isLanded ? landed : offset..<offset)
    }

    /// Ends the transfer that has stored bytes up to `position`. The stored part of its last block gets a checksum.
    package func endLanding(at position: Int64) {
        if let missing = disk?.endLanding(at: position) {
            // Bytes that are in memory by now are not missing.
            let lost = missing.invalidated.filter { !memory.file.contains($0.clamped(to: missing.range)) }
            noteInvalidated(lost, cause: missing.cause)
        }
        memory.file.endLanding(at: position)
        noteMove()
        owner?.noteLandingEnded(of: self)
    }
}

/// A reservation for bytes: of the capacity, or of memory.
///
/// The unused part is returned when the reservation ends.
package struct Room: ~Copyable, Sendable {
    enum Place: Sendable {
        case disk, memory
        /// There is no space now, and no reader waits for the bytes.
        case none
        /// The version has left the cache.
        case retired
    }

    /// The reserved range. It may be shorter than the requested range.
    package let range: Range<Int64>
    let place: Place
    var reservation: Reservation

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
    /// The account of such memory, of the whole cache.
    private let ledger: Ledger
    /// Storing and evicting take turns, so that each page is counted once.
    private let turn = Mutex(())
    private let isUsed = Atomic(false)

    init(length: Int64?, ledger: Ledger) {
        file = MediaFile(file: PooledFile(pages), sealer: nil, length: length)
        self.ledger = ledger
    }

    /// Whether there may be bytes.
    var isInUse: Bool { isUsed.load(ordering: .acquiring) }

    /// The ranges that are in memory.
    var landed: ByteRangeSet { isInUse ? file.landed : ByteRangeSet() }

    /// The memory in use, in bytes.
    var byteCount: Int64 { pages.byteCount }

    /// Returns the memory that `range` needs in addition, in bytes.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        Int64(pages.missingPageCount(in: range)) * MemoryFile.pageSize
    }

    /// Reserves memory, as far as the limit allows.
    func reserve(_ count: Int64) -> ReservationResult { ledger.reserve(count) }

    /// Reserves memory, even beyond the limit.
    func reserveRegardless(_ count: Int64) -> Reservation { ledger.reserveRegardless(count) }

    /// Stores bytes.
    ///
    /// - Parameters:
    ///   - prefix: The bytes before them in their block, which are on disk. A block is in one place.
    ///   - reservation: The memory that is reserved for them.
    /// - Returns: `false`, and nothing is stored, if more memory would be needed. A page that was there when it was
    ///   reserved may have been released since.
    func land(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, after prefix: [UInt8], _ reservation: inout Reservation
    ) throws -> Bool {
        try turn.withLock { _ in
            let before = pages.byteCount
            let needed = missingByteCount(in: offset..<offset + Int64(bytes.count))
            guard needed <= reservation.remaining else { return false }
            isUsed.store(true, ordering: .releasing)
            defer { reservation.land(pages.byteCount - before) }
            if !prefix.isEmpty { try prefix.withUnsafeBytes { try file.land($0, at: offset - Int64(prefix.count)) } }
            try file.land(bytes, at: offset)
            return true
        }
    }

    /// Evicts ranges.
    func evict(_ ranges: [Range<Int64>]) {
        turn.withLock { _ in
            let before = pages.byteCount
            // Memory frees everything.
            for range in ranges { _ = file.evict(range) }
            ledger.giveBack(before - pages.byteCount)
            if pages.byteCount == 0 { isUsed.store(false, ordering: .releasing) }
        }
    }

    /// Evicts everything, even bytes of a block whose transfer has not ended.
    func evictAll() {
        file.endAllLanding()
        if let bounds = file.landed.bounds { evict([bounds]) }
    }
}
