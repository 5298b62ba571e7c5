import ByteRanges
import Foundation
import Synchronization

/// The blocks of an encrypted media file.
///
/// The file is read in whole blocks. A block that is being received stays in memory until it is complete or its
/// transfer ends. The caller must hold the lock of the media file's writer during writes.
struct EncryptedBlocks: Sendable {
    private let blocks: StoredBlocks
    private let sealer: BlockSealer

    init(_ blocks: StoredBlocks, _ sealer: BlockSealer) {
        self.blocks = blocks
        self.sealer = sealer
    }

    /// The number of stored bytes that are only in memory.
    var memoryByteCount: Int64 {
        blocks.withFilling { map, filling in
            filling.keys.reduce(0) { sum, index in
                sum + max(0, map.storedCount(of: index) - Int64(map.seal(of: index)?.length ?? 0))
            }
        }
    }

    // MARK: - Writing

    /// Buffers bytes of one block, and encrypts and writes the block if they complete it.
    ///
    /// - Parameter tails: The blocks that transfers are filling.
    /// - Returns: The block's record, if it is complete.
    func take(
        _ bytes: UnsafeRawBufferPointer, at part: Range<Int64>, writing open: OpenFile, _ tails: inout [Int64: [UInt8]]
    ) throws -> BlockRecord? {
        let index = Block.index(of: part.lowerBound)
        let start = Block.start(of: index)
        let isComplete = blocks.withMap { $0.isComplete(index, count: part.upperBound - start) }
        if isComplete, part.lowerBound == start { return try write(bytes, index, open) }
        let block = try fillingBlock(index, count: Int(part.lowerBound - start))
        block.append(bytes)
        tails[index] = []
        guard isComplete else { return nil }
        return try write(block.bytes(block.count), index, open)
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ index: Int64, _ open: OpenFile) throws -> BlockRecord {
        try sealer.encrypt(bytes, index: index) { try open.file.write($0, at: Block.start(of: index)) }
    }

    /// Returns the buffer of a block of which `count` bytes are stored.
    private func fillingBlock(_ index: Int64, count: Int) throws -> FillingBlock {
        let known = blocks.withFilling { _, filling in filling[index] }
        // A buffer with more bytes belongs to a failed write.
        if let known, known.count == count, count > 0 { return known }
        let block = FillingBlock()
        if count > 0 {
            let stored = Block.start(of: index)..<Block.start(of: index) + Int64(count)
            let bytes = try known.map { Data($0.bytes(count)) } ?? openBlock(stored)
            bytes.withUnsafeBytes { block.append($0) }
        }
        blocks.withFilling { _, filling in filling[index] = block }
        return block
    }

    /// Encrypts and writes the stored part of a block whose transfer has ended, and then releases its buffer.
    ///
    /// - Returns: The bytes that were lost because they could not be written.
    func endFilling(_ index: Int64) -> MissingBytes? {
        let found = blocks.withFilling { map, filling in
            filling[index].map { ($0, map.storedCount(of: index), map.seal(of: index)?.length) }
        }
        guard let (block, count, sealed) = found else { return nil }
        let stored = Block.start(of: index)..<Block.start(of: index) + count
        guard count > 0, Int64(sealed ?? 0) < count else {
            blocks.withFilling { _, filling in filling[index] = nil }
            return nil
        }
        do {
            let open = try blocks.openFile(for: stored)
            let record = try write(block.bytes(Int(count)), index, open)
            blocks.withFilling { map, filling in
                if map.storedCount(of: index) == count { map.sealPrefix(record) }
                filling[index] = nil
            }
            return nil
        } catch let missing as MissingBytes {
            return missing
        } catch {
            return MissingBytes(
                invalidated: blocks.invalidate(stored), range: stored,
                cause: error as? CacheError ?? CacheError(.storage, "\(error)", range: stored))
        }
    }

    // MARK: - Reading

    /// Returns whether a block has been encrypted again, with more bytes, since the record was created, or will be
    /// soon.
    func isSuperseded(_ record: BlockRecord) -> Bool {
        blocks.withFilling { map, filling in
            filling[record.index] != nil || map.seal(of: record.index) ?? record != record
        }
    }

    /// The location of a block's bytes.
    private enum Location {
        case memory(FillingBlock)
        /// The block is in the file. The associated value is the range of its stored part.
        case file(Range<Int64>)
    }

