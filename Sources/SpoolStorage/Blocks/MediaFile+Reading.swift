import ByteRanges
import Foundation
import Synchronization

extension MediaFile {
    /// Reads landed bytes now, on the calling thread, if that needs no disk: they are proven, and in memory.
    ///
    /// - Returns: How many were read, at least one; nil if that can't be done now.
    func readNow(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard !buffer.isEmpty, let open = file.openNow else { return nil }
        if let sealer, isEncrypted { return readEncryptedNow(offset, into: buffer, open, sealer) }
        let found = ground.withLock { ground in
            ground.map.trustedPrefix(at: offset).map { ($0.upperBound - offset, ground.map.removals) }
        }
        guard let (available, removals) = found else { return nil }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(min(available, Int64(buffer.count)))))
        guard let count = open.file.readNow(into: part, at: offset) else { return nil }
        // Bytes that went meanwhile read as zeros: they are forgotten before their hole is punched.
        guard ground.withLock({ $0.map.removals == removals }) else { return nil }
        return count
    }

    /// Holds `range` now, on the calling thread, if that needs no disk: all of it is proven, the file is open, and its bytes
    /// are in memory, as far as a look at each 64 KiB tells.
    ///
    /// - Returns: What to pass to ``endHold(_:)``; nil: use ``hold(_:)`` and ``prove(_:)``.
    func holdNow(_ range: Range<Int64>) -> (ticket: UInt64, open: OpenFile)? {
        guard !range.isEmpty, !isEncrypted, let open = file.openNow else { return nil }
        let ticket = ground.withLock { ground -> UInt64? in
            guard let trusted = ground.map.trustedPrefix(at: range.lowerBound),
                trusted.upperBound >= range.upperBound
            else { return nil }
            return ground.map.hold(range)
        }
        guard let ticket else { return nil }
        guard isInMemory(range, open) else {
            endHold(ticket)
            return nil
        }
        return (ticket, open)
    }

    private func isInMemory(_ range: Range<Int64>, _ open: OpenFile) -> Bool {
        var byte: UInt8 = 0
        return withUnsafeMutableBytes(of: &byte) { byte in
            var offset = range.lowerBound
            while true {
                guard open.file.readNow(into: byte, at: offset) == 1 else { return false }
                guard offset < range.upperBound - 1 else { return true }
                offset = min(offset + Block.size, range.upperBound - 1)
            }
        }
    }

    /// Reads landed bytes.
    ///
    /// Blocks that an earlier process left are checked against their seals the first time; afterwards a read costs a
    /// `pread` and some tens of nanoseconds.
    ///
    /// - Parameters:
    ///   - range: Half-open; all of it must have landed.
    ///   - buffer: Takes the bytes; must have room for them.
    /// - Throws: ``MissingBytes`` if some of the range has not landed, or was evicted meanwhile, or is not what was
    ///   received, or can't be read: then it has a cause, and says what it turned into holes; ``CacheError`` if the
    ///   file can't be opened this time, or the catalog can't be asked for its seals.
    func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard !range.isEmpty else { return }
        let count = range.upperBound.subtractingReportingOverflow(range.lowerBound)
        guard range.lowerBound >= 0, !count.overflow, count.partialValue <= buffer.count else {
            throw CacheError(
                .invalidArgument, "a buffer of \(buffer.count.counted("byte")) can't take \(range.inWords)")
        }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(count.partialValue)])
        if isShared { return try readShared(range, into: buffer) }
        if let sealer, isEncrypted { return try readEncrypted(range, into: buffer, sealer) }
        while true {
            let reading = try withMap { map in try map.planReading(range) }
            let read = try readFile(into: buffer, at: range.lowerBound, of: range)
            if read == buffer.count, reading.unverified.isEmpty {
                if withMap({ $0.removals == reading.removals }) { return }
            } else if try check(reading, of: range, UnsafeRawBufferPointer(rebasing: buffer[..<read])) {
                return
            }
        }
    }

    /// Reads beside the process that has the directory, which may evict, remove or fill blocks meanwhile: each block is
    /// checked in memory, after it was read, and again the next time.
    private func readShared(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try withMap { map in try map.planReading(range) }
        var bytes = [UInt8](repeating: 0, count: Int(Block.size))
        for index in Block.indices(touching: range) {
            let wanted = Block.range(of: index).clamped(to: range)
            // More of the block may have been recorded since this was opened.
            guard let record = try storedSeals(index..<index + 1).first(where: { $0.index == index }),
                record.isPlausible, wanted.upperBound <= record.range.upperBound, let sealer
            else { throw gone(wanted) }
            let isProven = try bytes.withUnsafeMutableBytes { bytes in
                let block = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Int(record.length)])
                guard try readFile(into: block, at: record.range.lowerBound, of: record.range) == block.count,
                    let plain = sealer.open(UnsafeRawBufferPointer(block), as: record)
                else { return false }
                let start = Int(wanted.lowerBound - record.range.lowerBound)
                let target = Int(wanted.lowerBound - range.lowerBound)
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[target..<target + wanted.count])
                Self.copy(plain, from: start, into: part)
                return true
            }
            guard isProven else { throw gone(wanted) }
        }
    }

    private func gone(_ range: Range<Int64>) -> MissingBytes {
        MissingBytes(invalidated: invalidate(range), range: range)
    }

    /// Proves that `range` is what was received, without handing the bytes out.
    ///
    /// - Throws: As ``read(_:into:)`` does.
    func prove(_ range: Range<Int64>) throws {
        guard Block.isAddressable(range) else { throw MissingBytes(range: range) }
        if let sealer, isEncrypted { return try proveEncrypted(range, sealer) }
        while true {
            let reading = try withMap { map in try map.planReading(range) }
            if reading.unverified.isEmpty { return }
            if try check(reading, of: range, nil) { return }
        }
    }

    /// Gives up the blocks that `range` touches.
    ///
    /// - Returns: The blocks.
    func invalidate(_ range: Range<Int64>) -> [Range<Int64>] {
        let blocks = Self.wholeBlocks(range)
        withMap { $0.invalidate(blocks) }
        return [blocks]
    }

    /// What was found by a check of recorded blocks.
    struct Findings: Sendable {
        /// How many records were done with, passed over or checked.
        var checked = 0
        /// Blocks that are not what was received, or can't be read, as their landed bytes.
        var bad: [Range<Int64>] = []
        /// Set if the file could not be opened this time, and the rest was not checked.
        var failure: CacheError?
    }

    /// Checks stored blocks against `records`, all of them, whether trusted or not; for a cache's own check-up.
    ///
    /// Records of blocks that have not landed (any more) are passed over. A bad one is a hole afterwards if `repairing`;
    /// else it stays landed, and whoever reads it next finds out.
    func verify(_ records: [BlockRecord], repairing: Bool) -> Findings {
        var findings = Findings()
        for record in records {
            while record.isPlausible, let reading = withMap({ $0.planVerifying(record) }) {
                let isGood: Bool
                do {
                    isGood = try verifies(record)
                } catch let failure as CacheError {
                    findings.failure = failure
                    return findings
                } catch {
                    // The disk refuses to read it.
                    isGood = false
                }
                if !isGood, isSuperseded(record) { break }
                let isDone = withMap { map in
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

    /// Checks what a read brought: `bytes` are those of `range`, fewer if the file ended early; nil if they are not
    /// read, only to be checked.
    ///
    /// - Returns: False if bytes went away meanwhile and the read has to be done again.
    private func check(
        _ reading: BlockMap.Reading, of range: Range<Int64>, _ bytes: UnsafeRawBufferPointer?
    ) throws -> Bool {
        let readEnd = range.lowerBound + Int64(bytes?.count ?? 0)
        // Where the file ends, all that should follow is missing.
        let cut = bytes == nil || readEnd == range.upperBound ? range.upperBound : Block.roundDown(readEnd)
        var good: [BlockRecord] = []
        var bad: [Range<Int64>] = cut < range.upperBound ? [cut..<range.upperBound] : []
        for block in reading.unverified where block.lowerBound < cut {
            guard let record = try seal(of: block), let sealer else {
                bad.append(block)
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
        guard withMap({ $0.finish(reading, good: good, bad: bad) }) else { return false }
        guard bad.isEmpty else { throw MissingBytes(invalidated: bad.map(Self.wholeBlocks), range: range) }
        return true
    }

    /// The newest seal over `block`, all that has landed of one; nil if there is none, or it is over something else.
    func seal(of block: Range<Int64>) throws -> BlockRecord? {
        let index = Block.index(of: block.lowerBound)
        let (known, removals) = withMap { ($0.seal(of: index), $0.removals) }
        if let known { return known.range == block ? known : nil }
        // By the group: a player comes for the neighbours next.
        let group: Int64 = 64
        let start = index / group * group
        let records = try storedSeals(start..<start + group)
        withMap { $0.add(stored: records, since: removals) }
        return records.first { $0.index == index && $0.range == block }
    }

    /// Reads one block's sealed bytes and checks them.
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

    /// The open file, for reading `range`; if it is not there any more, all that had landed is a hole.
    func openFile(for range: Range<Int64>) throws -> OpenFile {
        if let open = try file.opened() { return open }
        let lost = withMap { $0.invalidateAll() }
        throw MissingBytes(invalidated: lost.map(Self.wholeBlocks), range: range)
    }

    /// The file, which still reaches to the end of `range`: one that somebody has cut short has no more to send, and who
    /// sends it without looking at it would wait for that.
    func openFile(holding range: Range<Int64>) throws -> OpenFile {
        let open = try openFile(for: range)
        let size = try open.file.size()
        guard size < range.upperBound else { return open }
        throw gone(max(size, range.lowerBound)..<range.upperBound)
    }

    /// Reads from the file; what it refuses to read, or that it is not there, turns what should be read into holes.
    func readFile(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, of range: Range<Int64>
    ) throws -> Int {
        let open = try openFile(for: range)
        do throws(CacheError) {
            return try open.file.read(into: buffer, at: offset)
        } catch {
            let blocks = Self.wholeBlocks(range)
            withMap { $0.invalidate(blocks) }
            throw MissingBytes(invalidated: [blocks], range: range, cause: error)
        }
    }

    static func wholeBlocks(_ range: Range<Int64>) -> Range<Int64> {
        Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound)
    }
}
