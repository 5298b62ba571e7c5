import ByteRanges
import Synchronization

extension Generation {
    /// What became of bytes that were to land.
    package enum LandingResult: Sendable, Hashable {
        /// These are readable now. It may be fewer than were given, also none: make room again for the rest.
        case landed(Range<Int64>)
        /// Neither disk nor memory takes them now, and nobody waits for them.
        case noRoom
        /// The generation is no longer the cache's.
        case retired
        /// What was stored of the first byte's block is bad, unreadable or gone: fetch these bytes again first.
        case prefixInvalidated(Range<Int64>)
    }

    /// Finds room for bytes of `range` that are about to land, evicting what may go.
    ///
    /// Suspends only when something has to be evicted; no thread is held while others evict.
    ///
    /// - Parameter isAwaited: A reader waits for them: where the disk has no room, memory takes the first block, evicts
    ///   what other readers left there, and goes beyond its limit by that block if need be, so that nothing hangs.
    package func makeRoom(for range: Range<Int64>, isAwaited: Bool) async -> Room {
        guard !isRetired.load(ordering: .acquiring), let owner else { return Room(range, .retired) }
        guard let disk, !mustLandInMemory(at: range.lowerBound) else { return makeMemory(for: range, isAwaited) }
        let missing = disk.missingByteCount(in: range)
        let rowBytes = missingRowBytes
        if case .reserved(let reservation) = ledger.reserve(missing, rowBytes: rowBytes) {
            noteRowClaim(rowBytes)
            return Room(range, .disk, reservation)
        }
        if case .reserved(let reservation) = await owner.makeRoom(missing, rowBytes: rowBytes) {
            noteRowClaim(rowBytes)
            return Room(range, .disk, reservation)
        }
        guard isAwaited else { return Room(range, .none) }
        let limit = ledger.limit ?? 0
        reportLoss(
            CacheError(
                .capacityExceeded,
                "\(url) is played without being kept: the capacity of \(limit.counted("byte")) is in use", range: range)
        )
        return makeMemory(for: range, isAwaited)
    }

    /// Whether bytes at `offset` have to go to memory: all do, or all before them of their block is there.
    private func mustLandInMemory(at offset: Int64) -> Bool {
        guard state.withLock({ $0.isKept }) else { return true }
        let start = Block.roundDown(offset)
        return offset > start && memory.isInUse && memory.file.contains(start..<offset)
    }

    private func makeMemory(for range: Range<Int64>, _ isAwaited: Bool) -> Room {
        // Block by block, so that bytes go to disk again as soon as it takes them.
        let part = range.lowerBound..<min(range.upperBound, Block.roundDown(range.lowerBound) + Block.size)
        let needed = memory.missingByteCount(in: part)
        if case .reserved(let reservation) = memory.reserve(needed) { return Room(part, .memory, reservation) }
        // A little more than asked for, so that not every block comes here.
        while isAwaited, owner?.makeMemory(max(needed, 4 * Block.size)) ?? false {
            if case .reserved(let reservation) = memory.reserve(needed) { return Room(part, .memory, reservation) }
        }
        return isAwaited ? Room(part, .memory, memory.reserveRegardless(needed)) : Room(range, .none)
    }

    /// Lands bytes in the room that was made for them; when it returns, they are readable.
    ///
    /// - Parameters:
    ///   - bytes: The bytes; what the room does not cover is left.
    ///   - offset: Where the first one belongs.
    ///   - room: From ``makeRoom(for:isAwaited:)``, for a range that begins at `offset`.
    /// - Throws: ``CacheError`` with code `invalidArgument` if the bytes lie beyond the length.
    package func land(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, in room: inout Room
    ) throws -> LandingResult {
        guard !isRetired.load(ordering: .acquiring) else { return .retired }
        let end = min(offset + Int64(bytes.count), room.range.upperBound)
        guard room.range.contains(offset), offset < end else { return .landed(offset..<offset) }
        let part = UnsafeRawBufferPointer(rebasing: bytes[..<Int(end - offset)])
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
        if !isBegun, isDiskPassedOver.load(ordering: .acquiring) {
            return .prefixInvalidated(start..<offset)
        }
        if !isBegun, let disk, disk.contains(start..<offset) {
            // What of the block is on disk is taken along: a block is in one place.
            prefix = [UInt8](repeating: 0, count: Int(offset - start))
            do {
                try prefix.withUnsafeMutableBytes { try disk.read(start..<offset, into: $0) }
            } catch let error as CacheError {
                guard error.code != .closed else { return .retired }
                // The disk neither takes bytes nor gives these back: this one block is given up, or nothing would go on.
                throw MissingBytes(invalidated: disk.blocks.invalidate(start..<offset), range: start..<offset)
            }
        }
        let landed = offset..<offset + Int64(bytes.count)
        let isLanded = try memory.land(bytes, at: offset, after: prefix, &room.reservation)
        return .landed(isLanded ? landed : offset..<offset)
    }

    /// The transfer that landed up to `position` brings no more: what it leaves of a block is sealed.
    package func endLanding(at position: Int64) {
        if let missing = disk?.endLanding(at: position) {
            // What memory has meanwhile is not missing.
            let lost = missing.invalidated.filter { !memory.file.contains($0.clamped(to: missing.range)) }
            noteInvalidated(lost, cause: missing.cause)
        }
        memory.file.endLanding(at: position)
        owner?.noteLandingEnded(of: self)
    }
}
