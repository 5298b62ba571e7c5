import ByteRanges
import Synchronization

/// A file in memory, for use when the disk does not accept data. Its bytes are in pages of 64 KiB. Each page is at most
/// twice as long as the bytes written to it require.
///
/// The file grows with each write, and shrinks only by ``punchHole(_:)``. The caller limits its size.
final class MemoryFile: StoredFile {
    private struct Pages {
        var pages: [Int64: [UInt8]] = [:]
        var size: Int64 = 0
    }

    /// The size of a page, in bytes.
    static let pageSize: Int64 = 65536

    private let state = Mutex(Pages())

    /// Creates an empty file.
    init() {}

    /// The maximum memory that the current pages can use, in bytes, which is counted against the limit.
    var byteCount: Int64 { state.withLock { Int64($0.pages.count) * Self.pageSize } }

    /// The memory that the pages use, in bytes.
    var allocatedByteCount: Int64 { state.withLock { $0.pages.values.reduce(0) { $0 + Int64($1.count) } } }

    /// Returns the number of additional pages that `range` needs.
    func missingPageCount(in range: Range<Int64>) -> Int {
        guard !range.isEmpty else { return 0 }
        return state.withLock { state in Self.pages(of: range).count { state.pages[$0] == nil } }
    }

    private static func pages(of range: Range<Int64>) -> Range<Int64> {
        range.isEmpty ? 0..<0 : range.lowerBound / pageSize..<(range.upperBound - 1) / pageSize + 1
    }

    private static func bytes(of page: Int64) -> Range<Int64> { page * pageSize..<(page + 1) * pageSize }

    func size() -> Int64 { state.withLock { $0.size } }

    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        // Reading from memory can't fail.
        let count = try? read(into: buffer, at: offset)
        return count == 0 ? nil : count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        state.withLock { state in
            guard offset >= 0, offset < state.size else { return 0 }
            let range = offset..<min(state.size, offset + Int64(buffer.count))
            for index in Self.pages(of: range) {
                let part = range.clamped(to: Self.bytes(of: index))
                let target = UnsafeMutableRawBufferPointer(
                    rebasing: buffer[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
                guard let page = state.pages[index] else {
                    target.initializeMemory(as: UInt8.self, repeating: 0)
                    continue
                }
                let start = Int(part.lowerBound - index * Self.pageSize)
                let count = min(max(page.count - start, 0), target.count)
                page.withUnsafeBytes {
                    target.copyMemory(from: .init(rebasing: $0[min(start, $0.count)...].prefix(count)))
                }
                UnsafeMutableRawBufferPointer(rebasing: target[count...]).initializeMemory(as: UInt8.self, repeating: 0)
            }
            return Int(range.upperBound - range.lowerBound)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard !overflow, offset >= 0, end <= Int64.max / Self.pageSize * Self.pageSize else {
            throw CacheError(
                .storage,
                "\(bytes.count.counted("byte")) can't be stored in memory at offset \(offset.grouped): "
                    + "the offset is invalid")
        }
        guard !bytes.isEmpty else { return }
        state.withLock { state in
            for index in Self.pages(of: offset..<end) {
                let part = (offset..<end).clamped(to: Self.bytes(of: index))
                let source = UnsafeRawBufferPointer(
                    rebasing: bytes[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
                let start = Int(part.lowerBound - index * Self.pageSize)
                Self.write(source, at: start, to: &state.pages[index, default: []])
            }
            state.size = max(state.size, end)
        }
    }

    private static func write(_ source: UnsafeRawBufferPointer, at start: Int, to page: inout [UInt8]) {
        let end = start + source.count
        if page.count < end {
            let count = min(max(end, 2 * page.count), Int(pageSize))
            page.reserveCapacity(count)
            page.append(contentsOf: repeatElement(0, count: count - page.count))
        }
        page.withUnsafeMutableBytes {
            UnsafeMutableRawBufferPointer(rebasing: $0[start..<end]).copyMemory(from: source)
        }
    }

    func nextData(from offset: Int64) -> Range<Int64>? {
        state.withLock { state in
            guard offset < state.size else { return nil }
            let first = max(offset, 0) / Self.pageSize
            guard let page = state.pages.keys.filter({ $0 >= first }).min() else { return nil }
            let bytes = Self.bytes(of: page)
            return max(offset, bytes.lowerBound)..<min(bytes.upperBound, state.size)
        }
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        state.withLock { state in
            let range = max(0, range.lowerBound)..<max(0, range.lowerBound, min(range.upperBound, state.size))
            guard !range.isEmpty else { return }
            let shortens = range.upperBound == state.size
            let indices = Self.pages(of: range)
            // An origin may state any length, so the range may span far more pages than exist.
            for index in Array(state.pages.keys) where indices.contains(index) {
                let part = range.clamped(to: Self.bytes(of: index))
                let isWhole = part.lowerBound == index * Self.pageSize && (shortens || part.count == Self.pageSize)
                if isWhole {
                    state.pages[index] = nil
                } else {
                    let start = Int(part.lowerBound - index * Self.pageSize)
                    let end = min(start + part.count, state.pages[index]?.count ?? 0)
                    if start < end {
                        state.pages[index]?.replaceSubrange(start..<end, with: repeatElement(0, count: end - start))
                    }
                }
            }
            if shortens { state.size = range.lowerBound }
        }
    }
}
