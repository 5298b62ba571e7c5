/// The unit in which media is checked, evicted and recorded: 64 KiB, aligned to its size.
///
/// Block `i` covers the bytes `i * 65536 ..< (i + 1) * 65536`. The last block of a resource may be short. The stored
/// bytes are always a prefix of the block. A transfer starts at a block's start, or at the end of its stored bytes.
package enum Block {
    /// The number of bytes in every block except the last one of a resource, which may be shorter.
    package static let size: Int64 = 65536

    /// The upper limit of offsets, ``NumberLimits/byteOffset``. No byte is stored at this offset or after it.
    package static let offsetLimit = NumberLimits.byteOffset

    /// Returns the index of the block that contains the byte at `offset`. Debug builds check that the offset is from 0
    /// to ``offsetLimit``. Parsers must reject larger numbers from external input.
    package static func index(of offset: Int64) -> Int64 {
        assert(offset >= 0 && offset <= offsetLimit, "offset \(offset) is out of range")
        return offset / size
    }

    /// Returns the offset of the first byte of a block. Debug builds check the index in the same way as ``index(of:)``.
    package static func start(of index: Int64) -> Int64 {
        assert(index >= 0 && index <= offsetLimit / size, "block \(index) is out of range")
        return index * size
    }

    /// Returns the byte range of a full-size block.
    package static func range(of index: Int64) -> Range<Int64> { index * size..<(index + 1) * size }

    /// Returns the indices of all blocks that contain bytes in `range`.
    package static func indices(touching range: Range<Int64>) -> Range<Int64> {
        guard !range.isEmpty else { return 0..<0 }
        return index(of: range.lowerBound)..<index(of: range.upperBound - 1) + 1
    }

    /// Returns the smallest block start at or after `offset`, which must be at most ``offsetLimit``.
    package static func roundUp(_ offset: Int64) -> Int64 {
        assert(offset <= offsetLimit, "offset \(offset) is out of range")
        return (offset + (size - 1)) / size * size
    }

    /// Returns the greatest block start at or before `offset`.
    package static func roundDown(_ offset: Int64) -> Int64 { offset / size * size }

    /// Returns whether the range starts at 0 or later, and ends at ``offsetLimit`` or earlier.
    package static func isAddressable(_ range: Range<Int64>) -> Bool {
        range.lowerBound >= 0 && range.upperBound <= offsetLimit
    }
}