    /// Reads stored bytes, checking and decrypting each of their blocks; see ``MediaFile/read(_:into:)``.
    func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard Block.isAddressable(range) else { throw MissingBytes(range: range) }
        try forEachBlock(of: range) { index, wanted in
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer[
                    Int(wanted.lowerBound - range.lowerBound)..<Int(wanted.upperBound - range.lowerBound)])
            let start = Int(wanted.lowerBound - Block.start(of: index))
            switch try location(of: wanted, in: index) {
            case .memory(let block): block.copy(from: start, into: part)
            // Bytes that are stored in the meantime only extend this part.
            case .file(let stored): try openBlock(stored).copy(from: start, into: part)
            }
        }
    }

    /// Checks stored bytes; see ``MediaFile/prove(_:)``.
    func prove(_ range: Range<Int64>) throws {
        try forEachBlock(of: range) { index, wanted in
            guard case .file(let stored) = try location(of: wanted, in: index) else { return }
            let trusted = blocks.trusted(at: stored.lowerBound)?.range
            if trusted.map({ $0.upperBound >= stored.upperBound }) != true { _ = try openBlock(stored) }
        }
    }

    /// Calls `body` with each block that `range` touches, and with the part of the range in that block. Damaged blocks
    /// are reported after all blocks have been examined.
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

    private func location(of wanted: Range<Int64>, in index: Int64) throws -> Location {
        try blocks.withFilling { map, filling in
            if let hole = map.storedRanges.firstMissingRange(in: wanted) { throw MissingBytes(range: hole) }
            if let block = filling[index] { return .memory(block) }
            let start = Block.start(of: index)
            return .file(start..<start + map.storedCount(of: index))
        }
    }

    /// Returns the decrypted bytes of the stored part of a block.
    ///
    /// - Throws: ``MissingBytes`` if the bytes differ from the received ones. The block is then discarded.
    private func openBlock(_ block: Range<Int64>) throws -> Data {
        let index = Block.index(of: block.lowerBound)
        while true {
            let before = blocks.withMap { $0.removals }
            let record = try blocks.seal(of: block)
            if let record {
                let plain = try withUnsafeTemporaryAllocation(byteCount: Int(record.length), alignment: 16) { stored in
                    let count = try blocks.read(into: stored, at: block.lowerBound, of: block)
                    return count == stored.count ? sealer.open(UnsafeRawBufferPointer(stored), as: record) : nil
                }
                if let plain {
                    blocks.withMap { $0.trust(record) }
                    return plain
                }
            }
            // The block may have been written again with more bytes, or discarded.
            let isAsBefore = blocks.withFilling { map, filling in
                map.removals == before && filling[index] == nil
                    && map.storedCount(of: index) == block.upperBound - block.lowerBound
                    && map.seal(of: index).map { $0 == record } ?? true
            }
            if isAsBefore { throw MissingBytes(invalidated: blocks.invalidate(block), range: block) }
            switch try location(of: block, in: index) {
            case .memory(let filling): return Data(filling.bytes(block.count))
            case .file(let stored):
                if stored != block { return try openBlock(stored) }
            }
        }
    }

    /// Reads stored bytes on the calling thread if no disk access is needed; see
    /// ``MediaFile/readWithoutBlocking(_:into:)``.
    func readWithoutBlocking(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer, _ open: OpenFile) -> Int? {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            guard let read = readBlockWithoutBlocking(offset + Int64(count), into: rest, open) else { break }
            count += read
        }
        return count > 0 ? count : nil
    }

    private func readBlockWithoutBlocking(
        _ offset: Int64, into buffer: UnsafeMutableRawBufferPointer, _ open: OpenFile
    ) -> Int? {
        guard offset >= 0, offset < Block.offsetLimit else { return nil }
        let index = Block.index(of: offset)
        let start = Int(offset - Block.start(of: index))
        let found = blocks.withFilling { map, filling -> (FillingBlock?, BlockRecord?, Int) in
            (filling[index], map.seal(of: index), Int(map.storedCount(of: index)))
        }
        guard start < found.2 else { return nil }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(found.2 - start))
        if let block = found.0 {
            block.copy(from: start, into: part)
            return part.count
        }
        guard let record = found.1, Int(record.length) == found.2 else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: found.2, alignment: 16) { stored in
            guard open.file.readWithoutBlocking(into: stored, at: Block.start(of: index)) == stored.count,
                let plain = sealer.open(UnsafeRawBufferPointer(stored), as: record)
            else { return nil }
            plain.copy(from: start, into: part)
            return part.count
        }
    }
}

/// The bytes of a block that is being received. In an encrypted cache, they are only in memory until the block is
/// encrypted.
///
/// `@unchecked Sendable`: only the task that holds the lock of the media file's writer adds bytes. Other tasks read
/// only up to the count in the map, which is published under the map's lock.
final class FillingBlock: @unchecked Sendable {
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(Block.size), alignment: 16)
    /// The number of bytes. Only the writer uses this property.
    private(set) var count = 0

    deinit { buffer.deallocate() }

    /// Appends bytes until the block is full.
    func append(_ bytes: UnsafeRawBufferPointer) {
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(buffer.count - count))
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: part)
        count += part.count
    }

    /// Returns the first `count` bytes.
    func bytes(_ count: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    /// Copies bytes, starting at `start`, until `target` is full.
    fileprivate func copy(from start: Int, into target: UnsafeMutableRawBufferPointer) {
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes(start + target.count)[start...]))
    }
}

extension Data {
    /// Copies bytes, starting at `start`, until `target` is full.
    func copy(from start: Int, into target: UnsafeMutableRawBufferPointer) {
        withUnsafeBytes { bytes in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + target.count]))
        }
    }
}
