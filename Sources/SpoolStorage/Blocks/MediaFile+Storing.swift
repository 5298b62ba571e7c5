import ByteRanges
import Synchronization

extension MediaFile {
    /// Writes bytes that the origin has sent. They are readable when this method returns.
    ///
    /// Bytes that are already stored are skipped. If the disk writes only part of a chunk, none of the chunk is
    /// claimed.
    ///
    /// - Parameters:
    ///   - bytes: The bytes, which may belong to any number of blocks.
    ///   - offset: The offset of the first byte. It must be inside stored bytes, at the end of the stored part of its
    ///     block, or at the start of a block.
    /// - Throws: ``CacheError`` if the disk rejects the bytes, or if the range is beyond the length. ``MissingBytes``
    ///   if bytes in the block before `offset` are missing, or if bytes that an earlier process stored can't be read or
    ///   are damaged. A damaged or unreadable block is discarded and must be fetched from its start.
    func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        var space = Int64.max
        _ = try store(bytes, at: offset, space: &space)
    }

    /// Writes bytes like ``store(_:at:)``. At most `space` of them may be new, because only that many bytes are
    /// reserved.
    ///
    /// - Parameter space: The number of bytes left in the reservation. It is reduced by the number of newly claimed
    ///   bytes.
    /// - Returns: `false`, without writing any bytes, if more than `space` bytes would be new. In that case, bytes that
    ///   were stored when the reservation was made have since been evicted.
    func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64, space: inout Int64) throws -> Bool {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard !overflow, offset >= 0 else {
            throw CacheError(
                .invalidArgument, "\(bytes.count.counted("byte")) can't be stored at offset \(offset.grouped)")
        }
        guard !bytes.isEmpty else { return true }
        return try writer.withLock { writer in
            let open = try openForWriting(offset..<end, &writer)
            let stretches = try blocks.withMap { map in try map.planWriting(offset..<end) }
            guard stretches.reduce(0, { $0 + $1.upperBound - $1.lowerBound }) <= space else { return false }
            for stretch in stretches {
                let part = bytes[Int(stretch.lowerBound - offset)..<Int(stretch.upperBound - offset)]
                do {
                    try store(UnsafeRawBufferPointer(rebasing: part), stretch, open, &writer, &space)
                } catch let error as CacheError {
                    // The disk may have written some of the bytes.
                    space -= writer.reclaimer.freeRefused(stretch, open)
                    throw error
                }
            }
            writer.reclaimer.freeRefusedAgain()
            return true
        }
    }

    /// Returns the file to write to, and creates it if it does not exist. If the file no longer exists, discards all
    /// blocks.
    private func openForWriting(_ range: Range<Int64>, _ writer: inout WriteState) throws -> OpenFile {
        if let open = try file.opened() {
            blocks.recordOpened(open)
            return open
        }
        writer.tails = [:]
        let lost = blocks.invalidateAll()
        guard lost.isEmpty else { throw MissingBytes(invalidated: lost, range: range) }
        let open = try file.openedOrCreated()
        blocks.recordOpened(open)
        return open
    }

    /// Writes a range of which no bytes are stored yet.
    private func store(
        _ bytes: UnsafeRawBufferPointer, _ stretch: Range<Int64>, _ open: OpenFile, _ writer: inout WriteState,
        _ space: inout Int64
    ) throws {
        let first = Block.index(of: stretch.lowerBound)
        let storedBefore = Int(stretch.lowerBound - Block.start(of: first))
        if sealer != nil, !isEncrypted {
            if storedBefore == 0 {
                writer.tails[first] = nil
            } else if writer.tails[first]?.count != storedBefore {
                writer.tails[first] = try loadTail(first, count: storedBefore)
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
                    if let encrypted {
                        try encrypted.take(new, at: part, writing: open, &writer.tails)
                    } else {
                        try take(new, at: part, sealer, &writer)
                    }
                if let record { completed.append(record) }
            }
        } else {
            let last = Block.index(of: stretch.upperBound - 1)
            for index in Block.indices(touching: stretch) { writer.tails[index] = nil }
            let count = stretch.upperBound - Block.start(of: last)
            if blocks.withMap({ !$0.isComplete(last, count: count) }) { writer.tails[last] = [] }
        }
        // The reservation becomes the claim.
        space -= try blocks.add(stretch, after: storedBefore, completing: completed)
        if isEncrypted { for record in completed { writer.tails[record.index] = nil } }
    }

    /// Adds bytes of one block to its tail, or creates the checksum of the block if they complete it.
    private func take(
        _ bytes: UnsafeRawBufferPointer, at part: Range<Int64>, _ sealer: BlockSealer, _ writer: inout WriteState
    ) throws -> BlockRecord? {
        let index = Block.index(of: part.lowerBound)
        let isComplete = blocks.withMap { $0.isComplete(index, count: part.upperBound - Block.start(of: index)) }
        if isComplete, part.lowerBound == Block.start(of: index) {
            // Another transfer may have left a buffer if its bytes in this block were discarded.
            writer.tails[index] = nil
            return try sealer.seal(bytes, index: index)
        }
        // The bytes are appended in place: outside the dictionary, the buffer has only one owner and is not copied. If
        // the new bytes start at the start of the block, its earlier bytes were evicted.
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

    /// Reads and checks the stored part of a block that no longer has a buffer, so that bytes can be appended to it.
    private func loadTail(_ index: Int64, count: Int) throws -> [UInt8] {
        let start = Block.start(of: index)
        let range = start..<start + Int64(count)
        return try [UInt8](unsafeUninitializedCapacity: Int(Block.size)) { buffer, used in
            let block = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count])
            let read = try blocks.read(into: block, at: start, of: range)
            guard let record = try blocks.seal(of: range), let sealer, read == count,
                sealer.verifies(UnsafeRawBufferPointer(block), as: record)
            else {
                throw MissingBytes(invalidated: blocks.invalidate(range), range: range)
            }
            blocks.withMap { $0.trust(record) }
            used = count
        }
    }
}
