import ByteRanges

/// The grain in which media is checked, evicted and recorded: 64 KiB, aligned to its size.
///
/// Block `i` covers the bytes `i * 65536 ..< (i + 1) * 65536`; the last block of a resource may be short. What has
/// landed of a block is always a prefix of it, because a transfer starts at a block's start or where that block's
/// landed bytes end.
package enum Block {
    /// Bytes in a block that is not the last.
    package static let size: Int64 = 65536

    /// The largest offset, ``ByteRanges/NumberLimits/byteOffset``; no byte is stored at or after it.
    package static let offsetLimit = NumberLimits.byteOffset

    /// The index of the block that holds the byte at `offset`, which must not be negative.
    package static func index(of offset: Int64) -> Int64 { offset / size }

    /// Where the block at `index` starts.
    package static func start(of index: Int64) -> Int64 { index * size }

    /// All bytes that the block at `index` has room for.
    package static func range(of index: Int64) -> Range<Int64> { index * size..<(index + 1) * size }

    /// The indices of all blocks that `range` touches; none if it is empty.
    package static func indices(touching range: Range<Int64>) -> Range<Int64> {
        guard !range.isEmpty else { return 0..<0 }
        return index(of: range.lowerBound)..<index(of: range.upperBound - 1) + 1
    }

    /// The smallest block start at or after `offset`, which must be at most ``offsetLimit``.
    package static func roundUp(_ offset: Int64) -> Int64 { (offset + (size - 1)) / size * size }

    /// The greatest block start at or before `offset`.
    package static func roundDown(_ offset: Int64) -> Int64 { offset / size * size }

    /// Whether a transfer may begin or a claim may end here: not negative and within ``offsetLimit``.
    package static func isAddressable(_ range: Range<Int64>) -> Bool {
        range.lowerBound >= 0 && range.upperBound <= offsetLimit
    }
}

/// One sealed block as the catalog keeps it: how much of it has landed, and the seal over those bytes.
struct BlockRecord: Hashable, Sendable {
    // In this order the record takes 40 bytes; a long film has tens of thousands of them in memory.
    /// The seal over the landed bytes.
    var seal: BlockSeal
    /// How many bytes from the block's start the seal covers; 1 to 65536.
    var length: Int32
    /// Which block, counted from 0.
    var index: Int64

    /// Creates a record.
    init(index: Int64, length: Int32, seal: BlockSeal) {
        self.index = index
        self.length = length
        self.seal = seal
    }

    /// The bytes that the seal covers.
    var range: Range<Int64> { Block.start(of: index)..<Block.start(of: index) + Int64(length) }

    /// Whether index and length can be meant: a record from a damaged catalog may hold anything.
    var isPlausible: Bool {
        (0..<Block.offsetLimit / Block.size).contains(index) && (1...Int32(Block.size)).contains(length)
    }
}
