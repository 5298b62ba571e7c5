import ByteRanges
import Foundation
import Synchronization

/// An encrypted media file: what lies in it is read by whole blocks, and a block that is being received is in memory until
/// it is complete or its transfer ends.
extension MediaFile {
    /// Whether what lies in the file is enciphered.
    var isEncrypted: Bool { sealer?.format.isEncrypted ?? false }

    /// Landed bytes that are only in memory: of blocks that transfers are filling.
    var memoryByteCount: Int64 {
        ground.withLock { ground in
            ground.landing.keys.reduce(0) { sum, index in
                sum + max(0, ground.map.landedCount(of: index) - Int64(ground.map.seal(of: index)?.length ?? 0))
            }
        }
    }

    // MARK: - Landing

    /// Takes the bytes of one block; enciphers and writes it if they complete it.
    ///
    /// - Returns: The block's record, if it is complete.
    func take(
        _ bytes: UnsafeRawBufferPointer, at part: Range<Int64>, _ sealer: BlockSealer, writing open: OpenFile,
        _ writer: inout Writer
    ) throws -> BlockRecord? {
        let index = Block.index(of: part.lowerBound)
        let start = Block.start(of: index)
        let isComplete = withMap { $0.isComplete(index, count: part.upperBound - start) }
        if isComplete, part.lowerBound == start { return try encrypt(bytes, index, sealer, open) }
        let block = try landingBlock(index, count: Int(part.lowerBound - start), sealer)
        block.append(bytes)
        writer.tails[index] = []
        guard isComplete else { return nil }
        return try encrypt(block.bytes(block.count), index, sealer, open)
    }

    private func encrypt(
        _ bytes: UnsafeRawBufferPointer, _ index: Int64, _ sealer: BlockSealer, _ open: OpenFile
    ) throws -> BlockRecord {
        try sealer.encrypt(bytes, index: index) { try open.file.write($0, at: Block.start(of: index)) }
    }

    /// The buffer of a block of which `count` bytes have landed.
    private func landingBlock(_ index: Int64, count: Int, _ sealer: BlockSealer) throws -> LandingBlock {
        let known = ground.withLock { ground in ground.landing[index] }
        // One with more in it is of a write that failed.
        if let known, known.count == count, count > 0 { return known }
        let block = LandingBlock()
        if count > 0 {
            let landed = Block.start(of: index)..<Block.start(of: index) + Int64(count)
            let bytes = try known.map { Data($0.bytes(count)) } ?? openBlock(landed, sealer)
            bytes.withUnsafeBytes { block.append($0) }
        }
        ground.withLock { $0.landing[index] = block }
        return block
    }

    /// Enciphers and writes what there is of a block that nobody goes on with; its buffer goes.
    ///
    /// - Returns: What is lost by that, since the disk refuses it.
    func endLandingBlock(_ index: Int64) -> MissingBytes? {
        let found = ground.withLock { ground in
            ground.landing[index].map { ($0, ground.map.landedCount(of: index), ground.map.seal(of: index)?.length) }
        }
        guard let (block, count, sealed) = found, let sealer else { return nil }
        let landed = Block.start(of: index)..<Block.start(of: index) + count
        guard count > 0, Int64(sealed ?? 0) < count else {
            ground.withLock { $0.landing[index] = nil }
            return nil
        }
        do {
            let open = try openFile(for: landed)
            let record = try encrypt(block.bytes(Int(count)), index, sealer, open)
            ground.withLock { ground in
                if ground.map.landedCount(of: index) == count { ground.map.sealPrefix(record) }
                ground.landing[index] = nil
            }
            return nil
        } catch let missing as MissingBytes {
            return missing
        } catch {
            withMap { $0.invalidate(landed) }
            return MissingBytes(
                invalidated: [Self.wholeBlocks(landed)], range: landed,
                cause: error as? CacheError ?? CacheError(.storage, "\(error)", range: landed))
        }
    }

    // MARK: - Reading

    /// Whether a block has been enciphered anew since a record was made of it, or is about to be, with more in it.
    func isSuperseded(_ record: BlockRecord) -> Bool {
        guard isEncrypted else { return false }
        return ground.withLock { ground in
            ground.landing[record.index] != nil || ground.map.seal(of: record.index) ?? record != record
        }
    }

    /// Where the bytes of a block are.
    private enum Place {
        case memory(LandingBlock)
        /// In the file, so many of them.
        case file(Range<Int64>)
    }

