import Synchronization

extension MediaFile {
    /// Reads landed bytes.
    ///
    /// Blocks that an earlier process left are checked against their seals the first time; afterwards a read costs a
    /// `pread` and some tens of nanoseconds.
    ///
    /// - Parameters:
    ///   - range: Half-open; all of it must have landed.
    ///   - buffer: Takes the bytes; must have room for them.
    /// - Throws: ``BadBlocks`` without indices if some of the range has not landed, or was dropped meanwhile;
    ///   ``BadBlocks`` if bytes are not what was received, or the file is too short to hold them: the
    ///   blocks are holes now; ``CacheError`` if the disk fails.
    package func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard !range.isEmpty else { return }
        let count = range.upperBound.subtractingReportingOverflow(range.lowerBound)
        guard range.lowerBound >= 0, !count.overflow, count.partialValue <= buffer.count else {
            throw CacheError(.invalidArgument, "A buffer of \(buffer.count) bytes can't take \(range).")
        }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(count.partialValue)])
        while true {
            let reading = try map.withLock { map in try map.planReading(range) }
            let read = try file.read(into: buffer, at: range.lowerBound)
            if read == buffer.count, reading.unverified.isEmpty {
                if map.withLock({ $0.drops == reading.drops }) { return }
            } else if try settle(reading, of: range, UnsafeRawBufferPointer(rebasing: buffer[..<read])) {
                return
            }
        }
    }

    /// Proves that `range` is what was received and keeps it from being dropped while the slice lives, so that it can
    /// be handed on without passing through memory (`sendfile`).
    ///
    /// - Throws: As ``read(_:into:)`` does.
    package func slice(_ range: Range<Int64>) throws -> MediaSlice {
        guard Block.isAddressable(range) else { throw BadBlocks(range: range) }
        let slice = MediaSlice(range, of: self)
        while true {
            let reading = try map.withLock { map in try map.planReading(range) }
            if reading.unverified.isEmpty { return slice }
            if try settle(reading, of: range, nil) { return slice }
        }
    }

    /// Checks stored blocks against `records`, all of them, whether trusted or not; for a cache's own check-up.
    ///
    /// Records of blocks that have not landed (any more) are passed over. A block that can't be read counts as bad.
    ///
    /// - Returns: The indices of bad blocks, which are holes now.
    package func verify(_ records: [BlockRecord]) -> [Int64] {
        var bad: [Int64] = []
        for record in records where record.isPlausible {
            while true {
                guard let reading = map.withLock({ $0.planVerifying(record) }) else { break }
                let isGood = (try? verifies(record)) ?? false
                let isSettled = map.withLock {
                    $0.finish(reading, good: isGood ? [record] : [], bad: isGood ? [] : [record.index])
                }
                guard isSettled else { continue }
                if !isGood { bad.append(record.index) }
                break
            }
        }
        return bad
    }

    /// Evaluates what a read brought: `bytes` are those of `range`, fewer if the file ended early; nil if they are not
    /// read, only to be checked.
    ///
    /// - Returns: False if bytes went away meanwhile and the read has to be done again.
    private func settle(
        _ reading: BlockMap.Reading, of range: Range<Int64>, _ bytes: UnsafeRawBufferPointer?
    ) throws -> Bool {
        let readEnd = range.lowerBound + Int64(bytes?.count ?? 0)
        var good: [BlockRecord] = []
        var bad = bytes == nil ? [] : Set(Block.indices(touching: readEnd..<range.upperBound))
        for record in reading.unverified where !bad.contains(record.index) {
            let isGood: Bool
            if let bytes, range.lowerBound <= record.range.lowerBound, record.range.upperBound <= readEnd {
                let start = Int(record.range.lowerBound - range.lowerBound)
                let block = UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(record.length)])
                isGood = sealer?.verifies(block, as: record) ?? true
            } else {
                isGood = try verifies(record)
            }
            if isGood { good.append(record) } else { bad.insert(record.index) }
        }
        let indices = bad.sorted()
        guard map.withLock({ $0.finish(reading, good: good, bad: indices) }) else { return false }
        guard indices.isEmpty else { throw BadBlocks(indices: indices, range: range) }
        return true
    }

    /// Reads one block's sealed bytes and checks them.
    private func verifies(_ record: BlockRecord) throws -> Bool {
        guard let sealer else { return true }
        return try withUnsafeTemporaryAllocation(byteCount: Int(record.length), alignment: 16) { block in
            let read = try file.read(into: block, at: record.range.lowerBound)
            return read == block.count && sealer.verifies(UnsafeRawBufferPointer(block), as: record)
        }
    }
}
