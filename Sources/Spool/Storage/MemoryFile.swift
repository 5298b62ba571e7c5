import Synchronization

/// A file that is no file: the bytes of a resource that the disk would not take, one page per block, in memory.
///
/// It grows by what is written and shrinks only by ``punchHole(_:)``: its user bounds it.
package final class MemoryFile: StoredFile {
    private struct Pages {
        var pages: [Int64: [UInt8]] = [:]
        var size: Int64 = 0
    }

    private let state = Mutex(Pages())

    /// Creates an empty file.
    package init() {}

    package var fileDescriptor: Int32? { nil }

    /// Bytes of memory that the pages take.
    package var byteCount: Int64 { state.withLock { Int64($0.pages.count) * Block.size } }

    package func size() -> Int64 { state.withLock { $0.size } }

    package func synchronize() {}

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        state.withLock { state in
            guard offset >= 0, offset < state.size else { return 0 }
            let range = offset..<min(state.size, offset + Int64(buffer.count))
            for index in Block.indices(touching: range) {
                let part = range.clamped(to: Block.range(of: index))
                let target = UnsafeMutableRawBufferPointer(
                    rebasing: buffer[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
                guard let page = state.pages[index] else {
                    target.initializeMemory(as: UInt8.self, repeating: 0)
                    continue
                }
                let start = Int(part.lowerBound - Block.start(of: index))
                page.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[start..<start + target.count])) }
            }
            return Int(range.upperBound - range.lowerBound)
        }
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
        guard !overflow, Block.isAddressable(min(offset, end)..<end) else {
            throw CacheError(.storage, "Memory can't hold \(bytes.count) bytes at \(offset): not an offset in a file.")
        }
        guard !bytes.isEmpty else { return }
        state.withLock { state in
            for index in Block.indices(touching: offset..<end) {
                let part = (offset..<end).clamped(to: Block.range(of: index))
                let source = UnsafeRawBufferPointer(
                    rebasing: bytes[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)])
                let start = Int(part.lowerBound - Block.start(of: index))
                state.pages[index, default: [UInt8](repeating: 0, count: Int(Block.size))].withUnsafeMutableBytes {
                    UnsafeMutableRawBufferPointer(rebasing: $0[start..<start + source.count]).copyMemory(from: source)
                }
            }
            state.size = max(state.size, end)
        }
    }

    package func punchHole(_ range: Range<Int64>) throws(CacheError) {
        state.withLock { state in
            let range = max(0, range.lowerBound)..<max(0, range.lowerBound, min(range.upperBound, state.size))
            guard !range.isEmpty else { return }
            let shortens = range.upperBound == state.size
            for index in Block.indices(touching: range) {
                let part = range.clamped(to: Block.range(of: index))
                let isWhole = part.lowerBound == Block.start(of: index) && (shortens || part.count == Block.size)
                if isWhole {
                    state.pages[index] = nil
                } else {
                    let start = Int(part.lowerBound - Block.start(of: index))
                    state.pages[index]?.replaceSubrange(
                        start..<start + part.count, with: repeatElement(0, count: part.count))
                }
            }
            if shortens { state.size = range.lowerBound }
        }
    }
}
