import ByteRanges
import Foundation
import Synchronization

/// Memory for the bytes that readers are handed, used again once they have let go of it.
///
/// Fresh memory costs as much as the copy into it: the kernel clears each page. Kept are a few buffers of 64 KiB to
/// 1 MiB, 2 MiB in all; smaller and larger ones are the allocator's. Any thread may call, and may release the `Data`.
enum ReadBuffers {
    /// A buffer that nobody uses.
    ///
    /// `@unchecked Sendable`: whoever takes it out of the list is the only one that has it.
    private struct Spare: @unchecked Sendable {
        var start: UnsafeMutableRawPointer
        var capacity: Int
    }

    private static let spares = Mutex<[Spare]>([])
    private static let reused = 64 << 10...1 << 20
    private static let keptInAll = 2 << 20

    /// Up to `count` bytes, as many as `fill` says that it filled; nil if it filled none.
    ///
    /// - Throws: ``CacheError`` with code `storage` when there is no memory; what `fill` throws.
    static func data(upTo count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int?) throws -> Data? {
        let capacity = reused.contains(count) ? 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount) : count
        guard let start = take(capacity) ?? malloc(capacity) else {
            throw CacheError(.storage, "no memory for \(count.counted("byte"))")
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

    /// `count` bytes, filled by `fill`.
    ///
    /// - Throws: As ``data(upTo:fill:)``.
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
