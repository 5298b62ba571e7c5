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
    /// - Throws: ``CacheError`` if the disk refuses, or the range lies beyond the length;
    ///   ``BadBlocks`` if what an earlier process left of the first block is not what it sealed: the
    ///   block is dropped, and its bytes have to be fetched from its start;
    ///   ``BadBlocks`` without indices if bytes of the block before `offset` are missing.
    package func land(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        _ = try land(bytes, at: offset, room: .max)
    }

    /// As ``land(_:at:)``, for bytes of which at most `room` may be new, since so much room has been reserved.
    ///
    /// - Returns: How many of the bytes were new; nil, and nothing is written, if they are more than `room`: some that
    ///   were there when it was reserved have gone since.
    package func land(_ bytes: UnsafeRawBufferPointer, at offset: Int64, room: Int64) throws -> Int64? {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard !overflow, offset >= 0 else {
            throw CacheError(.invalidArgument, "\(bytes.count) bytes can't land at \(offset).")
        }
        guard !bytes.isEmpty else { return 0 }
        return try writer.withLock { writer in
            let stretches = try map.withLock { map in try map.planLanding(offset..<end) }
            let count = stretches.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
            guard count <= room else { return nil }
            for stretch in stretches {
                let part = bytes[Int(stretch.lowerBound - offset)..<Int(stretch.upperBound - offset)]
                try land(UnsafeRawBufferPointer(rebasing: part), stretch, &writer)
            }
            return count
        }
    }

    /// Writes one stretch that has not landed at all.
    private func land(
        _ bytes: UnsafeRawBufferPointer, _ stretch: Range<Int64>, _ writer: inout Writer
    ) throws {
        let first = Block.index(of: stretch.lowerBound)
        let landedBefore = Int(stretch.lowerBound - Block.start(of: first))
        if sealer != nil {
            if landedBefore == 0 {
                writer.tails[first] = nil
            } else if writer.tails[first]?.count != landedBefore {
                writer.tails[first] = try loadTail(first, count: landedBefore)
            }
        }
        try file.write(bytes, at: stretch.lowerBound)

        var completed: [BlockRecord] = []
        if let sealer {
            for index in Block.indices(touching: stretch) {
                let part = stretch.clamped(to: Block.range(of: index))
                let places = Int(part.lowerBound - stretch.lowerBound)..<Int(part.upperBound - stretch.lowerBound)
                let new = UnsafeRawBufferPointer(rebasing: bytes[places])
                if let record = try take(new, at: part, sealer, &writer) { completed.append(record) }
            }
        }
        map.withLock { $0.land(stretch, completing: completed) }
    }

    /// Adds bytes of one block to its tail, or seals the block if they complete it.
    private func take(
        _ bytes: UnsafeRawBufferPointer, at part: Range<Int64>, _ sealer: BlockSealer, _ writer: inout Writer
    ) throws -> BlockRecord? {
        let index = Block.index(of: part.lowerBound)
        let isComplete = map.withLock { $0.isComplete(index, count: part.upperBound - Block.start(of: index)) }
        if isComplete, part.lowerBound == Block.start(of: index) {
            return try seal(bytes, index, sealer)
        }
        // Appended in place: taken out of the dictionary, the buffer has one owner and is not copied.
        var tail = writer.tails.removeValue(forKey: index) ?? []
        tail.reserveCapacity(Int(Block.size))
        tail.append(contentsOf: bytes)
        guard isComplete else {
            writer.tails[index] = tail
            return nil
        }
        return try tail.withUnsafeBytes { try seal($0, index, sealer) }
    }

    private func seal(
        _ bytes: UnsafeRawBufferPointer, _ index: Int64, _ sealer: BlockSealer
    ) throws -> BlockRecord {
        return try sealer.seal(bytes, index: index)
    }

    /// Reads back what has landed of a block whose buffer is gone, and checks it, so that bytes may be appended.
    private func loadTail(_ index: Int64, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: Int(Block.size)) { buffer, used in
            let block = UnsafeMutableRawBufferPointer(buffer)[..<count]
            try readBlock(index, into: UnsafeMutableRawBufferPointer(rebasing: block))
            used = count
        }
    }

    /// Reads and checks all that has landed of one block, which must be as much as `block` has room for.
    private func readBlock(_ index: Int64, into block: UnsafeMutableRawBufferPointer) throws {
        let record = map.withLock { $0.record(of: index) }
        let read = try file.read(into: block, at: Block.start(of: index))
        guard let record, let sealer, read == block.count, sealer.verifies(UnsafeRawBufferPointer(block), as: record)
        else {
            map.withLock { $0.forget([index]) }
            let start = Block.start(of: index)
            throw BadBlocks(indices: [index], range: start..<start + Int64(block.count))
        }
        map.withLock { $0.trust(record) }
    }

    // MARK: - Dropping

    /// What ``drop(_:)`` did.
    package struct Dropped: Sendable {
        /// Indices of the blocks that are holes now, ascending; the catalog has to forget them.
        package var indices: [Int64] = []
        /// Number of landed bytes that went.
        package var byteCount: Int64 = 0
        /// Set if the disk refused to give all of the space back; the blocks are dropped all the same.
        package var failure: CacheError?
    }

    /// Evicts the blocks whose landed bytes lie within `range`.
    ///
    /// A block goes whole or not at all. Those that a transfer is filling (until ``releaseTail(at:)``) and those that a
    /// ``MediaSlice`` covers stay. They are forgotten first, then given back to the disk, so that no reader sees the
    /// zeros of a hole. Tell the catalog afterwards; should that get lost, their seals show what happened.
    package func drop(_ range: Range<Int64>) -> Dropped {
        writer.withLock { writer in
            let runs = map.withLock { $0.drop(range, keeping: writer.tails.keys) }
            var dropped = Dropped()
            for run in runs {
                dropped.indices.append(contentsOf: Block.indices(touching: run))
                dropped.byteCount += run.upperBound - run.lowerBound
                do throws(CacheError) {
                    try file.punchHole(run.lowerBound..<Block.roundUp(run.upperBound))
                } catch {
                    dropped.failure = dropped.failure ?? error
                }
            }
            return dropped
        }
    }

    /// Gives back the disk space of whole blocks that hold no landed bytes: what an unclean end left behind.
    ///
    /// - Throws: ``CacheError`` if the disk refuses.
    package func freeUnclaimed() throws {
        try writer.withLock { _ in
            let size = try file.size()
            for run in map.withLock({ $0.emptyBlocks(below: size) }) { try file.punchHole(run) }
        }
    }

    /// Brings what has landed to the device. Never needed for correctness: seals find what did not get there.
    package func synchronize() throws(CacheError) { try file.synchronize() }
}
