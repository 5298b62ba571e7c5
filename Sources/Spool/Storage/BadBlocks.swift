/// Thrown where bytes that were taken for landed can't be had: they are holes now, to be fetched again.
package struct BadBlocks: Error, Hashable, CustomStringConvertible {
    /// The blocks that were found torn, flipped, moved or cut off on disk, ascending, to be reported and forgotten by
    /// the catalog. Empty if nothing was bad and the bytes have only not landed, or were evicted meanwhile.
    package var indices: [Int64]
    /// What was asked for, if blocks were bad; else the first hole in it.
    package var range: Range<Int64>

    /// Creates the error.
    package init(indices: [Int64] = [], range: Range<Int64>) {
        self.indices = indices
        self.range = range
    }

    /// A sentence.
    package var description: String {
        indices.isEmpty
            ? "Bytes \(range) have not landed."
            : "Stored blocks \(indices) of bytes \(range) are not what was received, and were dropped."
    }
}
