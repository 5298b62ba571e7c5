/// The sorted list of ranges in a ``ByteRangeSet``, divided into leaves so that a change moves at most a few kilobytes.
///
/// The list maintains order, counts and sums, and the set decides which ranges to merge. A plain array would be simpler
/// and as fast to search, but each insertion would move half of it on average. After a copy (a snapshot), the next
/// insertion would copy the whole array, which takes 0.8 ms with 100,000 ranges.
///
/// Invariants, checked in debug builds at each change, and by the tests for the whole list:
/// - Ranges are ascending and not empty, start at 0 or later, and have at least one byte between them.
/// - No leaf is empty or has more than `capacity` ranges, and any two neighboring leaves together have more than
///   `capacity / 2`.
/// - A leaf's `lowerBound` is that of its first range, and its `start` is the number of ranges before it.
struct RangeLeaves: Sendable {
    struct Leaf: Sendable {
        /// The start of the first range of the leaf. The value is stored here as well, so that a search over leaves
        /// reads only one array.
        var lowerBound: Int64
        /// The number of ranges in the leaves before this one.
        var start: Int
        var ranges: ContiguousArray<Range<Int64>>

        /// Creates a leaf. `ranges` must not be empty.
        init(_ ranges: ContiguousArray<Range<Int64>>, start: Int) {
            self.lowerBound = ranges[0].lowerBound
            self.start = start
            self.ranges = ranges
        }
    }

    /// The position of a range. The position after the last range of a leaf is the first position of the next leaf.
    struct Position: Equatable, Sendable {
        var leaf: Int
        var slot: Int
    }

    let capacity: Int
    var leaves: ContiguousArray<Leaf> = []
    var byteCount: Int64 = 0

    /// Creates an empty list.
    ///
    /// - Parameter capacity: The maximum number of ranges in a leaf, at least 2.
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

    /// Returns the range at `position`, or `nil` at the end.
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

    /// Returns the range before `position`, which must not be the first position.
    func range(before position: Position) -> Range<Int64> {
        if position.slot > 0 {
            return leaves[position.leaf].ranges[position.slot - 1]
        }
        let ranges = leaves[position.leaf - 1].ranges
        return ranges[ranges.count - 1]
    }

    /// Returns the range at `index`, which must be in `0 ..< count`.
    func range(at index: Int) -> Range<Int64> {
        let leaf = leaves[leaves.partitionPoint { $0.start > index } - 1]
        return leaf.ranges[index - leaf.start]
    }

    /// Returns the position of the first range with a byte at or after `offset`, or the end.
    func positionOfFirstRange(endingAfter offset: Int64) -> Position {
        positionOfFirstRange(near: offset) { $0.upperBound > offset }
    }

    /// Returns the position of the first range that starts after `offset`, or the end.
    func positionOfFirstRange(startingAfter offset: Int64) -> Position {
        positionOfFirstRange(near: offset) { $0.lowerBound > offset }
    }

    /// Returns the position of the first range for which `matches` is `true`, or the end.
    ///
    /// The result of `matches` must be `false` for all ranges in leaves before the leaf of `offset`, and `true` for all
    /// ranges in later leaves.
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
    /// Returns the index of the first matching element, or `count` if none matches. All matching elements must follow
    /// all elements that do not match.
    @inline(__always)
    fileprivate func partitionPoint(_ matches: (Element) -> Bool) -> Int {
        withUnsafeBufferPointer { elements in
            var low = 0
            var length = elements.count
            while length > 0 {
                // The loop does not contain a branch that the processor could mispredict.
                let half = length / 2
                let isBehind = matches(elements[low + half])
                low = isBehind ? low : low + half + 1
                length = isBehind ? half : length - half - 1
            }
            return low
        }
    }
}

extension RangeLeaves {
    /// Appends a range, which must not touch the last one.
    mutating func append(_ range: Range<Int64>) {
        assert(last.map { $0.upperBound < range.lowerBound } ?? (range.lowerBound >= 0) && !range.isEmpty)
        byteCount += range.upperBound - range.lowerBound
        let last = leaves.count - 1
        if last >= 0 && leaves[last].ranges.count < capacity {
            leaves[last].ranges.append(range)
        } else {
            leaves.append(Leaf([range], start: count))
        }
    }

    /// Extends the last range to `upperBound`. The list must not be empty, and `upperBound` must be beyond its end.
    mutating func extendLast(to upperBound: Int64) {
        let leaf = leaves.count - 1
        let slot = leaves[leaf].ranges.count - 1
        let range = leaves[leaf].ranges[slot]
        assert(range.upperBound < upperBound)
        byteCount += upperBound - range.upperBound
        leaves[leaf].ranges[slot] = range.lowerBound..<upperBound
    }

