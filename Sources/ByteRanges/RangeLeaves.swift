/// The sorted list of ranges behind a ``ByteRangeSet``, cut into leaves so that a change moves a few kilobytes at most.
///
/// It keeps order, counts and sums; what is merged with what, the set decides. A plain array would be simpler and as
/// fast to search, but every insertion would move half of it, and after a copy (a snapshot handed to someone) the next
/// insertion would copy it all: 0.8 ms at 100,000 ranges.
///
/// Invariants, checked in debug builds around every change, and by the tests over the whole:
/// - ranges ascend, are not empty, begin at 0 or later, and there is at least a byte between one and the next;
/// - no leaf is empty or holds more than `capacity` ranges, and two neighbours together hold more than half of it;
/// - a leaf's `lowerBound` is its first range's, and its `start` the number of ranges before it.
struct RangeLeaves: Sendable {
    struct Leaf: Sendable {
        /// Where the first range of the leaf begins; here too, so that a search over leaves stays within one array.
        var lowerBound: Int64
        /// How many ranges stand in the leaves before this one.
        var start: Int
        var ranges: ContiguousArray<Range<Int64>>

        /// `ranges` must not be empty.
        init(_ ranges: ContiguousArray<Range<Int64>>, start: Int) {
            self.lowerBound = ranges[0].lowerBound
            self.start = start
            self.ranges = ranges
        }
    }

    /// Where a range stands. The position after the last range of a leaf is the first of the next leaf.
    struct Position: Equatable, Sendable {
        var leaf: Int
        var slot: Int
    }

    let capacity: Int
    var leaves: ContiguousArray<Leaf> = []
    var byteCount: Int64 = 0

    /// - Parameter capacity: how many ranges a leaf holds at most, 2 or more.
    init(capacity: Int = 512) {
        self.capacity = Swift.max(capacity, 2)
    }
}

extension RangeLeaves {
    var count: Int {
        guard let leaf = leaves.last else { return 0 }
        return leaf.start + leaf.ranges.count
    }

    var first: Range<Int64>? {
        leaves.first?.ranges.first
    }

    var last: Range<Int64>? {
        leaves.last?.ranges.last
    }

    /// The range at `position`, or `nil` at the end.
    func range(at position: Position) -> Range<Int64>? {
        guard position.leaf < leaves.count else { return nil }
        return leaves[position.leaf].ranges[position.slot]
    }

    func position(after position: Position) -> Position {
        if position.slot + 1 < leaves[position.leaf].ranges.count {
            return Position(leaf: position.leaf, slot: position.slot + 1)
        }
        return Position(leaf: position.leaf + 1, slot: 0)
    }

    /// The range before `position`, which must not be the first position.
    func range(before position: Position) -> Range<Int64> {
        if position.slot > 0 {
            return leaves[position.leaf].ranges[position.slot - 1]
        }
        let ranges = leaves[position.leaf - 1].ranges
        return ranges[ranges.count - 1]
    }

    /// The range with `index` ranges before it; `index` must be in `0 ..< count`.
    func range(at index: Int) -> Range<Int64> {
        let leaf = leaves[leaves.partitionPoint { $0.start > index } - 1]
        return leaf.ranges[index - leaf.start]
    }

    /// The first range with a byte beyond `offset`, or the end.
    func positionOfFirstRange(endingAfter offset: Int64) -> Position {
        positionOfFirstRange(near: offset) { $0.upperBound > offset }
    }

    /// The first range that begins beyond `offset`, or the end.
    func positionOfFirstRange(startingAfter offset: Int64) -> Position {
        positionOfFirstRange(near: offset) { $0.lowerBound > offset }
    }

    /// The first range for which `matches` is true, where it is false for all ranges in leaves before the one that
    /// would hold `offset`, and true for all in leaves behind that.
    @inline(__always)
    private func positionOfFirstRange(near offset: Int64, where matches: (Range<Int64>) -> Bool) -> Position {
        let next = leaves.partitionPoint { $0.lowerBound > offset }
        guard next > 0 else { return Position(leaf: 0, slot: 0) }
        let slot = leaves[next - 1].ranges.partitionPoint(matches)
        guard slot < leaves[next - 1].ranges.count else { return Position(leaf: next, slot: 0) }
        return Position(leaf: next - 1, slot: slot)
    }
}

extension ContiguousArray {
    /// The first index whose element matches, where all that match stand behind all that don't; `count` if none does.
    @inline(__always)
    fileprivate func partitionPoint(_ matches: (Element) -> Bool) -> Int {
        withUnsafeBufferPointer { elements in
            var low = 0
            var length = elements.count
            while length > 0 {
                // Written as two choices and no branch, so that the processor need not guess which half it will be.
                let half = length / 2
                let isBehind = matches(elements[low + half])
                low = isBehind ? low : low + half + 1
                length = isBehind ? half : length - half - 1
            }
            return low
        }
    }
}
