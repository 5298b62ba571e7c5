import ByteRanges
import Spool

/// The bytes of one file in memory, in pages of 64 KiB that exist only once they have been written. Copying is cheap,
/// because copies share unchanged pages.
package struct SparseBytes: Sendable {
    private var pages: [Int64: [UInt8]] = [:]
    /// The size of the file in bytes, including unwritten ranges.
    package private(set) var count: Int64 = 0

    /// Creates an empty file.
    package init() {}

    /// The number of existing pages.
    package var pageCount: Int { pages.count }

    /// The numbers of the existing pages, in ascending order.
    package var pageNumbers: [Int64] { pages.keys.sorted() }

    /// Returns the range of the first existing page at or after `offset`, without the part before `offset`; `nil` if
    /// there is none.
    package func nextData(from offset: Int64) -> Range<Int64>? {
        guard offset < count else { return nil }
        let first = Block.index(of: max(offset, 0))
        guard let page = pages.keys.filter({ $0 >= first }).min() else { return nil }
        return max(offset, Block.start(of: page))..<min(Block.range(of: page).upperBound, count)
    }

    /// Reads bytes until `buffer` is full or the file ends, and returns their number. Unwritten ranges read as zeros.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard offset >= 0, offset < count else { return 0 }
        let range = offset..<min(count, offset + Int64(buffer.count))
        for index in Block.indices(touching: range) {
            let part = range.clamped(to: Block.range(of: index))
            let target = UnsafeMutableRawBufferPointer(
                rebasing: buffer[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
            if let page = pages[index] {
                let start = Int(part.lowerBound - Block.start(of: index))
                page.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[start..<start + target.count])) }
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            }
        }
        return Int(range.upperBound - range.lowerBound)
    }

    /// Writes `bytes` at `offset`, which must not be negative.
    package mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        guard !bytes.isEmpty else { return }
        let range = offset..<offset + Int64(bytes.count)
        for index in Block.indices(touching: range) {
            let part = range.clamped(to: Block.range(of: index))
            let source = UnsafeRawBufferPointer(
                rebasing: bytes[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
            withPage(index) { page in
                let start = Int(part.lowerBound - Block.start(of: index))
                UnsafeMutableRawBufferPointer(rebasing: page[start..<start + source.count]).copyMemory(from: source)
            }
        }
        count = max(count, range.upperBound)
    }

    /// Deallocates a range. If it extends to the end of the file, the file is shortened instead.
    package mutating func punchHole(_ hole: Range<Int64>) {
        let lower = max(0, hole.lowerBound)
        let range = lower..<max(lower, min(hole.upperBound, count))
        guard !range.isEmpty else { return }
        let shortens = range.upperBound == count
        // The loop visits only the existing pages, because a very long file has far more page indices.
        let indices = Block.indices(touching: range)
        for index in Array(pages.keys) where indices.contains(index) {
            let part = range.clamped(to: Block.range(of: index))
            if part.lowerBound == Block.start(of: index), shortens || part.count == Block.size {
                pages[index] = nil
            } else {
                withPage(index) { page in
                    let start = Int(part.lowerBound - Block.start(of: index))
                    UnsafeMutableRawBufferPointer(rebasing: page[start..<start + part.count])
                        .initializeMemory(as: UInt8.self, repeating: 0)
                }
            }
        }
        if shortens { count = range.lowerBound }
    }

    /// Inverts the lowest bit of a byte.
    package mutating func flip(at offset: Int64) {
        guard offset < count else { return }
        withPage(Block.index(of: offset)) { $0[Int(offset % Block.size)] ^= 1 }
    }

    /// Sets a page to zeros, as if the disk had lost an unflushed page.
    package mutating func lose(page index: Int64) {
        withPage(index) { $0.initializeMemory(as: UInt8.self, repeating: 0) }
    }

    /// Truncates the file.
    package mutating func truncate(to size: Int64) { punchHole(size..<Int64.max) }

    private mutating func withPage(_ index: Int64, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
        pages[index, default: [UInt8](repeating: 0, count: Int(Block.size))].withUnsafeMutableBytes(body)
    }
}
