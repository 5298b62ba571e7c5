import ByteRanges
import Synchronization

extension MediaFile {
    /// Writes bytes that the origin has sent; when it returns, they are readable.
    ///
    /// Bytes that have landed before are skipped, not rewritten. Of a chunk that the disk takes in part only, nothing
    /// is claimed.
    ///
    /// - Parameters:
    ///   - bytes: The bytes; any number, over any number of blocks.
    ///   - offset: Where the first one belongs: in landed bytes, at the landed end of its block, or at a block's start.
    /// - Throws: ``CacheError`` if the disk refuses, or the range lies beyond the length; ``MissingBytes`` if what an
    ///   earlier process left of the first block can't be read or is not what it sealed: the block is dropped, and its
    ///   bytes have to be fetched from its start; or if bytes of the block before `offset` are missing.
    func land(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        var room = Int64.max
        _ = try land(bytes, at: offset, room: &room)
    }

    /// As ``land(_:at:)``, for bytes of which at most `room` may be new, since so much room has been reserved.
    ///
    /// - Parameter room: What is left of it: each new byte that counts takes one away.
    /// - Returns: False, and nothing is written, if more than `room` would be new: some that were there when it was
    ///   reserved have gone since.
    func land(_ bytes: UnsafeRawBufferPointer, at offset: Int64, room: inout Int64) throws -> Bool {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard !overflow, offset >= 0 else {
            throw CacheError(.invalidArgument, "\(bytes.count.counted("byte")) can't land at \(offset.grouped)")
        }
        guard !bytes.isEmpty else { return true }
        return try writer.withLock { writer in
            let open = try openForLanding(offset..<end, &writer)
            let stretches = try withMap { map in try map.planLanding(offset..<end) }
            guard stretches.reduce(0, { $0 + $1.upperBound - $1.lowerBound }) <= room else { return false }
            for stretch in stretches {
                let part = bytes[Int(stretch.lowerBound - offset)..<Int(stretch.upperBound - offset)]
                try land(UnsafeRawBufferPointer(rebasing: part), stretch, open, &writer, &room)
            }
            return true
        }
    }

    /// The file to write to, made if there is none; but if there should be one, all that had landed is lost.
    private func openForLanding(_ range: Range<Int64>, _ writer: inout Writer) throws -> OpenFile {
        if let open = try file.opened() { return open }
        writer.tails = [:]
        let lost = withMap { $0.invalidateAll() }
        guard lost.isEmpty else { throw MissingBytes(invalidated: lost.map(Self.wholeBlocks), range: range) }
        return try file.openedOrCreated()
    }

    /// Writes one stretch that has not landed at all.
    private func land(
        _ bytes: UnsafeRawBufferPointer, _ stretch: Range<Int64>, _ open: OpenFile, _ writer: inout Writer,
        _ room: inout Int64
    ) throws {
        let first = Block.index(of: stretch.lowerBound)
        let landedBefore = Int(stretch.lowerBound - Block.start(of: first))
        if sealer != nil, !isEncrypted {
            if landedBefore == 0 {
                writer.tails[first] = nil
            } else if writer.tails[first]?.count != landedBefore {
                writer.tails[first] = try loadTail(first, count: landedBefore)
            }
        }
        if !isEncrypted { try open.file.write(bytes, at: stretch.lowerBound) }

        var completed: [BlockRecord] = []
        if let sealer {
            for index in Block.indices(touching: stretch) {
                let part = stretch.clamped(to: Block.range(of: index))
                let places = Int(part.lowerBound - stretch.lowerBound)..<Int(part.upperBound - stretch.lowerBound)
                let new = UnsafeRawBufferPointer(rebasing: bytes[places])
                let record =
                    isEncrypted
                    ? try take(new, at: part, sealer, writing: open, &writer) : try take(new, at: part, sealer, &writer)
                if let record { completed.append(record) }
            }
        } else {
            let last = Block.index(of: stretch.upperBound - 1)
            for index in Block.indices(touching: stretch) { writer.tails[index] = nil }
            let count = stretch.upperBound - Block.start(of: last)
            if withMap({ !$0.isComplete(last, count: count) }) { writer.tails[last] = [] }
        }
        try ground.withLock { ground in
            // A reader may have found the block's beginning bad since.
            guard landedBefore == 0 || ground.map.landed.contains(stretch.lowerBound - 1) else {
                let start = Block.start(of: first)
                throw MissingBytes(range: start + ground.map.landedCount(of: first)..<stretch.lowerBound)
            }
            ground.map.land(stretch, completing: completed)
            for record in completed { ground.landing[record.index] = nil }
            // The reservation becomes the claim.
            if ground.isCounted { room -= stretch.upperBound - stretch.lowerBound }
        }
        if isEncrypted { for record in completed { writer.tails[record.index] = nil } }
    }

