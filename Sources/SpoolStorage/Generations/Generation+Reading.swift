package import Foundation
import Synchronization

extension Generation {
    /// Reads now, on the calling thread, if that needs no disk: the bytes are proven and in memory.
    ///
    /// - Returns: How many were read, at least one and maybe fewer than `buffer` takes; nil: use ``read(_:into:)``.
    package func readNow(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        if memory.isInUse, let count = memory.file.readNow(offset, into: buffer) { return count }
        return isDiskPassedOver.load(ordering: .relaxed) ? nil : disk?.readNow(offset, into: buffer)
    }

    /// Up to `range.count` landed bytes from `range.lowerBound` on; fewer where what has landed ends, or where disk and
    /// memory meet.
    ///
    /// - Throws: ``MissingBytes`` when they are not there, or are not what was received: those are holes now, and users
    ///   have been told; ``CacheError`` when the file can't be opened this time (nothing is given up for that), and
    ///   `closed` for bytes that were not open when the cache was closed.
    package func read(_ range: Range<Int64>) throws -> Data {
        let (file, part) = try source(of: range)
        return try reporting(file, part) {
            try ReadBuffers.data(count: Int(part.upperBound - part.lowerBound)) { try file.read(part, into: $0) }
        }
    }

    /// As ``read(_:)``, into a buffer that has room for `range`; returns how many were read.
    package func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let (file, part) = try source(of: range)
        try reporting(file, part) { try file.read(part, into: buffer) }
        return Int(part.upperBound - part.lowerBound)
    }

    /// Proven bytes that stay where they are while the slice lives, for `sendfile`: of the landed part of `range` at its
    /// beginning.
    ///
    /// - Throws: As ``read(_:)`` does.
    package func slice(_ range: Range<Int64>) throws -> MediaSlice {
        guard let lease = owner?.extend(self) else { throw CacheError(.closed, "\(url) is no longer open") }
        let (file, part) = try source(of: range)
        // Held first, then proven: what is proven before may go until it is held.
        let ticket = file.hold(part)
        do {
            let open = try reporting(file, part) {
                try file.prove(part)
                return try file.blocks.openFile(holding: part)
            }
            return MediaSlice(part, of: file, ticket: ticket, open: open, lease: lease)
        } catch {
            file.endHold(ticket)
            throw error
        }
    }

    /// As ``slice(_:)``, of all of `range` at once, if that needs no disk: so it may be called on an event loop.
    ///
    /// - Parameter lease: Of this generation; the slice keeps it.
    /// - Returns: Nil: use ``slice(_:)``.
    package func sliceNow(_ range: Range<Int64>, holding lease: Lease) -> MediaSlice? {
        guard handsOutSlices, !isDiskPassedOver.load(ordering: .relaxed), let disk, let held = disk.holdNow(range)
        else {
            return nil
        }
        return MediaSlice(range, of: disk, ticket: held.ticket, open: held.open, lease: lease)
    }

    private func source(of range: Range<Int64>) throws -> (MediaFile, Range<Int64>) {
        for file in [memory.file, isDiskPassedOver.load(ordering: .acquiring) ? nil : disk] {
            guard let file, let found = file.prefix(at: range.lowerBound) else { continue }
            let part = range.lowerBound..<min(range.upperBound, found.upperBound)
            if !part.isEmpty { return (file, part) }
        }
        throw MissingBytes(range: range)
    }

    private func reporting<R>(_ file: MediaFile, _ part: Range<Int64>, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let missing as MissingBytes {
            // Damage seldom comes alone: what of it lies ahead is asked for in the same request.
            let isDamage = !missing.invalidated.isEmpty && missing.cause == nil && !isShared
            let more = isDamage ? file.badBlocks(after: part) : []
            noteInvalidated(missing.invalidated + more, cause: missing.cause)
            throw missing
        }
    }
}

extension MediaFile {
    /// From where a read began, how far is looked for more: as far as a request at a new place goes by default.
    private static let lookAhead: Int64 = 1 << 20

    /// Checks what has landed after a read that met bad blocks; those found are holes now.
    fileprivate func badBlocks(after read: Range<Int64>) -> [Range<Int64>] {
        let start = Block.roundUp(read.upperBound)
        let end = Block.roundDown(read.lowerBound) + Self.lookAhead
        guard start < end, let landed = prefix(at: start) else { return [] }
        do {
            try prove(start..<min(landed.upperBound, end))
            return []
        } catch let missing as MissingBytes {
            return missing.invalidated
        } catch {
            // A file that can't be opened now, or seals that can't be read: whoever reads there meets it.
            return []
        }
    }
}
