import ByteRanges
package import Foundation
import Synchronization

extension Generation {
    /// Reads bytes immediately, on the calling thread, if they are proven and in memory.
    ///
    /// - Returns: The number of bytes that were read, at least one and at most the size of `buffer`; `nil` if
    ///   ``read(_:into:)`` is needed.
    package func readWithoutBlocking(_ offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        recordMove()
        if memory.isInUse, let count = memory.file.readWithoutBlocking(offset, into: buffer) { return count }
        return isDiskSkipped ? nil : disk?.readWithoutBlocking(offset, into: buffer)
    }

    /// Reads stored bytes from the start of `range`. The result ends at the end of the range or of the stored bytes, or
    /// at a boundary between disk and memory.
    ///
    /// - Throws: ``MissingBytes`` if the bytes are not stored, or are damaged. Damaged bytes are discarded, and users
    ///   of the version are notified. ``CacheError`` if the file can't be opened at the moment, in which case no bytes
    ///   are discarded. Its code is `closed` if the file was not open when the cache was closed.
    package func read(_ range: Range<Int64>) throws -> Data {
        let (file, part) = try source(of: range)
        return try reporting(file, part) {
            try ReadBuffers.data(count: Int(part.upperBound - part.lowerBound)) { try file.read(part, into: $0) }
        }
    }

    /// Reads bytes like ``read(_:)``, into a buffer with space for the range, and returns their number.
    package func read(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let (file, part) = try source(of: range)
        try reporting(file, part) { try file.read(part, into: buffer) }
        return Int(part.upperBound - part.lowerBound)
    }

    /// Returns a slice of the stored bytes at the start of `range`, for `sendfile`. The bytes are proven, and stay
    /// readable as long as the slice exists.
    ///
    /// - Throws: The same errors as ``read(_:)``.
    package func slice(_ range: Range<Int64>) throws -> MediaSlice {
        guard let lease = owner?.extend(self) else { throw CacheError(.closed, "\(url) is no longer open") }
        let (file, part) = try source(of: range)
        // The bytes are held before they are proven, because they could otherwise be evicted in between.
        let ticket = file.hold(part)
        do {
            let open = try reporting(file, part) {
                // The file is opened before the check and stays open, because its bytes must be checked again once it
                // has been closed.
                let open = try file.blocks.openFile(for: part)
                return try withExtendedLifetime(open) {
                    file.prefetch(from: part, in: open)
                    try file.prove(part)
                    return try file.blocks.openFile(holding: part)
                }
            }
            return MediaSlice(part, of: file, ticket: ticket, open: open, lease: lease)
        } catch {
            file.endHold(ticket)
            throw error
        }
    }

    /// Returns a slice of all of `range` if no disk access is needed. The method may therefore be called on an event
    /// loop.
    ///
    /// - Parameter lease: A lease on this version. The slice holds it.
    /// - Returns: `nil` if ``slice(_:)`` is needed.
    package func sliceIfAvailable(_ range: Range<Int64>, holding lease: Lease) -> MediaSlice? {
        recordMove()
        guard handsOutSlices, !isDiskSkipped, let disk, let held = disk.holdIfAvailable(range)
        else {
            return nil
        }
        return MediaSlice(range, of: disk, ticket: held.ticket, open: held.open, lease: lease)
    }

    /// Reads all of `range` immediately, under the conditions of ``sliceIfAvailable(_:holding:)``, if every byte is in
    /// memory. The method may therefore be called on an event loop.
    ///
    /// - Parameter buffer: A buffer that is as long as `range`.
    /// - Returns: Whether the buffer contains the bytes.
    package func readWholeWithoutBlocking(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        guard handsOutSlices, !isDiskSkipped, let disk else { return false }
        return disk.readWholeWithoutBlocking(range, into: buffer)
    }

    private func source(of range: Range<Int64>) throws -> (MediaFile, Range<Int64>) {
        recordMove()
        for file in [memory.file, isDiskSkipped ? nil : disk] {
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
            // Damaged blocks are often adjacent. The next blocks are also checked, so that one request fetches all
            // damaged blocks again.
            let isDamage = !missing.invalidated.isEmpty && missing.cause == nil && !isShared
            let more = isDamage ? file.badBlocks(after: part) : []
            recordInvalidated(missing.invalidated + more, cause: missing.cause)
            throw missing
        }
    }
}

extension MediaFile {
    /// The distance from the start of a read within which ``badBlocks(after:)`` looks for more damage. This is also the
    /// default length of a new request.
    private static let lookAhead: Int64 = 1 << 20
    /// The number of bytes after a slice that are read from the disk in advance, while the slice is sent.
    private static let prefetched: Int64 = 1 << 20

