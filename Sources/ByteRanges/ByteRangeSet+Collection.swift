extension ByteRangeSet: RandomAccessCollection {
    /// Walks the ranges in ascending order. It works on the set as it was when the walk began.
    public struct Iterator: IteratorProtocol, Sendable {
        private let leaves: RangeLeaves
        private var position = RangeLeaves.Position(leaf: 0, slot: 0)

        init(_ leaves: RangeLeaves) {
            self.leaves = leaves
        }

        /// The next range, or `nil` after the last one.
        public mutating func next() -> Range<Int64>? {
            guard let range = leaves.range(at: position) else { return nil }
            position = leaves.position(after: position)
            return range
        }
    }

    /// Begins a walk over the ranges.
    public func makeIterator() -> Iterator {
        Iterator(leaves)
    }

    /// The position of the first range: 0.
    public var startIndex: Int { 0 }

    /// The position after the last range, which is the number of ranges. O(1).
    public var endIndex: Int { leaves.count }

    /// The range at a position counted from 0. O(log *n*); a walk with `for … in` is O(1) a step. As with `Array`, an
    /// index outside `startIndex ..< endIndex` is a mistake of the caller's and traps.
    public subscript(index: Int) -> Range<Int64> {
        precondition(index >= 0 && index < leaves.count, "ByteRangeSet index \(index) is outside 0..<\(leaves.count)")
        return leaves.range(at: index)
    }
}