    /// Adds bytes of one block to its tail, or seals the block if they complete it.
    private func take(
        _ bytes: UnsafeRawBufferPointer, at part: Range<Int64>, _ sealer: BlockSealer, _ writer: inout Writer
    ) throws -> BlockRecord? {
        let index = Block.index(of: part.lowerBound)
        let isComplete = withMap { $0.isComplete(index, count: part.upperBound - Block.start(of: index)) }
        if isComplete, part.lowerBound == Block.start(of: index) {
            return try sealer.seal(bytes, index: index)
        }
        // Appended in place: taken out of the dictionary, the buffer has one owner and is not copied. What was there of a
        // block that begins here is of bytes that went away.
        var tail = writer.tails.removeValue(forKey: index) ?? []
        if part.lowerBound == Block.start(of: index) { tail.removeAll(keepingCapacity: true) }
        tail.reserveCapacity(Int(Block.size))
        tail.append(contentsOf: bytes)
        guard isComplete else {
            writer.tails[index] = tail
            return nil
        }
        return try tail.withUnsafeBytes { try sealer.seal($0, index: index) }
    }

    /// Reads back what has landed of a block whose buffer is gone, and checks it, so that bytes may be appended.
    private func loadTail(_ index: Int64, count: Int) throws -> [UInt8] {
        let start = Block.start(of: index)
        let range = start..<start + Int64(count)
        return try [UInt8](unsafeUninitializedCapacity: Int(Block.size)) { buffer, used in
            let block = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count])
            let read = try readFile(into: block, at: start, of: range)
            guard let record = try seal(of: range), let sealer, read == count,
                sealer.verifies(UnsafeRawBufferPointer(block), as: record)
            else {
                withMap { $0.invalidate(range) }
                throw MissingBytes(invalidated: [Self.wholeBlocks(range)], range: range)
            }
            withMap { $0.trust(record) }
            used = count
        }
    }

    // MARK: - Evicting

    /// What ``evict(_:)`` did.
    struct Evicted: Sendable {
        /// The landed bytes that are holes now, by run of neighbouring blocks.
        var ranges: [Range<Int64>] = []
        /// Set if the disk did not free all of the space. The blocks of that space are forgotten all the same, and stay
        /// claimed until the file is removed.
        var failure: CacheError?

        /// Number of landed bytes that went.
        var byteCount: Int64 { ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound } }
    }

    /// Evicts the blocks whose landed bytes lie within `range`.
    ///
    /// A block goes whole or not at all. Those that a transfer is filling (until ``endLanding(at:)``) and those that a
    /// slice holds stay; all stay if another cache, closed since, still has readers on the file. They are forgotten
    /// first, then given back to the disk, so that no reader sees the zeros of a hole. Tell the catalog afterwards;
    /// should that get lost, their seals show what happened.
    ///
    /// After the disk has once refused to free space, no more blocks are evicted: only removing the file frees it.
    func evict(_ range: Range<Int64>) -> Evicted {
        writer.withLock { writer in
            var evicted = Evicted()
            if let failure = writer.punchFailure {
                evicted.failure = failure
                return evicted
            }
            let open: OpenFile
            do throws(CacheError) {
                guard let opened = try file.opened() else {
                    let (ranges, claim) = takeFromMap(range, keeping: writer.tails.keys)
                    evicted.ranges = ranges
                    giveBack(claim)
                    return evicted
                }
                guard try opened.file.setMark(.exclusive) else { return evicted }
                open = opened
            } catch {
                evicted.failure = error
                return evicted
            }
            defer { clearMark(of: open) }
            let (runs, claim) = takeFromMap(range, keeping: writer.tails.keys)
            do throws(CacheError) {
                for run in runs {
                    try open.file.punchHole(run.lowerBound..<Block.roundUp(run.upperBound))
                    evicted.ranges.append(run)
                }
            } catch {
                evicted.failure = error
                writer.punchFailure = error
            }
            // Not before the disk has freed them: other bytes are written in their place.
            noteFreed(min(claim, evicted.byteCount), of: claim)
            return evicted
        }
    }

    /// Gives back what the disk has freed of a claim; the rest stays claimed.
    private func noteFreed(_ freed: Int64, of claim: Int64) {
        let gone = ground.withLock { ground in
            // A file that has left the cache claims nothing more.
            guard ground.isCounted else { return claim }
            ground.unfreed += claim - freed
            return freed
        }
        giveBack(gone)
    }

    /// Marks the file, if it is open, as read by somebody whose cache is being closed.
    func markAsRead() {
        // Without the mark another cache that opens the directory might free what is read here: then it is closed.
        if let open = file.openNow, (try? open.file.setMark(.shared)) != true { file.close() }
    }

    func clearMark(of open: OpenFile) {
        // Giving up a mark of one's own can't fail in a way that matters: it ends with the descriptor at the latest.
        _ = try? open.file.setMark(.none)
    }
}