    /// Starts to read a slice and the stored bytes after it from the disk.
    fileprivate func prefetch(from slice: Range<Int64>, in open: OpenFile) {
        guard let stored = prefix(at: slice.lowerBound) else { return }
        open.file.prefetch(slice.lowerBound..<min(slice.upperBound + Self.prefetched, stored.upperBound))
    }

    /// Checks the bytes after a read that found damaged blocks, and discards further damaged blocks.
    fileprivate func badBlocks(after read: Range<Int64>) -> [Range<Int64>] {
        let start = Block.roundUp(read.upperBound)
        let end = Block.roundDown(read.lowerBound) + Self.lookAhead
        guard start < end, let storedRanges = prefix(at: start) else { return [] }
        do {
            try prove(start..<min(storedRanges.upperBound, end))
            return []
        } catch let missing as MissingBytes {
            return missing.invalidated
        } catch {
            // If the file or the checksums can't be read now, the next read of these bytes reports the error.
            return []
        }
    }
}

extension Generation {
    /// Reads up to `count` bytes at `offset` immediately, on the calling thread; `nil` if the bytes are not stored, or
    /// are not in memory. See ``readWithoutBlocking(_:into:)``.
    package func dataIfAvailable(at offset: Int64, count: Int) -> Data? {
        // A lack of memory is reported when the caller uses `read(_:)` instead.
        try? ReadBuffers.data(upTo: count) { readWithoutBlocking(offset, into: $0) }
    }
}

extension MediaSlice {
    /// The bytes of the slice, which are read on each access; empty if the disk fails. Reading the property blocks.
    package var data: Data {
        // The data is empty if the disk has failed since the bytes were verified; ``read(into:)`` throws the error.
        (try? ReadBuffers.data(upTo: count) { try read(into: $0) }) ?? Data()  // See above.
    }
}

/// The memory for bytes that readers receive. The memory is reused once readers have released it.
///
/// Allocating new memory takes as long as copying bytes into it, because the kernel clears each page. A few buffers of
/// 64 KiB to 1 MiB, at most 2 MiB in total, are reused. Smaller and larger buffers are left to the allocator. The
/// methods may be called, and the `Data` may be released, on any thread.
enum ReadBuffers {
    /// An unused buffer.
    ///
    /// `@unchecked Sendable`: only the thread that took the buffer from the list uses it.
    private struct Spare: @unchecked Sendable {
        var start: UnsafeMutableRawPointer
        var capacity: Int
    }

    private static let spares = Mutex<[Spare]>([])
    private static let reused = 64 << 10...1 << 20
    private static let keptInAll = 2 << 20

    /// Returns the bytes that `fill` writes, at most `count`; `nil` if there are none.
    ///
    /// - Parameter fill: A function that writes bytes to the buffer, and returns their number.
    /// - Throws: ``CacheError`` with code `storage` if there is no memory. Also throws the errors from `fill`.
    static func data(upTo count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int?) throws -> Data? {
        let capacity = reused.contains(count) ? 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount) : count
        guard let start = take(capacity) ?? malloc(capacity) else {
            throw CacheError(.storage, "not enough memory for \(count.counted("byte"))")
        }
        do {
            guard let filled = try fill(UnsafeMutableRawBufferPointer(start: start, count: count)), filled > 0 else {
                give(start, capacity)
                return nil
            }
            return Data(bytesNoCopy: start, count: filled, deallocator: .custom { start, _ in give(start, capacity) })
        } catch {
            give(start, capacity)
            throw error
        }
    }

    /// Returns the `count` bytes that `fill` writes.
    ///
    /// - Throws: The same errors as ``data(upTo:fill:)``.
    static func data(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) throws -> Data {
        let data = try data(upTo: count) { buffer in
            try fill(buffer)
            return buffer.count
        }
        return data ?? Data()
    }

    private static func take(_ capacity: Int) -> UnsafeMutableRawPointer? {
        guard reused.contains(capacity) else { return nil }
        return spares.withLock { spares -> Spare? in
            guard let index = spares.lastIndex(where: { $0.capacity == capacity }) else { return nil }
            return spares.remove(at: index)
        }?.start
    }

    private static func give(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        let spare = Spare(start: start, capacity: capacity)
        let isKept =
            reused.contains(capacity)
            && spares.withLock { spares in
                guard spares.reduce(capacity, { $0 + $1.capacity }) <= keptInAll else { return false }
                spares.append(spare)
                return true
            }
        if !isKept { free(start) }
    }
}
