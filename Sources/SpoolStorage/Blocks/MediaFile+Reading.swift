import ByteRanges
import Foundation
import Synchronization

extension MediaFile {
    /// Reads stored bytes immediately, on the calling thread, if they are proven and in memory.
    ///
    /// - Returns: The number of bytes that were read, at least one; `nil` if an immediate read is not possible.
    func readWithoutBlocking(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard !buffer.isEmpty, let open = file.openNow else { return nil }
        if let encrypted { return encrypted.readWithoutBlocking(offset, into: buffer, open) }
        guard let (trusted, removals) = blocks.trusted(at: offset, in: open) else { return nil }
        let available = min(trusted.upperBound - offset, Int64(buffer.count))
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(available)))
        guard let count = open.file.readWithoutBlocking(into: part, at: offset) else { return nil }
        // Evicted bytes are read as zeros. They are removed from the map before their space is freed.
        return blocks.isUnchanged(since: removals) ? count : nil
    }

    /// Protects `range` from eviction immediately, on the calling thread, if no disk access is needed. All of the range
    /// must be proven, the file must be open and unencrypted, and one byte of each 64 KiB must be in memory.
    ///
    /// - Returns: The ticket for ``endHold(_:)``; `nil` if ``hold(_:)`` and ``prove(_:)`` are needed.
    func holdIfAvailable(_ range: Range<Int64>) -> (ticket: UInt64, open: OpenFile)? {
        guard !range.isEmpty, let open = sendableNow else { return nil }
        guard let ticket = blocks.holdTrusted(range, in: open) else { return nil }
        guard isInMemory(range, open) else {
            endHold(ticket)
            return nil
        }
        return (ticket, open)
    }

    /// Reads all of `range` immediately, under the conditions of ``holdIfAvailable(_:)``, if every byte is in memory.
    ///
    /// - Parameter buffer: A buffer that is as long as `range`.
    /// - Returns: Whether the buffer contains the bytes.
    func readWholeWithoutBlocking(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        sendableNow != nil && readWithoutBlocking(range.lowerBound, into: buffer) == buffer.count
    }

    /// The file, if it is open with a descriptor and its bytes can be sent without decryption.
    private var sendableNow: OpenFile? {
        guard !isEncrypted, let open = file.openNow, open.file.fileDescriptor != nil else { return nil }
        return open
    }

    private func isInMemory(_ range: Range<Int64>, _ open: OpenFile) -> Bool {
        var byte: UInt8 = 0
        return withUnsafeMutableBytes(of: &byte) { byte in
            var offset = range.lowerBound
            while true {
                guard open.file.readWithoutBlocking(into: byte, at: offset) == 1 else { return false }
                guard offset < range.upperBound - 1 else { return true }
                offset = min(offset + Block.size, range.upperBound - 1)
            }
        }
    }

    /// Requires all blocks to be checked against their checksums again when they are next read.
    func expireTrust() { blocks.withMap { $0.expireTrust() } }

    /// Reads stored bytes.
    ///
    /// Blocks that an earlier process stored are checked against their checksums when they are first read. All blocks
    /// are checked again after the file has been closed, and after a day. Encrypted blocks are checked on every read.
    /// Other reads cost a `pread` and a few tens of nanoseconds.
    ///
    /// - Parameters:
    ///   - range: The bytes to read. All of them must be stored.
    ///   - buffer: A buffer with space for the range.
    /// - Throws: ``MissingBytes`` if part of the range is not stored, was evicted in the meantime, is damaged, or can't
    ///   be read. In the last case, the error contains its cause. In the last two cases, it contains the discarded
    ///   blocks. ``CacheError`` if the file can't be opened at the moment, or the catalog can't be read.
    func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard !range.isEmpty else { return }
        let count = range.upperBound.subtractingReportingOverflow(range.lowerBound)
        guard range.lowerBound >= 0, !count.overflow, count.partialValue <= buffer.count else {
            throw CacheError(
                .invalidArgument, "a buffer of \(buffer.count.counted("byte")) is too small for \(range.inWords)")
        }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(count.partialValue)])
        if isShared { return try readShared(range, into: buffer) }
        if let encrypted { return try encrypted.read(range, into: buffer) }
        while true {
            let reading = try blocks.withMap { map in try map.planReading(range) }
            let read = try blocks.read(into: buffer, at: range.lowerBound, of: range)
            if read == buffer.count, reading.unverified.isEmpty {
                if blocks.withMap({ $0.removals == reading.removals }) { return }
            } else if try check(reading, of: range, UnsafeRawBufferPointer(rebasing: buffer[..<read])) {
                return
            }
        }
    }

    /// Reads bytes while another process has the directory open and may evict, remove or fill blocks. Each block is
    /// read into memory and checked there.
    private func readShared(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try blocks.withMap { map in try map.planReading(range) }
        var bytes = [UInt8](repeating: 0, count: Int(Block.size))
        for index in Block.indices(touching: range) {
            let wanted = Block.range(of: index).clamped(to: range)
            // More of the block may have been recorded since this file was opened.
            guard let record = try blocks.storedSeal(at: index), wanted.upperBound <= record.range.upperBound,
                let sealer
            else { throw gone(wanted) }
            let isProven = try bytes.withUnsafeMutableBytes { bytes in
                let block = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Int(record.length)])
                guard try blocks.read(into: block, at: record.range.lowerBound, of: record.range) == block.count,
                    let plain = sealer.open(UnsafeRawBufferPointer(block), as: record)
                else { return false }
                let start = Int(wanted.lowerBound - record.range.lowerBound)
                let target = Int(wanted.lowerBound - range.lowerBound)
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[target..<target + wanted.count])
                plain.copy(from: start, into: part)
                return true
            }
            guard isProven else { throw gone(wanted) }
        }
    }

    private func gone(_ range: Range<Int64>) -> MissingBytes {
        MissingBytes(invalidated: blocks.invalidate(range), range: range)
    }

    /// Proves that the stored bytes in `range` are identical to the received ones, without returning them.
    ///
    /// - Throws: The same errors as ``read(_:into:)``.
    func prove(_ range: Range<Int64>) throws {
        guard Block.isAddressable(range) else { throw MissingBytes(range: range) }
        if let encrypted { return try encrypted.prove(range) }
        _ = try blocks.openFile(for: range)
        while true {
            let reading = try blocks.withMap { map in try map.planReading(range) }
            if reading.unverified.isEmpty { return }
            if try check(reading, of: range, nil) { return }
        }
    }

    /// The result of a check of recorded blocks.
    struct Findings: Sendable {
        /// The number of records that were checked or skipped.
        var checked = 0
        /// The stored ranges of blocks that are damaged or can't be read.
        var bad: [Range<Int64>] = []
        /// The reason why the file could not be opened during the check. In that case, the remaining records were not
        /// checked.
        var failure: CacheError?
    }

    /// Checks stored blocks against `records`, including blocks that were checked before.
    ///
    /// Records of blocks that are not stored are skipped. If `repairing` is `true`, damaged blocks are discarded.
    /// Otherwise, each damaged block stays until it is next read.
    func verify(_ records: [BlockRecord], repairing: Bool) -> Findings {
        var findings = Findings()
        for record in records {
            while record.isPlausible, let reading = blocks.withMap({ $0.planVerifying(record) }) {
                let isGood: Bool
                do {
                    isGood = try verifies(record)
                } catch let failure as CacheError {
                    findings.failure = failure
                    return findings
                } catch {
                    // The disk can't read the block.
                    isGood = false
                }
                if !isGood, encrypted?.isSuperseded(record) == true { break }
                let isDone = blocks.withMap { map in
                    if isGood { return map.finish(reading, good: [record], bad: []) }
                    return repairing
                        ? map.finish(reading, good: [], bad: [record.range])
                        : map.distrust(record.range, after: reading)
                }
                guard isDone else { continue }
                if !isGood { findings.bad.append(record.range) }
                break
            }
            findings.checked += 1
        }
        return findings
    }

    /// Checks the bytes that a read returned.
    ///
    /// - Parameter bytes: The bytes of `range`, or fewer if the file ended early; `nil` if the blocks are only to be
    ///   checked.
    /// - Returns: `false` if bytes were evicted in the meantime, in which case the read must be repeated.
    private func check(
        _ reading: BlockMap.Reading, of range: Range<Int64>, _ bytes: UnsafeRawBufferPointer?
    ) throws -> Bool {
        let readEnd = range.lowerBound + Int64(bytes?.count ?? 0)
        // All bytes after the end of the file are missing.
        let cut = bytes == nil || readEnd == range.upperBound ? range.upperBound : Block.roundDown(readEnd)
        var good: [BlockRecord] = []
        var unrecorded: [Range<Int64>] = []
        var bad: [Range<Int64>] = cut < range.upperBound ? [cut..<range.upperBound] : []
        for block in reading.unverified where block.lowerBound < cut {
            guard let record = try blocks.seal(of: block), let sealer else {
                // A block that this process has just stored may not have a record yet.
                if blocks.withMap({ $0.wasTrusted(block) }) { unrecorded.append(block) } else { bad.append(block) }
                continue
            }
            let isGood: Bool
            if let bytes, range.lowerBound <= block.lowerBound, block.upperBound <= readEnd {
                let start = Int(block.lowerBound - range.lowerBound)
                let part = UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(record.length)])
                isGood = sealer.verifies(part, as: record)
            } else {
                isGood = try verifies(record)
            }
            if isGood { good.append(record) } else { bad.append(block) }
        }
        bad.sort { $0.lowerBound < $1.lowerBound }
        guard blocks.withMap({ $0.finish(reading, good: good, unrecorded: unrecorded, bad: bad) }) else { return false }
        guard bad.isEmpty else { throw MissingBytes(invalidated: bad.map(StoredBlocks.wholeBlocks), range: range) }
        return true
    }

    /// Reads and checks one block.
    private func verifies(_ record: BlockRecord) throws -> Bool {
        guard let sealer else { return true }
        return try withUnsafeTemporaryAllocation(byteCount: Int(record.length), alignment: 16) { block in
            guard let open = try file.opened() else { return false }
            let read: Int
            do throws(CacheError) {
                read = try open.file.read(into: block, at: record.range.lowerBound)
            } catch {
                throw MissingBytes(range: record.range, cause: error)
            }
            return read == block.count && sealer.verifies(UnsafeRawBufferPointer(block), as: record)
        }
    }
}