    /// Reads landed bytes, each block of them checked and deciphered; see ``read(_:into:)``.
    func readEncrypted(
        _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, _ sealer: BlockSealer
    ) throws {
        guard Block.isAddressable(range) else { throw MissingBytes(range: range) }
        try forEachBlock(of: range) { index, wanted in
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer[
                    Int(wanted.lowerBound - range.lowerBound)..<Int(wanted.upperBound - range.lowerBound)])
            switch try place(of: wanted, in: index) {
            case .memory(let block):
                let start = Int(wanted.lowerBound - Block.start(of: index))
                part.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: block.bytes(start + part.count)[start...]))
            case .file(let landed):
                let start = Int(wanted.lowerBound - Block.start(of: index))
                // What lands meanwhile only adds to it.
                Self.copy(try openBlock(landed, sealer), from: start, into: part)
            }
        }
    }

    /// Calls `body` with each block that `range` touches, and what of it is in the range; what is found bad, it tells of when
    /// all have been looked at.
    private func forEachBlock(of range: Range<Int64>, _ body: (Int64, Range<Int64>) throws -> Void) throws {
        var bad: [Range<Int64>] = []
        for index in Block.indices(touching: range) {
            do {
                try body(index, Block.range(of: index).clamped(to: range))
            } catch let missing as MissingBytes where missing.cause == nil && !missing.invalidated.isEmpty {
                bad += missing.invalidated
            }
        }
        if !bad.isEmpty { throw MissingBytes(invalidated: bad, range: range) }
    }

    /// As ``prove(_:)``.
    func proveEncrypted(_ range: Range<Int64>, _ sealer: BlockSealer) throws {
        try forEachBlock(of: range) { index, wanted in
            guard case .file(let landed) = try place(of: wanted, in: index) else { return }
            let isTrusted = withMap { $0.trustedPrefix(at: landed.lowerBound) }.map {
                $0.upperBound >= landed.upperBound
            }
            if isTrusted != true { _ = try openBlock(landed, sealer) }
        }
    }

    private func place(of wanted: Range<Int64>, in index: Int64) throws -> Place {
        try ground.withLock { ground in
            if let hole = ground.map.landed.firstHole(in: wanted) { throw MissingBytes(range: hole) }
            if let block = ground.landing[index] { return .memory(block) }
            let start = Block.start(of: index)
            return .file(start..<start + ground.map.landedCount(of: index))
        }
    }

    /// The bytes of a block, all that has landed of it.
    ///
    /// - Throws: ``MissingBytes`` if it is not what was received, and is a hole now.
    private func openBlock(_ block: Range<Int64>, _ sealer: BlockSealer) throws -> Data {
        let index = Block.index(of: block.lowerBound)
        while true {
            let before = ground.withLock { $0.map.removals }
            let record = try seal(of: block)
            if let record {
                let plain = try withUnsafeTemporaryAllocation(byteCount: Int(record.length), alignment: 16) { stored in
                    let count = try readFile(into: stored, at: block.lowerBound, of: block)
                    return count == stored.count ? sealer.open(UnsafeRawBufferPointer(stored), as: record) : nil
                }
                if let plain {
                    withMap { $0.trust(record) }
                    return plain
                }
            }
            // Written anew since, with more in it, or given up?
            let isAsBefore = ground.withLock { ground in
                ground.map.removals == before && ground.landing[index] == nil
                    && ground.map.landedCount(of: index) == block.upperBound - block.lowerBound
                    && ground.map.seal(of: index).map { $0 == record } ?? true
            }
            if isAsBefore {
                throw MissingBytes(invalidated: invalidate(block), range: block)
            }
            switch try place(of: block, in: index) {
            case .memory(let landing): return Data(landing.bytes(block.count))
            case .file(let landed):
                if landed != block { return try openBlock(landed, sealer) }
            }
        }
    }

    /// As ``readNow(_:into:)``: what is in memory, or in the system's, is deciphered on the calling thread.
    func readEncryptedNow(
        _ offset: Int64, into buffer: UnsafeMutableRawBufferPointer, _ open: OpenFile, _ sealer: BlockSealer
    ) -> Int? {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            guard let read = readBlockNow(offset + Int64(count), into: rest, open, sealer) else { break }
            count += read
        }
        return count > 0 ? count : nil
    }

    private func readBlockNow(
        _ offset: Int64, into buffer: UnsafeMutableRawBufferPointer, _ open: OpenFile, _ sealer: BlockSealer
    ) -> Int? {
        guard offset >= 0, offset < Block.offsetLimit else { return nil }
        let index = Block.index(of: offset)
        let start = Int(offset - Block.start(of: index))
        let found = ground.withLock { ground -> (LandingBlock?, BlockRecord?, Int) in
            let landed = Int(ground.map.landedCount(of: index))
            return (ground.landing[index], ground.map.seal(of: index), landed)
        }
        guard start < found.2 else { return nil }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(found.2 - start))
        if let block = found.0 {
            part.copyMemory(from: UnsafeRawBufferPointer(rebasing: block.bytes(start + part.count)[start...]))
            return part.count
        }
        guard let record = found.1, Int(record.length) == found.2 else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: found.2, alignment: 16) { stored in
            guard open.file.readNow(into: stored, at: Block.start(of: index)) == stored.count,
                let plain = sealer.open(UnsafeRawBufferPointer(stored), as: record)
            else { return nil }
            Self.copy(plain, from: start, into: part)
            return part.count
        }
    }

    static func copy(_ bytes: Data, from start: Int, into buffer: UnsafeMutableRawBufferPointer) {
        bytes.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + buffer.count]))
        }
    }
}