    /// Replaces the ranges from `start` up to `end` with at most two new ranges. The list must have a leaf, and must
    /// remain sorted.
    mutating func replace(
        _ start: Position,
        _ end: Position,
        with left: Range<Int64>?,
        _ right: Range<Int64>? = nil
    ) {
        // A position between two leaves is expressed as the end of the first leaf, which always exists.
        let start = start == end && start.slot == 0 && start.leaf > 0 ? endOfLeaf(start.leaf - 1) : start
        let end = end.slot == 0 && end.leaf > start.leaf ? endOfLeaf(end.leaf - 1) : end

        let leafCount = leaves.count
        let oldCount = leaves[start.leaf].ranges.count
        let endSlot = start.leaf == end.leaf ? end.slot : oldCount
        if start.leaf < end.leaf {
            removeLeaves(behind: start.leaf, upTo: end)
        }

        // The new ranges overwrite the old ones, and the remaining ranges are moved.
        var slot = start.slot
        for old in leaves[start.leaf].ranges[slot..<endSlot] {
            byteCount -= old.upperBound - old.lowerBound
        }
        put(left, leaf: start.leaf, slot: &slot, end: endSlot)
        put(right, leaf: start.leaf, slot: &slot, end: endSlot)
        if slot < endSlot {
            leaves[start.leaf].ranges.removeSubrange(slot..<endSlot)
        }

        let newCount = leaves[start.leaf].ranges.count
        if newCount == 0 || newCount > capacity || newCount < oldCount || leafCount != leaves.count
            || start.leaf < end.leaf
        {
            reshape(around: start.leaf)
        } else {
            leaves[start.leaf].lowerBound = leaves[start.leaf].ranges[0].lowerBound
            if newCount > oldCount {
                for leaf in leaves.indices[(start.leaf + 1)...] {
                    leaves[leaf].start += newCount - oldCount
                }
            }
        }
        assert(violation(inLeaf: Swift.min(start.leaf, leaves.count - 1)) == nil)
    }

    private func endOfLeaf(_ leaf: Int) -> Position {
        Position(leaf: leaf, slot: leaves[leaf].ranges.count)
    }

    /// Overwrites the range at `slot`, or inserts it if `slot` equals `end`, and advances `slot`.
    private mutating func put(_ range: Range<Int64>?, leaf: Int, slot: inout Int, end: Int) {
        guard let range else { return }
        byteCount += range.upperBound - range.lowerBound
        if slot < end {
            leaves[leaf].ranges[slot] = range
        } else {
            leaves[leaf].ranges.insert(range, at: slot)
        }
        slot += 1
    }

    /// Removes all ranges after `leaf` and before `end`. The leaf of `end` may become empty.
    private mutating func removeLeaves(behind leaf: Int, upTo end: Position) {
        for between in (leaf + 1)...end.leaf {
            let ranges = leaves[between].ranges
            for range in ranges[..<(between == end.leaf ? end.slot : ranges.count)] {
                byteCount -= range.upperBound - range.lowerBound
            }
        }
        leaves[end.leaf].ranges.removeFirst(end.slot)
        leaves.removeSubrange((leaf + 1)..<end.leaf)
    }

    /// Restores the invariants of the leaves around `leaf`: none is empty or too long, and no two neighbors fit in half
    /// a leaf.
    private mutating func reshape(around leaf: Int) {
        for emptied in [leaf + 1, leaf] where emptied < leaves.count && leaves[emptied].ranges.isEmpty {
            leaves.remove(at: emptied)
        }
        if leaf < leaves.count && leaves[leaf].ranges.count > capacity {
            let half = leaves[leaf].ranges.count / 2
            leaves.insert(Leaf(ContiguousArray(leaves[leaf].ranges[half...]), start: 0), at: leaf + 1)
            leaves[leaf].ranges.removeSubrange(half...)
        }
        let first = Swift.max(leaf - 1, 0)
        var left = first
        while left + 1 < leaves.count && left <= leaf + 1 {
            if leaves[left].ranges.count + leaves[left + 1].ranges.count <= capacity / 2 {
                leaves[left].ranges.append(contentsOf: leaves[left + 1].ranges)
                leaves.remove(at: left + 1)
            } else {
                left += 1
            }
        }
        var start = first == 0 ? 0 : leaves[first].start
        for index in leaves.indices[Swift.min(first, leaves.count)...] {
            leaves[index].lowerBound = leaves[index].ranges[0].lowerBound
            leaves[index].start = start
            start += leaves[index].ranges.count
        }
    }
}

// MARK: - Invariants

extension RangeLeaves {
    /// A description of the first violated invariant, or `nil` if all hold. O(*n*); for tests.
    var violation: String? {
        for leaf in leaves.indices {
            if let violation = violation(inLeaf: leaf) { return violation }
        }
        let sum = leaves.reduce(0) { $0 + $1.ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }
        return sum == byteCount ? nil : "byteCount is \(byteCount), but the ranges hold \(sum) bytes"
    }

    /// Returns a description of a violated invariant in a leaf, or between it and the previous one, or `nil` if all
    /// hold.
    func violation(inLeaf index: Int) -> String? {
        guard index >= 0 else { return nil }
        let leaf = leaves[index]
        var before: Int64 = -1
        if index > 0 {
            let previous = leaves[index - 1]
            guard let last = previous.ranges.last else { return "leaf \(index - 1) is empty" }
            before = last.upperBound
            if leaf.start != previous.start + previous.ranges.count { return "leaf \(index) has the wrong start index" }
            if leaf.ranges.count + previous.ranges.count <= capacity / 2 { return "leaf \(index) should be merged" }
        } else if leaf.start != 0 {
            return "leaf 0 has the wrong start index"
        }
        if leaf.ranges.isEmpty || leaf.ranges.count > capacity {
            return "leaf \(index) contains \(leaf.ranges.count) ranges"
        }
        if leaf.lowerBound != leaf.ranges[0].lowerBound { return "leaf \(index) has a wrong lower bound" }
        for range in leaf.ranges {
            if range.isEmpty || range.lowerBound <= before { return "leaf \(index): \(range) follows \(before)" }
            before = range.upperBound
        }
        return nil
    }
}
